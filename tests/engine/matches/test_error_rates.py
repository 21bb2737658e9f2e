"""Error rates of matches estimated in one list."""

import numpy as np

from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.tables import error_rates
from proteoscope.engine.statistics.target_decoy import expected_decoys, q_values


def test_psm_error_rates_equal_q_values_with_expected_decoys():
    random = np.random.default_rng(4)
    score, is_decoy = random.normal(size=300), random.random(300) < 0.4
    expected = expected_decoys(score, is_decoy, score)
    rates, _ = error_rates(score, is_decoy, IdentificationParameters())
    assert rates.tolist() == q_values(score, is_decoy, expected=expected).tolist()
    peptide = np.arange(300) // 3
    best: dict[int, float] = {}
    for value, number in zip(score[is_decoy].tolist(), peptide[is_decoy].tolist(), strict=True):
        best[number] = max(value, best.get(number, -np.inf))
    at_once = is_decoy.sum() / len(best)
    assert at_once > 1.2
    expected = at_once * expected_decoys(np.array(list(best.values())), np.ones(len(best), bool), score)
    rates, _ = error_rates(score, is_decoy, IdentificationParameters(), peptide=peptide)
    np.testing.assert_allclose(rates, q_values(score, is_decoy, expected=expected, at_once=at_once))
    rates, _ = error_rates(score, is_decoy, IdentificationParameters(plus_one=True), peptide=peptide)
    assert rates.tolist() == q_values(score, is_decoy, plus_one=True).tolist()
