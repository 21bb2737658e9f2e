"""Striped Smith-Waterman of single pairs against the recurrence written out in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.kernels.cpu.striped import find_ranges, limited_scores, striped_workspace
from proteoscope.kernels.cpu.substitution import Substitution
from proteoscope.kernels.cpu.traceback import PairedSequences
from proteoscope.kernels.device import stop_flag

N_RESIDUES = 4  # few residues give many alignments with the same score

seeds = st.integers(0, 2**32 - 1)
gap_costs = st.tuples(st.integers(0, 9), st.integers(0, 4))


def plain_cells(query, subject, scores, opening, extending):
    """Return the best score of alignments that end in each cell (m, n), computed cell by cell."""
    h, e = np.zeros((len(query) + 1, len(subject) + 1), np.int64), np.full(len(query) + 1, -(10**9))
    for j in range(1, len(subject) + 1):
        f = -(10**9)
        for i in range(1, len(query) + 1):
            e[i] = max(e[i] - extending, h[i, j - 1] - opening)
            f = max(f - extending, h[i - 1, j] - opening)
            h[i, j] = max(0, h[i - 1, j - 1] + scores[query[i - 1], subject[j - 1]], e[i], f)
    return h[1:, 1:]


def whole_scores(query, subject, scores, opening, extending):
    """Return the best score of alignments of all residues up to each cell, (m, n)."""
    h = np.full((len(query) + 1, len(subject) + 1), -(10**9))
    e, f, h[0, 0] = h.copy(), h.copy(), 0
    for i in range(len(query) + 1):
        for j in range(len(subject) + 1):
            if i and j:
                h[i, j] = h[i - 1, j - 1] + scores[query[i - 1], subject[j - 1]]
            if j:
                e[i, j] = max(e[i, j - 1] - extending, h[i, j - 1] - opening)
            if i:
                f[i, j] = max(f[i - 1, j] - extending, h[i - 1, j] - opening)
            h[i, j] = max(h[i, j], e[i, j], f[i, j])
    return h[1:, 1:]


def random_pairs(seed, n):
    """Return similar sequences as pairs, each with its query and its subject."""
    generator = np.random.default_rng(seed)
    core = generator.integers(0, N_RESIDUES, 40)
    sequences = []
    for _ in range(2 * n):
        relative = np.where(generator.random(40) < 0.2, generator.integers(0, N_RESIDUES, 40), core)[generator.integers(0, 30) :]
        flanks = [generator.integers(0, N_RESIDUES, generator.integers(1, 50)) for _ in range(2)]
        sequences.append(np.concatenate((flanks[0], relative, flanks[1])).astype(np.int8))
    places = np.cumsum([0, *map(len, sequences)])
    places, residues = np.stack((places[:-1], places[1:]), axis=1), np.concatenate(sequences)
    residues.flags.writeable = False
    pairs = PairedSequences(residues, places[::2].copy(), residues, places[1::2].copy())
    return pairs, list(zip(sequences[::2], sequences[1::2], strict=True))


@settings(max_examples=40, deadline=None)
@given(seed=seeds, gap=gap_costs, scale=st.sampled_from([1, 5, 2000]), least_bits=st.sampled_from([8, 16]))
def test_limited_scores_equal_the_recurrence(seed, gap, scale, least_bits):
    scores = np.random.default_rng(seed).integers(-6, 9, (N_RESIDUES, N_RESIDUES)) * scale
    costs, (pairs, sequences) = Substitution(scores, gap[0] * scale, gap[1] * scale), random_pairs(seed, 3)
    best = np.array(
        [plain_cells(*pair, scores, costs.first_residue_cost, costs.next_residue_cost).max(initial=0) for pair in sequences], np.int64
    )
    assert limited_scores(costs, pairs, np.full(3, 1 << 31), stop_flag(), least_bits).tolist() == best.tolist()
    for limits in (best - 1, best, best + 1, best // 2):
        limits = np.maximum(limits, 0)
        assert limited_scores(costs, pairs, limits, stop_flag(), least_bits).tolist() == np.minimum(limits, best).tolist()


@pytest.mark.parametrize("bits", [8, 16, 32])
@settings(max_examples=40, deadline=None)
@given(seed=seeds, gap=gap_costs)
def test_ranges_contain_all_alignments_with_the_first_end(bits, seed, gap):
    scores = np.random.default_rng(seed).integers(-3, 3, (N_RESIDUES, N_RESIDUES))
    costs, (pairs, sequences) = Substitution(scores, *gap), random_pairs(seed, 3)
    opening, extending = costs.first_residue_cost, costs.next_residue_cost
    cells = [plain_cells(*pair, scores, opening, extending) for pair in sequences]
    best = np.array([each.max() for each in cells], np.int64)
    chosen = np.flatnonzero((best > 0) & (best < costs.most(bits)))
    query_ranges, subject_ranges = pairs.query_places.copy(), pairs.subject_places.copy()
    workspace = striped_workspace(N_RESIDUES, max(len(subject) for _, subject in sequences), bits)
    arguments = costs.table(bits), opening, extending, workspace, stop_flag()
    find_ranges(chosen, pairs, best, *arguments, query_ranges, subject_ranges)
    for k in chosen.tolist():
        query, subject = sequences[k]
        rows, columns = query_ranges[k] - pairs.query_places[k, 0], subject_ranges[k] - pairs.subject_places[k, 0]
        end = np.argwhere(cells[k] == best[k])[0]  # the first in row order
        assert (rows[1] - 1, columns[1] - 1) == tuple(end)
        # Both sequences are aligned from each start to this end.
        last = end[0] + 1, end[1] + 1
        scores_from = whole_scores(query[: last[0]][::-1], subject[: last[1]][::-1], scores, opening, extending)[::-1, ::-1]
        starts = np.argwhere(scores_from == best[k])
        assert (rows[0], columns[0]) == tuple(starts.min(axis=0))


def test_set_stop_flag_ends_scoring():
    pairs, _ = random_pairs(1, 1)
    costs = Substitution(np.full((N_RESIDUES, N_RESIDUES), 5), 9, 1)
    stop = stop_flag()
    assert limited_scores(costs, pairs, np.full(1, 1000), stop).tolist() > [0]
    stop[0] = 1
    assert limited_scores(costs, pairs, np.full(1, 1000), stop).tolist() == [0]
