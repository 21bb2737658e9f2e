"""Local alignment of protein chains by their descriptors, in two phases (Mrozek et al. 2014, J Mol Model 20:2067, equations 7-19).

Phase 1 aligns secondary structure elements. The reward of two elements of lengths a and b is s (1 - |a - b| / (a + b)), which equals 2 s
min(a, b) / (a + b). The factor s is 1 for two helices or two strands, 0 for a helix with a strand, and 1/2 if one of the elements is coil.
Phase 2 aligns the residues of the chains that pass phase 1, one chain per vector lane; four residues of every chain are computed in one
pass along the query. Both use integers and the same recurrence (Gotoh 1982), with g the cost of the first and x of each further element of
a gap::

    H[i, j] = max(0, H[i-1, j-1] + reward, E[i, j], F[i, j])
    E[i, j+1] = max(E[i, j] - x, H[i, j] - g)      F[i+1, j] = max(F[i, j] - x, H[i, j] - g)
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.structure_pairs import element_score
from proteoscope.kernels.cpu.vectors import (
    REGISTER_BYTES,
    add,
    aligned,
    gather,
    load,
    load_codes,
    look_up,
    maximum,
    minimum,
    spread,
    store,
    subtract,
)
from proteoscope.kernels.device import StopFlag, equal_partitions
from proteoscope.kernels.structure_layouts import CODES, LENGTH_STEPS, PADDING, Rewards, StructureArrays

__all__ = ["StructureSearch"]

LANES = REGISTER_BYTES // 4  # number of chains aligned with the query together
_COLUMNS = 4
_TABLE_ROW = 64  # elements of a table row in the kernel; each row is stored twice
_CELLS_OF_PARTITION = 200_000_000  # a tenth of a second with AVX-512
_PARTITIONS_OF_THREAD = 3


@njit(nogil=True, cache=True, error_model="numpy")
def _score_elements(type_q, length_q, offsets, types, lengths, gap_first, gap_next, first, last, scores, stop):
    """Compute the phase 1 scores of the chains `first:last`."""
    for chain in range(first, last):
        if stop[0]:
            break
        elements = slice(offsets[chain], offsets[chain + 1])
        scores[chain] = element_score(type_q, length_q, types[elements], lengths[elements], gap_first, gap_next)


@njit(nogil=True, cache=True, error_model="numpy")
def score_group(
    query,
    rows,
    row_codes,
    shifts,
    tables,
    of_length,
    of_angle,
    gap_first,
    gap_next,
    offsets,
    state,
    length,
    angle,
    chains,
    h_row,
    e_row,
    profile,
    codes,
    lengths,
    angles,
    best,
    scores,
    stop,
):
    """Compute the phase 2 scores of up to one chain per vector lane.

    Parameters
    ----------
    query
        Lengths and angles of the query, (2, m) int32.
    rows : (m, k) int64
        Row in `profile` of the rewards of each residue and alphabet.
    row_codes : (p, 2) int64
        For each row of the profile: start of its rewards in `tables`, and four times the alphabet.
    tables
        Reward tables of `_Prepared`, int32, aligned.
    chains
        Indices of the chains.
    scores
        Output; int32, score of each chain.
    h_row, e_row, profile, codes, lengths, angles, best
        Aligned workspace: (m * LANES,), (m * LANES,), (p * 4 * LANES,), (k * 4 * LANES,), (4 * LANES,), (4 * LANES,) and (LANES,); `codes`
        is int8, the others int32.
    """
    m, k = rows.shape
    compares = len(of_length) > 0
    zero = spread(h_row, 0)
    first_cost, next_cost = spread(h_row, gap_first), spread(h_row, gap_next)
    longest_difference = spread(h_row, LENGTH_STEPS - 1)
    for i in range(m):
        store(h_row, i * LANES, zero)
        store(e_row, i * LANES, zero)
    longest = 0
    for chain in chains:
        longest = max(longest, offsets[chain + 1] - offsets[chain])
    top = zero
    for column in range(0, longest, _COLUMNS):
        if stop[0]:
            return
        codes[:] = PADDING
        for lane in range(len(chains)):
            start, end = offsets[chains[lane]] + column, offsets[chains[lane] + 1]
            for c in range(min(_COLUMNS, end - start)):
                for a in range(k):
                    codes[(a * _COLUMNS + c) * LANES + lane] = state[start + c] >> np.uint32(shifts[a]) & np.uint32(CODES - 1)
                if compares:
                    lengths[c * LANES + lane], angles[c * LANES + lane] = length[start + c], angle[start + c]
        for p in range(len(row_codes)):
            table, position = row_codes[p, 0], row_codes[p, 1] * LANES
            for c in range(_COLUMNS):
                result = look_up(tables, table, load_codes(codes, position + c * LANES, profile))
                store(profile, (p * _COLUMNS + c) * LANES, result)
        lengths_0, lengths_1, lengths_2, lengths_3 = _four(lengths)
        angles_0, angles_1, angles_2, angles_3 = _four(angles)
        f_0, f_1, f_2, f_3 = zero, zero, zero, zero
        above_0, above_1, above_2, above_3 = zero, zero, zero, zero
        for i in range(m):
            position = rows[i, 0]
            r_0, r_1 = load(profile, position), load(profile, position + LANES)
            r_2, r_3 = load(profile, position + 2 * LANES), load(profile, position + 3 * LANES)
            for a in range(1, k):
                position = rows[i, a]
                r_0, r_1 = add(r_0, load(profile, position)), add(r_1, load(profile, position + LANES))
                r_2, r_3 = add(r_2, load(profile, position + 2 * LANES)), add(r_3, load(profile, position + 3 * LANES))
            if compares:
                own_length, own_angle = spread(h_row, query[0, i]), spread(h_row, query[1, i])
                r_0 = add(r_0, _by_difference(of_length, of_angle, lengths_0, angles_0, own_length, own_angle, longest_difference))
                r_1 = add(r_1, _by_difference(of_length, of_angle, lengths_1, angles_1, own_length, own_angle, longest_difference))
                r_2 = add(r_2, _by_difference(of_length, of_angle, lengths_2, angles_2, own_length, own_angle, longest_difference))
                r_3 = add(r_3, _by_difference(of_length, of_angle, lengths_3, angles_3, own_length, own_angle, longest_difference))
            e, left = load(e_row, i * LANES), load(h_row, i * LANES)
            h_0, e, f_0, top = _cell(above_0, r_0, e, f_0, top, zero, first_cost, next_cost)
            h_1, e, f_1, top = _cell(above_1, r_1, e, f_1, top, zero, first_cost, next_cost)
            h_2, e, f_2, top = _cell(above_2, r_2, e, f_2, top, zero, first_cost, next_cost)
            h_3, e, f_3, top = _cell(above_3, r_3, e, f_3, top, zero, first_cost, next_cost)
            above_0, above_1, above_2, above_3 = left, h_0, h_1, h_2
            store(h_row, i * LANES, h_3)
            store(e_row, i * LANES, e)
    store(best, 0, top)
    for lane in range(len(chains)):
        scores[chains[lane]] = best[lane]


@njit(inline="always")
def _four(values):
    """Return the vectors of four columns."""
    return load(values, 0), load(values, LANES), load(values, 2 * LANES), load(values, 3 * LANES)


@njit(inline="always")
def _by_difference(of_length, of_angle, lengths, angles, own_length, own_angle, longest_difference):
    """Return the reward for the differences between length and angle of a column and length and angle of a row."""
    of_lengths = maximum(subtract(lengths, own_length), subtract(own_length, lengths))
    of_angles = maximum(subtract(angles, own_angle), subtract(own_angle, angles))
    return add(gather(of_length, minimum(of_lengths, longest_difference)), gather(of_angle, of_angles))


@njit(inline="always")
def _cell(diagonal, reward, e, f, best, zero, first_cost, next_cost):
    """Compute one cell; return H, E of the next column, F of the next row, and the best H so far."""
    h = maximum(maximum(add(diagonal, reward), zero), maximum(e, f))
    opened = subtract(h, first_cost)
    e = maximum(subtract(e, next_cost), opened)
    f = maximum(subtract(f, next_cost), opened)
    return h, e, f, maximum(best, h)


class StructureSearch:
    """Search of a database of chains on the threads of a CPU.

    Parameters
    ----------
    device
        CPU whose threads search.
    chains
        Chains sorted by length; in other orders lanes remain unused.
    """

    def __init__(self, device: Processor, chains: StructureArrays) -> None:
        self._device, self._chains, self._lengths = device, chains, chains.lengths

    def score(
        self,
        query: StructureArrays,
        rewards: Rewards,
        least: int,
        scores: NDArray[np.int32],
        element_scores: NDArray[np.int32],
        first: int = 0,
        last: int | None = None,
    ) -> Generator[int, None, None]:
        """Score the query, which is one chain, against the chains `first:last` in both phases.

        Parameters
        ----------
        least
            Minimum score in phase 1 of chains for phase 2; 0 skips phase 1.
        scores, element_scores : (n,)
            Output; elements `first:last` are written. `scores` receives the scores of phase 2, -1 for chains below `least`;
            `element_scores` receives the scores of phase 1 in `ELEMENT_UNITS`, -1 without phase 1.

        Yields
        ------
        End of the finished range, at least every tenth of a second.
        """
        last = len(self._lengths) if last is None else last
        prepared = _Prepared(query, rewards, self._chains)

        def work(begin: int, end: int, stop: StopFlag) -> None:
            prepared.score(first + begin, first + end, least, scores, element_scores, stop)

        cells = self._lengths[first:last] * max(1, len(query.state))
        chunks = equal_partitions(cells, self._device.threads, maximum_cost=_CELLS_OF_PARTITION, per_worker=_PARTITIONS_OF_THREAD)
        for done in self._device.run(work, chunks, 0):
            yield first + done


class _Prepared:
    """Query in the form of the kernel."""

    def __init__(self, query: StructureArrays, rewards: Rewards, chains: StructureArrays) -> None:
        self._query, self._rewards, self._chains = query, rewards, chains
        codes = query.state[:, None] >> rewards.shifts.astype(np.uint32) & np.uint32(CODES - 1)
        numbered = codes + np.arange(len(rewards.shifts)) * CODES
        result, rows = np.unique(numbered, return_inverse=True)
        self._rows = rows.reshape(codes.shape).astype(np.int64) * (_COLUMNS * LANES)
        self._row_codes = np.stack([result * _TABLE_ROW, result // CODES * _COLUMNS], axis=1).astype(np.int64)
        self._tables = aligned(rewards.tables.size // CODES * _TABLE_ROW, np.int32)
        self._tables.reshape(-1, 2, CODES)[:] = rewards.tables.reshape(-1, 1, CODES)
        self._geometry = np.stack([query.length, query.angle]).astype(np.int32)

    def score(
        self, first: int, last: int, least: int, scores: NDArray[np.int32], element_scores: NDArray[np.int32], stop: StopFlag
    ) -> None:
        """Compute both phases for the chains `first:last`."""
        query, rewards, chains = self._query, self._rewards, self._chains
        taking_part = np.arange(first, last)
        element_scores[first:last] = scores[first:last] = -1
        if least > 0:
            _score_elements(
                query.element_type,
                query.element_length,
                chains.element_offsets,
                chains.element_type,
                chains.element_length,
                rewards.element_gap_first,
                rewards.element_gap_next,
                first,
                last,
                element_scores,
                stop,
            )
            taking_part = first + np.flatnonzero(element_scores[first:last] >= least)
        lengths = chains.offsets[taking_part + 1] - chains.offsets[taking_part]
        taking_part = taking_part[np.argsort(lengths, kind="stable")]
        m = len(query.state)
        h_row, e_row, profile, lengths, angles, best = (
            aligned(size * LANES, np.int32) for size in (m, m, len(self._row_codes) * _COLUMNS, _COLUMNS, _COLUMNS, 1)
        )
        codes = aligned(len(rewards.shifts) * _COLUMNS * LANES, np.int8)
        for begin in range(0, len(taking_part), LANES):
            score_group(
                self._geometry,
                self._rows,
                self._row_codes,
                rewards.shifts,
                self._tables,
                rewards.of_length,
                rewards.of_angle,
                rewards.gap_first,
                rewards.gap_next,
                chains.offsets,
                chains.state,
                chains.length,
                chains.angle,
                taking_part[begin : begin + LANES],
                h_row,
                e_row,
                profile,
                codes,
                lengths,
                angles,
                best,
                scores,
                stop,
            )
