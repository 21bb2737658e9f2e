"""Error rates of groups of matches that are judged apart."""

import numpy as np

from engine.identification.parameters import IdentificationParameters
from engine.matches.tables import FEW_DECOYS, error_rates
from engine.statistics.target_decoy import q_values


def test_groups_are_judged_by_their_own_decoys_and_small_ones_with_one_more():
    random = np.random.default_rng(4)
    settings = IdentificationParameters()
    score, is_decoy = random.normal(size=300), random.random(300) < 0.4
    group = random.integers(0, 3, 300)
    is_decoy[(group == 2) & (np.cumsum((group == 2) & is_decoy) > FEW_DECOYS - 1)] = False  # one too few
    found, _ = error_rates(score, is_decoy, settings, group)
    for one in range(3):
        rows = group == one
        assert found[rows].tolist() == q_values(score[rows], is_decoy[rows], plus_one=one == 2).tolist()
    alone, _ = error_rates(score, is_decoy, settings)
    assert alone.tolist() == q_values(score, is_decoy).tolist()
    # The first group is the usual one: it never counts more than it has.
    few, _ = error_rates(score[:10], np.arange(10) == 3, settings, np.zeros(10, np.int64))
    assert few.tolist() == q_values(score[:10], np.arange(10) == 3).tolist()
