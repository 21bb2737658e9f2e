"""Sets of visited alignments: each is identified by its pairs or by the superposition it results from."""

from __future__ import annotations

import numpy as np

from proteoscope.kernels.cpu.least_squares import MOVE
from proteoscope.kernels.cpu.visited_alignments import forget, mark_of_move, mark_of_pairs, met_alignments, note, place_of


def test_visited_alignments_distinguish_different_alignments():
    rng, met = np.random.default_rng(0), met_alignments(200)
    moves = rng.normal(size=(60, MOVE))
    marks = [mark_of_move(move, gap, by_states) for move in moves for gap, by_states in ((-0.6, 0.0), (0.0, 0.0), (-1.0, 0.5))]
    pairs = np.stack([np.sort(rng.choice(300, 50, replace=False)) for _ in range(2)], axis=1).astype(np.int32)
    for k in range(20):
        other = pairs.copy()
        other[k, 0] += 1
        marks += [mark_of_pairs(other, 0), mark_of_pairs(pairs, k + 1)]
    places = [place_of(met, mark) for mark in marks]
    assert len(set(places)) == len(marks)
    assert [place_of(met, mark) for mark in marks] == places


def test_mark_of_pairs_ignores_pairs_before_the_start_index():
    pairs = np.array([[7, 7], [1, 2], [3, 5]], np.int32)
    assert mark_of_pairs(pairs, 1) == mark_of_pairs(pairs[1:].copy(), 0)
    assert mark_of_pairs(pairs[:, ::-1].copy(), 1) != mark_of_pairs(pairs, 1)


def test_visited_alignments_return_results_until_cleared():
    met, move = met_alignments(5), np.arange(float(MOVE))
    place = place_of(met, mark_of_move(move, -0.6, 0.0))
    assert met.rows[place] == -1
    met.rows[place] = note(met, 12.5, 40, move)
    row = met.rows[place_of(met, mark_of_move(move.copy(), -0.6, 0.0))]
    assert (met.score[row], met.counts[row]) == (12.5, 40)
    assert (met.moves[row] == move).all()
    forget(met)
    assert met.rows[place_of(met, mark_of_move(move, -0.6, 0.0))] == -1
