"""The superposition of two chains that has the greatest TM-score, and TM-scores of pairs.

TM-score: Zhang & Skolnick, Proteins 57, 2004, 702-710. The search follows TM-align (Zhang & Skolnick, Nucleic Acids Research 33, 2005,
2302-2309): superpose on pieces of an alignment and again on what then lies near, align anew by the distances, repeat. Pieces of an
alignment, shifts of one chain along the other and pieces of both chains are superposed in batches (`kernels.cpu.least_squares`).

Coordinates are (3, n) float64 here, an axis a row. A superposition is (12,) float64: the rotation row by row, then the translation; it
moves `x` onto `y`. The search has the shorter chain as x.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kernels.cpu.chain_pairs import farthest_pair, report_pair, shorter_and_longer, start_of_pair, tm_scale
from kernels.cpu.distance_alignment import align, alignment_room, place_states, place_x, place_y, trace
from kernels.cpu.least_squares import BATCH, FARTHEST, MOMENTS, MOVE, batch_room, distances_squared, moments, near_moments, rotations
from kernels.cpu.processor import Processor
from kernels.device import StopFlag
from kernels.partitions import equal_partitions
from kernels.structure_layouts import MAXIMUM_CELLS, ChainPairs, FoundSuperpositions, SearchSteps

__all__ = ["ChainSuperposition", "tm_score_of_pairs"]

_CELLS_OF_PIECE = 1.2e7  # and a searched beginning: a tenth of a second or so
_N_ROUNDS = 20  # at most, of superposing on what lies near
_N_HALVINGS = 6  # of the length of pieces
_MINIMUM_PIECE = 4
_COARSE, _COARSE_HALVINGS = 40, 2  # residues between two pieces, and lengths of pieces, in a search that only guides
_ALL = 1  # residue between two pieces
_HOPELESS_ROUNDS, _HOPELESS = 2, 0.9  # superposed so often, a piece with less than this part of the best score is left
_WIDER = 0.8  # Å that the scale is wider by while searching
_GAP = -0.6
_MAXIMUM_REFINEMENTS = 12
_MINIMUM_GAIN = 1e-4
_TABLE = 2048
_MAXIMUM_FRAGMENTS = 600  # pairs of pieces of one length that are superposed
_HOPELESS_START = 0.5  # of the best score: a start with less is not refined
_SPARSE, _SPARSE_LENGTH = 4, 40  # residues to one, at most, in the alignments by which pieces are ranked, and how many are left at least
_SPARSE_REFINEMENTS = 2


class _SearchRoom(NamedTuple):
    """Room to search an alignment: its pairs, x and y; moments before each; a batch of runs of them; and which selections were met."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    before: NDArray[np.float64]
    sums: NDArray[np.float64]
    moves: NDArray[np.float64]
    kept: NDArray[np.float64]
    near_sums: NDArray[np.float64]
    totals: NDArray[np.float64]
    limits: NDArray[np.float64]
    first_x: NDArray[np.int64]
    first_y: NDArray[np.int64]
    lengths: NDArray[np.int64]
    rounds: NDArray[np.int64]
    seen: NDArray[np.int64]
    squared: NDArray[np.float64]


@njit(nogil=True, cache=True)
def _search_room(n):
    """Room for alignments of up to n pairs."""
    sums, moves, kept = batch_room()
    return _SearchRoom(
        np.empty((3, n)), np.empty((3, n)), np.empty((n + 1) * MOMENTS), sums, moves, kept, np.zeros(MOMENTS * BATCH), np.zeros(BATCH),
        np.empty(BATCH), np.zeros(BATCH, np.int64), np.zeros(BATCH, np.int64), np.zeros(BATCH, np.int64), np.empty(BATCH, np.int64),
        np.empty(_TABLE, np.int64), np.empty(n),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _near(scale):
    """Å within which pairs are superposed in a search."""
    return min(8.0, max(4.5, scale))


@njit(nogil=True, cache=True)
def _is_new(mark, seen):
    """Whether a selection was not met before; notes it while there is room."""
    place = (mark ^ (mark >> np.int64(29)) ^ (mark >> np.int64(47))) & np.int64(_TABLE - 1)
    for _ in range(16):
        if seen[place] == mark:
            return False
        if seen[place] == 0:
            seen[place] = mark
            return True
        place = (place + 1) & np.int64(_TABLE - 1)
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _moments_before(x, y, n, before):
    """The moments of the first k pairs, at ``k * MOMENTS``, for k from 0 to n: their differences are those of any piece."""
    before[:MOMENTS] = 0.0
    for i in range(n):
        a, b, c, d, e, f = x[0, i], x[1, i], x[2, i], y[0, i], y[1, i], y[2, i]
        last, to = before[i * MOMENTS : (i + 1) * MOMENTS], before[(i + 1) * MOMENTS : (i + 2) * MOMENTS]
        to[0], to[1], to[2], to[3], to[4], to[5] = last[0] + a, last[1] + b, last[2] + c, last[3] + d, last[4] + e, last[5] + f
        to[6], to[7], to[8] = last[6] + a * d, last[7] + a * e, last[8] + a * f
        to[9], to[10], to[11] = last[9] + b * d, last[10] + b * e, last[11] + b * f
        to[12], to[13], to[14] = last[12] + c * d, last[13] + c * e, last[14] + c * f
        to[15], to[16] = last[15] + (a * a + b * b + c * c + d * d + e * e + f * f), last[16] + 1.0


@njit(nogil=True, cache=True)
def _search(room, n, scale, near, step, halvings, hopeless, best):
    """The superposition of the first n pairs in the room with the greatest sum of scores; it goes to `best`, the sum is returned.

    Pieces of the alignment, from all of it to four pairs, are superposed, then what lies near, until that is the same as before. What
    follows a selection depends on it alone, so that none is gone through twice.

    Parameters
    ----------
    scale : d0 of the score. near : Å, about which pairs count as near. step : between the starts of pieces; 1 for all; 0 for a few of
    each length, a fourth of it apart. halvings : lengths of pieces; six for all down to four pairs. hopeless : a piece that after two
    rounds has less than this part of the greatest sum is left.
    """
    greatest = -1.0
    if n == 0:
        best[:] = 0.0
        best[0] = best[4] = best[8] = 1.0
        return 0.0
    x, y, before, moves, kept, totals, limits = room.x, room.y, room.before, room.moves, room.kept, room.totals, room.limits
    first, count, rounds, seen = room.first_x, room.lengths, room.rounds, room.seen
    sums, near_sums = room.sums, room.near_sums
    bits, near_bits = sums.view(np.int64), near_sums.view(np.int64)
    _moments_before(x, y, n, before)
    seen[:] = 0
    first[:] = 0
    count[:] = 0
    shortest = max(min(_MINIMUM_PIECE, n), 0 if halvings == _N_HALVINGS else n >> (halvings - 1))
    halving, start, length, is_more, running = 0, 0, n, True, 0
    while True:
        for k in range(BATCH):
            if is_more and count[k] == 0:
                for c in range(MOMENTS):
                    sums[c * BATCH + k] = before[(start + length) * MOMENTS + c] - before[start * MOMENTS + c]
                count[k], rounds[k], limits[k] = n, 0, near - 1.0
                running += 1
                if start < n - length:
                    start = min(start + (step if step else max(2, length // 4)), n - length)
                elif length == shortest:
                    is_more = False
                else:
                    halving, start = halving + 1, 0
                    length = max(n >> halving, shortest) if halving < halvings - 1 else shortest
        if running == 0:
            return greatest
        rotations(sums, count, moves, kept)
        near_moments(x, y, first, first, count, moves, scale, limits, near_sums, totals)
        sums, near_sums, bits, near_bits = near_sums, sums, near_bits, bits
        for k in range(BATCH):
            if count[k] == 0:
                continue
            if totals[k] > greatest:
                greatest = totals[k]
                for c in range(MOVE):
                    best[c] = moves[c * BATCH + k]
            rounds[k] += 1
            limits[k] = near + 1.0
            # Of the same pairs the sums are the same to the last bit.
            is_hopeless = rounds[k] >= _HOPELESS_ROUNDS and totals[k] < hopeless * greatest
            mark = (bits[6 * BATCH + k] ^ (bits[15 * BATCH + k] << 1)) | 1
            if rounds[k] > _N_ROUNDS or is_hopeless or not _is_new(mark, seen):
                count[k] = 0
                running -= 1


@njit(nogil=True, cache=True)
def tm_score_of_pairs(x, y, length):
    """The greatest TM-score that a superposition of these pairs has, normalised by `length`, and that superposition (12,).

    Parameters
    ----------
    x, y (3, n) float64 : the pairs.
    """
    n = x.shape[1]
    room, best, scale = _search_room(n), np.empty(MOVE), tm_scale(length)
    room.x[:] = x
    room.y[:] = y
    found = _search(room, n, scale, _near(scale), _ALL, _N_HALVINGS, 0.0, best)
    return found / max(1, length), best


@njit(nogil=True, cache=True)
def _gather(room, x, y, pairs, first):
    """The coordinates of the pairs from row `first` on, to the room; how many they are."""
    n = len(pairs) - first
    for axis in range(3):
        to_x, to_y, from_x, from_y = room.x[axis], room.y[axis], x[axis], y[axis]
        for k in range(n):
            to_x[k], to_y[k] = from_x[pairs[first + k, 0]], from_y[pairs[first + k, 1]]
    return n


@njit(nogil=True, cache=True)
def _thread(room, x, y, scale, near, pairs):
    """The best shift of one chain along the other without gaps, as pairs at the end of `pairs`; how many they are."""
    m, n = x.shape[1], y.shape[1]
    shortest = max(min(m, n) // 2, min(5, m, n))
    greatest, chosen = -1.0, 0
    room.limits[:] = near
    for shift in range(shortest - m, n - shortest + 1, BATCH):
        for k in range(BATCH):
            first, last = max(0, -shift - k), min(m, n - shift - k)
            room.first_x[k], room.first_y[k] = first, first + shift + k
            room.lengths[k] = last - first if shift + k <= n - shortest else 0
        moments(x, y, room.first_x, room.first_y, room.lengths, room.sums)
        for _ in range(2):
            rotations(room.sums, room.lengths, room.moves, room.kept)
            near_moments(x, y, room.first_x, room.first_y, room.lengths, room.moves, scale, room.limits, room.sums, room.totals)
            for k in range(BATCH):
                if room.lengths[k] and room.totals[k] > greatest:
                    greatest, chosen = room.totals[k], shift + k
            for k in range(BATCH):
                room.lengths[k] = room.lengths[k] if room.totals[k] >= _HOPELESS * greatest else 0
    first, last = max(0, -chosen), min(m, n - chosen)
    place = len(pairs) - (last - first)
    for i in range(first, last):
        pairs[place + i - first, 0], pairs[place + i - first, 1] = i, i + chosen
    return last - first


@njit(nogil=True, cache=True)
def _fragments(room, x, y, scale, moves, scores):
    """Superpositions of short and of long pieces of both chains, those that fit best: to `moves`, as many as it has rows, and `scores`."""
    m, n = x.shape[1], y.shape[1]
    room.limits[:] = FARTHEST
    scores[:] = -1.0
    half = len(scores) // 2
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
                room.lengths[k] = length if begin + k < places_x * places_y else 0
                room.first_x[k], room.first_y[k] = (begin + k) // places_y * jump, (begin + k) % places_y * jump
            moments(x, y, room.first_x, room.first_y, room.lengths, room.sums)
            rotations(room.sums, room.lengths, room.moves, room.kept)
            near_moments(x, y, room.first_x, room.first_y, room.lengths, room.moves, scale, room.limits, room.near_sums, room.totals)
            for k in range(BATCH):
                total = room.totals[k] / length
                if room.lengths[k] and total > scores[last - 1]:
                    place = last - 1
                    while place > first and scores[place - 1] < total:
                        scores[place] = scores[place - 1]
                        moves[place] = moves[place - 1]
                        place -= 1
                    scores[place] = total
                    moves[place] = room.moves[k : MOVE * BATCH : BATCH]


@njit(nogil=True, cache=True)
def _keep(found, move, scores, moves):
    """Insert a superposition among the best, which are sorted, unless one with the same score is there."""
    n = len(scores)
    for k in range(n):
        if abs(scores[k] - found) < 1e-6:
            return
    if found <= scores[n - 1]:
        return
    place = n - 1
    while place > 0 and scores[place - 1] < found:
        scores[place] = scores[place - 1]
        moves[place] = moves[place - 1]
        place -= 1
    scores[place] = found
    moves[place] = move


@njit(nogil=True, cache=True)
def _realigned(room, alignment, x, y, move, guide, gap, by_states, by_distance, halvings, pairs):
    """Align anew under a superposition, search what is aligned, and replace `move` by what is found.

    The sum of scores and the number of pairs, which are at the end of `pairs`. y stands in the room of the alignment already.
    """
    m, n = x.shape[1], y.shape[1]
    place_x(alignment, x, move, guide)
    align(alignment, m, n, gap, by_states, by_distance)
    count = trace(alignment, m, n, pairs)
    _gather(room, x, y, pairs, len(pairs) - count)
    return _search(room, count, guide, _near(guide - _WIDER), _COARSE, halvings, _HOPELESS, move), count


@njit(nogil=True, cache=True)
def _best_fragments(room, sparse, x, y, guide, steps, pairs):
    """Superpositions of pieces of both chains, those first that all of both fits best: (n_fragments, 12), and the sums of scores."""
    m = x.shape[1]
    every = min(_SPARSE, max(1, m // _SPARSE_LENGTH))
    some_x, some_y = x[:, ::every].copy(), y[:, ::every].copy()
    scores, moves = np.empty(steps.n_fragments), np.empty((steps.n_fragments, MOVE))
    _fragments(room, x, y, guide, moves, scores)
    place_y(sparse, some_y, guide)
    for k in range(steps.n_fragments):
        if scores[k] > 0.0:
            place_x(sparse, some_x, moves[k], guide)
            scores[k] = align(sparse, some_x.shape[1], some_y.shape[1], _GAP, 0.0, 1.0)
    best, refined = np.zeros(steps.n_fragments), moves.copy()
    for k in np.argsort(-scores, kind="mergesort")[: steps.n_sparse]:
        for _ in range(_SPARSE_REFINEMENTS if scores[k] > 0.0 else 0):
            found, _count = _realigned(room, sparse, some_x, some_y, moves[k], guide, _GAP, 0.0, 1.0, steps.coarse_halvings, pairs)
            if found > best[k]:
                best[k] = found
                refined[k] = moves[k]
    order = np.argsort(-best, kind="mergesort")
    return refined[order], best[order]


@njit(nogil=True, cache=True)
def _best(x, y, start, states_x, states_y, scale, scale_y, steps, fine, sparse, best_move, best_pairs):
    """The alignment of two chains and its superposition with the greatest TM-score that is found; x is no longer than y.

    Coordinates are those of `shorter_and_longer`. The superposition, best for the TM-score by the shorter chain, goes to `best_move` (12,),
    the pairs to `best_pairs` (m, 2). Returned are the TM-scores by m and by n, of which `scale` and `scale_y` are d0, and the number of
    pairs.
    """
    m, n = x.shape[1], y.shape[1]
    room = _search_room(m)
    near = _near(scale)
    guide = scale + _WIDER
    pairs, move = np.empty((m, 2), np.int32), np.empty(MOVE)
    best_move[:] = 0.0
    best_move[0] = best_move[4] = best_move[8] = 1.0
    best, n_best = -1.0, 0
    if len(start):
        n_best = _gather(room, x, y, start, 0)
        best_pairs[:n_best] = start
        best = _search(room, n_best, guide, near, _COARSE, steps.coarse_halvings, _HOPELESS, best_move)
    if (m + n + 1) * (m + 1) <= MAXIMUM_CELLS:
        place_states(fine, states_x, states_y)
        place_y(fine, y, guide)
        halvings = steps.coarse_halvings
        # Where to begin: the given alignment, the best shift, secondary structure, that and what lies near, and pieces that fit.
        scores, moves = np.full(steps.n_refined, -1.0), np.empty((steps.n_refined, MOVE))
        if n_best:
            _keep(best, best_move, scores, moves)
        fragments, fragment_scores = _best_fragments(room, sparse, x, y, guide, steps, pairs)
        for kind in range(3 + steps.n_searched):
            if kind == 0:
                count = _thread(room, x, y, guide, near, pairs)
                _gather(room, x, y, pairs, m - count)
                found = _search(room, count, guide, near, _COARSE, halvings, _HOPELESS, move)
            elif kind == 1:
                move[:] = best_move
                found, count = _realigned(room, fine, x, y, move, guide, -1.0, 1.0, 0.0, halvings, pairs)
            elif kind < 2 + steps.n_searched:
                if fragment_scores[kind - 2] <= 0.0:
                    continue
                move[:] = fragments[kind - 2]
                found, count = _realigned(room, fine, x, y, move, guide, _GAP, 0.0, 1.0, halvings, pairs)
            else:
                if best <= 0.0:
                    continue
                move[:] = moves[0]
                found, count = _realigned(room, fine, x, y, move, guide, -1.0, 0.5, 1.0, halvings, pairs)
            _keep(found, move, scores, moves)
            if found > best:
                best, n_best = found, count
                best_move[:] = move
                best_pairs[:count] = pairs[m - count :]
        # All are refined once, then the best until nothing is gained, with gaps that cost and with free ones.
        some_scores, some_moves = scores.copy(), moves.copy()
        scores[:] = -1.0
        for kind in range(steps.n_refined + 2 * steps.n_finished):
            is_short = kind < steps.n_refined
            if is_short:
                move[:] = some_moves[kind]
                before = some_scores[kind]
                gap, rounds = _GAP, 1
            else:
                chosen = (kind - steps.n_refined) // 2
                if chosen >= steps.n_refined:
                    continue
                move[:] = moves[chosen]
                before = scores[chosen]
                gap, rounds = (_GAP, 0.0)[(kind - steps.n_refined) % 2], _MAXIMUM_REFINEMENTS
            if before < _HOPELESS_START * best:
                continue
            for _ in range(rounds):
                found, count = _realigned(room, fine, x, y, move, guide, gap, 0.0, 1.0, halvings, pairs)
                if is_short:
                    _keep(found, move, scores, moves)
                if found > best:
                    best, n_best = found, count
                    best_move[:] = move
                    best_pairs[:count] = pairs[m - count :]
                if abs(found - before) < _MINIMUM_GAIN * m:
                    break
                before = found
    # At last, more pieces; and pairs that lie far apart then are none.
    _gather(room, x, y, best_pairs[:n_best], 0)
    _search(room, n_best, guide, near, steps.last_step, _N_HALVINGS, _HOPELESS, best_move)
    distances_squared(room.x, room.y, n_best, best_move, room.squared)
    limit = farthest_pair(m)
    kept = 0
    for k in range(n_best):
        if room.squared[k] <= limit * limit:
            best_pairs[kept] = best_pairs[k]
            kept += 1
    _gather(room, x, y, best_pairs[:kept], 0)
    score_x = _search(room, kept, scale, near, steps.last_step, _N_HALVINGS, _HOPELESS, best_move) / m
    score_y = score_x
    if n != m:
        score_y = _search(room, kept, scale_y, _near(scale_y), steps.last_step, _N_HALVINGS, _HOPELESS, move) / n
    return score_x, score_y, kept


@njit(nogil=True, cache=True)
def _superpose_pairs(pairs, first, last, steps, fine, sparse, found, stop):
    """Superpose the pairs of chains `first:last`."""
    for k in range(first, last):
        if stop[0]:
            break
        x, y, states_x, states_y, is_turned = shorter_and_longer(pairs, k)
        m, n = x.shape[1], y.shape[1]
        start = start_of_pair(pairs, k, is_turned)
        aligned, move = np.empty((m, 2), np.int32), np.empty(MOVE)
        by_x, by_y, count = _best(x, y, start, states_x, states_y, tm_scale(m), tm_scale(n), steps, fine, sparse, move, aligned)
        report_pair(pairs, k, by_x, by_y, move, aligned[:count], found)


class ChainSuperposition:
    """Superposes pairs of chains with the threads of a processor.

    Parameters
    ----------
    device : the processor. steps : how far the search of each pair goes.
    """

    def __init__(self, device: Processor, steps: SearchSteps) -> None:
        self._device, self._steps = device, steps

    def superpose(
        self, pairs: ChainPairs, found: FoundSuperpositions, first: int = 0, last: int | None = None
    ) -> Generator[int, None, None]:
        """Align and superpose the pairs `first:last` so that the TM-score of each is the greatest that is found.

        Yields
        ------
        The pair up to which all is done, at least every tenth of a second.
        """
        last = len(pairs.fixed) if last is None else last
        shorter, longer = pairs.lengths
        fits = np.where((shorter + longer + 1) * (shorter + 1) <= MAXIMUM_CELLS, 1, 0)

        def work(begin: int, end: int, stop: StopFlag) -> None:
            some = slice(first + begin, first + end)
            m, n = int((shorter * fits)[some].max(initial=0)), int((longer * fits)[some].max(initial=0))
            fine, sparse = alignment_room(m, n), alignment_room(max(min(m, 2 * _SPARSE_LENGTH), m // _SPARSE + 1), n)
            _superpose_pairs(pairs, some.start, some.stop, self._steps, fine, sparse, found, stop)

        cells = (shorter * longer)[first:last].astype(np.float64)
        pieces = equal_partitions(cells, self._device.threads, maximum_cost=_CELLS_OF_PIECE / self._steps.n_searched)
        for done in self._device.run(work, pieces, 0):
            yield first + done
