"""Alignment of two chains and its superposition with the highest TM-score.

TM-score: Zhang & Skolnick, Proteins 57, 2004, 702-710. The search follows TM-align (Zhang & Skolnick, Nucleic Acids Research 33, 2005,
2302-2309): superpose fragments of an alignment, then the pairs that are close, realign by distance, and repeat. Fragments of an alignment,
shifts of one chain along the other and fragments of both chains are superposed in batches (`proteoscope.kernels.cpu.least_squares`).
Fragments are ranked by the number of residues of x that come near a residue of y, with a table of nearest residues (as in GTalign,
Margelevičius, Nature Communications 15, 2024, 7305), then by sparse alignments. Of similar superpositions only the best is refined.

Coordinates are (3, n) float64, one axis per row. A superposition is (12,) float64: the rotation row by row, then the translation; it moves
`x` onto `y`. The shorter chain is x.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.chain_pairs import farthest_pair, report_pair, shorter_and_longer, start_of_pair, tm_scale
from proteoscope.kernels.cpu.distance_alignment import UNIT, align, alignment_workspace, place_states, place_x, place_y, trace
from proteoscope.kernels.cpu.least_squares import BATCH, MOVE, distances_squared, moments, near_moments, near_totals, rotations
from proteoscope.kernels.cpu.nearest_residues import nearest_residues, nearness
from proteoscope.kernels.cpu.pair_superposition import N_HALVINGS, gather, near_of, search, search_workspace
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.visited_alignments import forget, mark_of_move, mark_of_pairs, met_alignments, note, place_of
from proteoscope.kernels.device import StopFlag, equal_partitions
from proteoscope.kernels.structure_layouts import MAXIMUM_CELLS, ChainPairs, FoundSuperpositions, SearchSteps

__all__ = ["ChainSuperposition"]

_CELLS_OF_PARTITION = 1.2e7  # matrix cells per partition: about 0.1 s
_COARSE = 40  # residues from one fragment to the next in preliminary searches
_HOPELESS = 0.9  # fraction of the best score: fragments or shifts below it after two rounds are discarded
_WIDER = 0.8  # Å added to the distance scale during the search
_GAP = -0.6
_MAXIMUM_REFINEMENTS = 12
_MINIMUM_GAIN = 1e-4
_MAXIMUM_FRAGMENTS = 600  # maximum number of superposed pairs of fragments of one length
_HOPELESS_START = 0.5  # fraction of the best score: starting points below it are not refined
_SPARSE, _SPARSE_LENGTH = 4, 40  # alignments that rank fragments: maximum stride and minimum number of residues
_SPARSE_REFINEMENTS = 2
_SIMILAR = 3.0  # Å, root mean square: superpositions of x that are nearer than this to a better one are dropped


@njit(nogil=True, cache=True)
def _thread(workspace, x, y, scale, near, pairs):
    """Write the pairs of the best gapless alignment to the end of `pairs`; return their number."""
    m, n = x.shape[1], y.shape[1]
    shortest = max(min(m, n) // 2, min(5, m, n))
    greatest, chosen = -1.0, 0
    workspace.limits[:] = near
    for shift in range(shortest - m, n - shortest + 1, BATCH):
        for k in range(BATCH):
            first, last = max(0, -shift - k), min(m, n - shift - k)
            workspace.first_x[k], workspace.first_y[k] = first, first + shift + k
            workspace.lengths[k] = last - first if shift + k <= n - shortest else 0
        moments(x, y, workspace.first_x, workspace.first_y, workspace.lengths, workspace.sums)
        for turn in range(2):
            rotations(workspace.sums, workspace.lengths, workspace.moves, workspace.state)
            near_totals(x, y, workspace.first_x, workspace.first_y, workspace.lengths, workspace.moves, scale, workspace.totals)
            is_promising = False
            for k in range(BATCH):
                if workspace.lengths[k] and workspace.totals[k] > greatest:
                    greatest, chosen = workspace.totals[k], shift + k
            for k in range(BATCH):
                workspace.lengths[k] = workspace.lengths[k] if workspace.totals[k] >= _HOPELESS * greatest else 0
                is_promising |= workspace.lengths[k] > 0
            if turn or not is_promising:
                break
            near_moments(
                x,
                y,
                workspace.first_x,
                workspace.first_y,
                workspace.lengths,
                workspace.moves,
                scale,
                workspace.limits,
                workspace.sums,
                workspace.totals,
            )
    first, last = max(0, -chosen), min(m, n - chosen)
    place = len(pairs) - (last - first)
    for i in range(first, last):
        pairs[place + i - first, 0], pairs[place + i - first, 1] = i, i + chosen
    return last - first


@njit(nogil=True, cache=True)
def _fragments(workspace, x, y, scale, some_x, moves, scores):
    """Superpose short and long fragments of both chains; write the best superpositions to the rows of `moves`, and their `scores`.

    The score of a superposition is the sum of `nearness` over some residues of x (`some_x`).
    """
    m, n = x.shape[1], y.shape[1]
    scores[:] = -1.0
    half, nearest = len(scores) // 2, nearest_residues(y)
    cells, squares = np.empty(some_x.shape[1], np.int64), np.empty(some_x.shape[1])
    for kind in range(2):
        length = min(m, 20) if kind == 0 else min(m, max(30, m // 2))
        jump = max(5, length // 3)
        places_x, places_y = max(1, (m - length) // jump + 1), max(1, (n - length) // jump + 1)
        while places_x * places_y > _MAXIMUM_FRAGMENTS:
            jump += jump // 2
            places_x, places_y = max(1, (m - length) // jump + 1), max(1, (n - length) // jump + 1)
        first, last = kind * half, (kind + 1) * half
        for begin in range(0, places_x * places_y, BATCH):
            for k in range(BATCH):
                workspace.lengths[k] = length if begin + k < places_x * places_y else 0
                workspace.first_x[k], workspace.first_y[k] = (begin + k) // places_y * jump, (begin + k) % places_y * jump
            moments(x, y, workspace.first_x, workspace.first_y, workspace.lengths, workspace.sums)
            rotations(workspace.sums, workspace.lengths, workspace.moves, workspace.state)
            for k in range(min(BATCH, places_x * places_y - begin)):
                move = workspace.moves[k : MOVE * BATCH : BATCH]
                total = nearness(nearest, some_x, y, move, scale, cells, squares)
                if total > scores[last - 1]:
                    place = last - 1
                    while place > first and scores[place - 1] < total:
                        scores[place] = scores[place - 1]
                        moves[place] = moves[place - 1]
                        place -= 1
                    scores[place] = total
                    moves[place] = move


@njit(nogil=True, cache=True)
def _spread(x):
    """Return the mean square of the coordinates of a centred chain, per axis."""
    total = 0.0
    for axis in range(3):
        for i in range(x.shape[1]):
            total += x[axis, i] * x[axis, i]
    return total / x.shape[1] / 3.0


@njit(nogil=True, cache=True)
def _are_similar(move, other, spread):
    """Return True if two superpositions move a chain to nearly the same place; its `spread` is assumed equal along each axis."""
    turned, shifted = 0.0, 0.0
    for c in range(9):
        turned += (move[c] - other[c]) * (move[c] - other[c])
    for c in range(9, MOVE):
        shifted += (move[c] - other[c]) * (move[c] - other[c])
    return turned * spread + shifted < _SIMILAR * _SIMILAR


@njit(nogil=True, cache=True)
def _different(scores, moves, n, spread):
    """Return the rows of the up to n best superpositions with scores above 0, without superpositions similar to a better one."""
    chosen, count = np.empty(min(n, len(scores)), np.int64), 0
    for k in np.argsort(-scores, kind="mergesort"):
        if count == len(chosen) or scores[k] <= 0.0:
            break
        is_new = True
        for c in range(count):
            if _are_similar(moves[k], moves[chosen[c]], spread):
                is_new = False
                break
        if is_new:
            chosen[count] = k
            count += 1
    return chosen[:count]


@njit(nogil=True, cache=True)
def _keep(score, move, scores, moves):
    """Insert a superposition into the sorted list of the best, unless the list has a superposition with the same score."""
    n = len(scores)
    for k in range(n):
        if abs(scores[k] - score) < 1e-6:
            return
    if score <= scores[n - 1]:
        return
    place = n - 1
    while place > 0 and scores[place - 1] < score:
        scores[place] = scores[place - 1]
        moves[place] = moves[place - 1]
        place -= 1
    scores[place] = score
    moves[place] = move


@njit(nogil=True, cache=True)
def _realigned(workspaces, alignment, x, y, move, scales, weights, halvings, pairs):
    """Realign under a superposition, optimise the superposition of the aligned pairs, and replace `move` by the result.

    The aligned pairs are written to the end of `pairs`, unless the alignment was visited before. Return the score sum and the number of
    pairs. `workspaces` are the search's workspace and the visited alignments; y is already set in the alignment's workspace.
    """
    (workspace, met), (guide, near), (gap, by_states, by_distance), m, n = workspaces, scales, weights, x.shape[1], y.shape[1]
    # The same superposition always leads to the same alignment and result, and most refinements converge to earlier ones: skip them.
    under = place_of(met, mark_of_move(move, gap, by_states))
    row = met.rows[under]
    if row < 0:
        place_x(alignment, x, move, guide)
        align(alignment, m, n, gap, by_states, by_distance)
        count = trace(alignment, m, n, pairs)
        of_pairs = place_of(met, mark_of_pairs(pairs, len(pairs) - count))
        row = met.rows[of_pairs]
        if row < 0:
            gather(workspace, x, y, pairs, len(pairs) - count)
            result = search(workspace, count, guide, near, _COARSE, halvings, _HOPELESS, move)
            row = note(met, result, count, move)
            met.rows[of_pairs] = row
        met.rows[under] = row
    move[:] = met.moves[row]
    return met.score[row], met.counts[row]


@njit(nogil=True, cache=True)
def _best_fragments(workspace, sparse, met, x, y, guide, near, steps, pairs):
    """Return the superpositions of fragments that best fit the whole chains, (n, 12) with n up to `n_searched`, best first."""
    m, spread = x.shape[1], _spread(x)
    every = min(_SPARSE, max(1, m // _SPARSE_LENGTH))
    some_x, some_y = x[:, ::every].copy(), y[:, ::every].copy()
    scores, moves = np.empty(steps.n_fragments), np.empty((steps.n_fragments, MOVE))
    _fragments(workspace, x, y, guide, some_x, moves, scores)
    place_y(sparse, some_y, guide)
    forget(met)
    for k in range(steps.n_fragments):
        if scores[k] > 0.0:
            place_x(sparse, some_x, moves[k], guide)
            scores[k] = align(sparse, some_x.shape[1], some_y.shape[1], _GAP, 0.0, 1.0)
    best, refined = np.zeros(steps.n_fragments), moves.copy()
    order, n_searched = _different(scores, moves, steps.n_sparse, spread), steps.n_searched
    if len(order) and 100.0 * scores[order[0]] < steps.minimum_sparse_percent * UNIT * some_x.shape[1]:
        order, n_searched = order[: steps.n_sparse_if_unlike], steps.n_searched_if_unlike
    for k in order:
        for _ in range(_SPARSE_REFINEMENTS):
            result, _count = _realigned(
                (workspace, met), sparse, some_x, some_y, moves[k], (guide, near), (_GAP, 0.0, 1.0), steps.coarse_halvings, pairs
            )
            if result > best[k]:
                best[k] = result
                refined[k] = moves[k]
    return refined[_different(best, refined, n_searched, spread)]


@njit(nogil=True, cache=True)
def _best(x, y, start, states_x, states_y, steps, fine, sparse, best_move, best_pairs):
    """Find the alignment of two chains and its superposition with the highest TM-score; x is no longer than y.

    Coordinates are results of `shorter_and_longer`. The superposition with the highest TM-score normalised by the shorter chain is written
    to `best_move` (12,), and its pairs to `best_pairs` (m, 2). Return the TM-scores normalised by m and by n, and the number of pairs.
    """
    m, n = x.shape[1], y.shape[1]
    workspace, scale, scale_y = search_workspace(m), tm_scale(m), tm_scale(n)
    near = near_of(scale)
    guide = scale + _WIDER
    pairs, move = np.empty((m, 2), np.int32), np.empty(MOVE)
    best_move[:] = 0.0
    best_move[0] = best_move[4] = best_move[8] = 1.0
    best, n_best, are_alike = -1.0, 0, True
    if len(start):
        n_best = gather(workspace, x, y, start, 0)
        best_pairs[:n_best] = start
        best = search(workspace, n_best, guide, near, _COARSE, steps.coarse_halvings, _HOPELESS, best_move)
    if (m + n + 1) * (m + 1) <= MAXIMUM_CELLS:
        place_states(fine, states_x, states_y)
        place_y(fine, y, guide)
        halvings = steps.coarse_halvings
        met = met_alignments(
            2 * steps.n_sparse + 4 + steps.n_searched + steps.n_refined + 2 * (steps.n_finished + 1) * _MAXIMUM_REFINEMENTS
        )
        # Starting points: the given alignment, the best shift, secondary structure and matching fragments. The starts of a stage do not
        # depend on each other, so that a GPU can try them at the same time.
        scores, moves = np.full(steps.n_refined, -1.0), np.empty((steps.n_refined, MOVE))
        if n_best:
            _keep(best, best_move, scores, moves)
        fragments = _best_fragments(workspace, sparse, met, x, y, guide, near, steps, pairs)
        forget(met)
        for kind in range(2 + len(fragments)):
            if kind == 0:
                count = _thread(workspace, x, y, guide, near, pairs)
                gather(workspace, x, y, pairs, m - count)
                result = search(workspace, count, guide, near, _COARSE, halvings, _HOPELESS, move)
            elif kind == 1:
                move[:] = 0.0
                result, count = _realigned((workspace, met), fine, x, y, move, (guide, near), (-1.0, 1.0, 0.0), halvings, pairs)
            else:
                move[:] = fragments[kind - 2]
                result, count = _realigned((workspace, met), fine, x, y, move, (guide, near), (_GAP, 0.0, 1.0), halvings, pairs)
            _keep(result, move, scores, moves)
            if result > best:
                best, n_best = result, count
                best_move[:] = move
                best_pairs[:count] = pairs[m - count :]
        # Refine each starting point once, and align by secondary structure and distances under the best. Of pairs of unlike chains, only
        # the best start is refined, without gap costs, which gives higher TM-scores to them.
        are_alike = 100.0 * best >= steps.minimum_start_percent * m
        some_scores, some_moves, best_before = scores.copy(), moves.copy(), best
        if are_alike:
            scores[:] = -1.0
        for kind in range(steps.n_refined + 1 if are_alike else 0):
            if kind < steps.n_refined:
                if some_scores[kind] < _HOPELESS_START * best_before:
                    continue
                move[:], gap, by_states = some_moves[kind], _GAP, 0.0
            else:
                if best_before <= 0.0:
                    continue
                move[:], gap, by_states = some_moves[0], -1.0, 0.5
            result, count = _realigned((workspace, met), fine, x, y, move, (guide, near), (gap, by_states, 1.0), halvings, pairs)
            _keep(result, move, scores, moves)
            if result > best:
                best, n_best = result, count
                best_move[:] = move
                best_pairs[:count] = pairs[m - count :]
        # Refine the best until the score no longer rises, with and without gap costs.
        best_before = best
        for kind in range(0 if are_alike else 1, 2 * min(steps.n_finished, steps.n_refined) if are_alike else 2):
            move[:], before, gap = moves[kind // 2], scores[kind // 2], (_GAP, 0.0)[kind % 2]
            if before < _HOPELESS_START * best_before:
                continue
            for _ in range(_MAXIMUM_REFINEMENTS):
                result, count = _realigned((workspace, met), fine, x, y, move, (guide, near), (gap, 0.0, 1.0), halvings, pairs)
                if result > best:
                    best, n_best = result, count
                    best_move[:] = move
                    best_pairs[:count] = pairs[m - count :]
                if abs(result - before) < _MINIMUM_GAIN * m:
                    break
                before = result
        # The same for the best of all, with the scale of the TM-score.
        forget(met)
        place_y(fine, y, scale)
        gather(workspace, x, y, best_pairs[:n_best], 0)
        best = search(workspace, n_best, scale, near, _COARSE, halvings, _HOPELESS, best_move)
        best_before, move_before = best, best_move.copy()
        for kind in range(0 if are_alike else 1, 2):
            move[:], before, gap = move_before, best_before, (_GAP, 0.0)[kind]
            for _ in range(_MAXIMUM_REFINEMENTS):
                result, count = _realigned((workspace, met), fine, x, y, move, (scale, near), (gap, 0.0, 1.0), halvings, pairs)
                if result > best:
                    best, n_best = result, count
                    best_move[:] = move
                    best_pairs[:count] = pairs[m - count :]
                if abs(result - before) < _MINIMUM_GAIN * m:
                    break
                before = result
    # Finally, more fragments, with distant pairs excluded.
    halvings = N_HALVINGS if are_alike else steps.coarse_halvings
    gather(workspace, x, y, best_pairs[:n_best], 0)
    search(workspace, n_best, guide, near, steps.last_step, halvings, _HOPELESS, best_move)
    distances_squared(workspace.x, workspace.y, n_best, best_move, workspace.squared)
    limit = farthest_pair(m)
    retained = 0
    for k in range(n_best):
        if workspace.squared[k] <= limit * limit:
            best_pairs[retained] = best_pairs[k]
            retained += 1
    gather(workspace, x, y, best_pairs[:retained], 0)
    score_x = search(workspace, retained, scale, near, steps.last_step, halvings, _HOPELESS, best_move) / m
    score_y = score_x
    if n != m:
        score_y = search(workspace, retained, scale_y, near_of(scale_y), steps.last_step, halvings, _HOPELESS, move) / n
    return score_x, score_y, retained


@njit(nogil=True, cache=True)
def _superpose_pairs(pairs, first, last, steps, fine, sparse, superpositions, stop):
    """Superpose the pairs of chains `first:last`."""
    for k in range(first, last):
        if stop[0]:
            break
        x, y, states_x, states_y, is_turned = shorter_and_longer(pairs, k)
        m = x.shape[1]
        start = start_of_pair(pairs, k, is_turned)
        aligned, move = np.empty((m, 2), np.int32), np.empty(MOVE)
        by_x, by_y, count = _best(x, y, start, states_x, states_y, steps, fine, sparse, move, aligned)
        report_pair(pairs, k, by_x, by_y, move, aligned[:count], superpositions)


class ChainSuperposition:
    """Superposes pairs of chains with the threads of a CPU.

    Parameters
    ----------
    device
        CPU whose threads superpose chains.
    steps
        Extent of the search for each pair.
    """

    def __init__(self, device: Processor, steps: SearchSteps) -> None:
        self._device, self._steps = device, steps

    def superpose(
        self, pairs: ChainPairs, superpositions: FoundSuperpositions, first: int = 0, last: int | None = None
    ) -> Generator[int, None, None]:
        """Align and superpose the pairs `first:last` with the highest TM-score found.

        Yields
        ------
        End of the finished range, at least every tenth of a second.
        """
        last = len(pairs.fixed) if last is None else last
        shorter, longer = pairs.lengths
        fits = np.where((shorter + longer + 1) * (shorter + 1) <= MAXIMUM_CELLS, 1, 0)

        def work(begin: int, end: int, stop: StopFlag) -> None:
            some = slice(first + begin, first + end)
            m, n = int((shorter * fits)[some].max(initial=0)), int((longer * fits)[some].max(initial=0))
            fine, sparse = alignment_workspace(m, n), alignment_workspace(max(min(m, 2 * _SPARSE_LENGTH), m // _SPARSE + 1), n)
            _superpose_pairs(pairs, some.start, some.stop, self._steps, fine, sparse, superpositions, stop)

        cells = (shorter * longer)[first:last].astype(np.float64)
        chunks = equal_partitions(cells, self._device.threads, maximum_cost=_CELLS_OF_PARTITION / self._steps.n_searched)
        for done in self._device.run(work, chunks, 0):
            yield first + done
