"""Values reported for a query and a chain."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.structure_search.candidates import z_scores
from proteoscope.engine.structures.outputs import cigar, cigars, identities, identity


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.data(),
)
def test_structure_hit_cigar_covers_both_chains(n_query, n_target, data):
    n = data.draw(st.integers(0, min(n_query, n_target)))
    rows = [sorted(data.draw(st.sets(st.integers(0, m - 1), min_size=n, max_size=n))) for m in (n_query, n_target)]
    pairs = np.array(rows, np.int32).T.reshape(-1, 2)
    i = j = 0
    lengths = []
    for count, kind in re.findall(r"(\d+)([MID])", cigar(pairs, n_query, n_target)):
        for _ in range(int(count)):
            if kind == "M":
                lengths.append((i, j))
            i, j = i + (kind != "D"), j + (kind != "I")
    assert (i, j) == (n_query, n_target) and lengths == [tuple(pair) for pair in pairs.tolist()]


def test_alignment_columns_of_many_hits_equal_those_of_each_hit():
    rng = np.random.default_rng(5)
    chains = [rng.integers(18, 23, n).astype(np.int8) for n in (40, 3, 1, 25)]
    offsets = np.cumsum([0, *map(len, chains)])
    of_query, of_target = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    pairs = []
    for i, j in zip(of_query, of_target, strict=True):
        n = rng.integers(0, min(len(chains[i]), len(chains[j])) + 1)
        pairs.append(np.stack([np.sort(rng.choice(len(chains[k]), n, replace=False)) for k in (i, j)], axis=1).astype(np.int32))
    every, n_pairs = np.concatenate(pairs), np.array([len(some) for some in pairs])
    together = identities((np.concatenate(chains), offsets, of_query), (np.concatenate(chains), offsets, of_target), every, n_pairs)
    texts = cigars(every, np.cumsum([0, *n_pairs]), np.diff(offsets)[of_query], np.diff(offsets)[of_target])
    alone = [(chains[i], chains[j], some) for i, j, some in zip(of_query, of_target, pairs, strict=True)]
    assert together.tolist() == pytest.approx([identity(*chains_and_pairs) for chains_and_pairs in alone], abs=1e-15)
    assert texts.to_pylist() == [cigar(some, len(query), len(target)) for query, target, some in alone]


def test_z_scores_of_random_hits_are_standard_for_any_length():
    rng = np.random.default_rng(1)
    lengths = rng.integers(50, 900, 4000)
    scores = 20 * np.log(lengths) - 30 + rng.normal(0, 7, 4000)
    alone = z_scores(scores, lengths)
    for some in (lengths < 150, lengths > 600):
        assert abs(alone[some].mean()) < 0.25 and alone[some].std() == pytest.approx(1.0, abs=0.15)
    scores[:40] += 400
    in_batch = z_scores(scores, lengths)
    assert in_batch[:40].min() > 30 and np.abs(in_batch[40:] - alone[40:]).max() < 0.2


def test_structure_z_scores_are_zero_for_too_few_chains():
    assert z_scores(np.array([3.0, 9.0]), np.array([10, 20])).tolist() == [0.0, 0.0]
