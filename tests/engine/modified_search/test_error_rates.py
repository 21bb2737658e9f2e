"""Ranking of the forms of a spectrum's candidates."""

from types import SimpleNamespace

import numpy as np

from proteoscope.engine.modified_search.error_rates import _ranks


def test_modified_search_ranks_each_peptide_once_by_score():
    random = np.random.default_rng(2)
    n = 400
    spectrum = np.sort(random.integers(0, 60, n))
    position, score = random.integers(0, 5, n), random.integers(0, 6, n).astype(float)
    before = np.concatenate([random.permutation(count) + 1 for count in np.bincount(spectrum) if count])
    ranks = _ranks(SimpleNamespace(spectrum=spectrum, position=position, rank=before), score)
    for number in np.unique(spectrum):
        rows = sorted(np.flatnonzero(spectrum == number).tolist(), key=lambda row: (-score[row], before[row]))
        seen = []
        for row in rows:
            if position[row] in seen:
                assert ranks[row] == 0
            else:
                seen.append(position[row])
                assert ranks[row] == len(seen)


def test_modified_search_ranking_accepts_no_matches():
    none = np.empty(0, np.int64)
    assert len(_ranks(SimpleNamespace(spectrum=none, position=none, rank=none), np.empty(0))) == 0
