"""Missing values by condition: counts, outcomes, and Fisher's exact test against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control, fisher_exact

from proteoscope.engine.quantification.identified import Proteins
from proteoscope.engine.quantification.results import exact_test, missing_table


def proteins(n: int) -> Proteins:
    return Proteins([f"P{i}" for i in range(n)], [[]] * n, [""] * n, np.zeros(n, np.int64))


@pytest.mark.parametrize(("n_samples", "n_all"), [(3, 6), (4, 11), (7, 8)])
def test_fisher_exact_test_equals_scipy_for_all_small_tables(n_samples, n_all):
    missing, others = (x.ravel() for x in np.mgrid[: n_samples + 1, : n_all - n_samples + 1])
    expected = [
        fisher_exact([[a, n_samples - a], [b, n_all - n_samples - b]]).pvalue
        for a, b in zip(missing.tolist(), others.tolist(), strict=True)
    ]
    np.testing.assert_allclose(exact_test(missing, missing + others, n_samples, n_all), expected, rtol=1e-9)


def test_missing_table_counts_and_names_missing_conditions():
    value = np.ones((4, 9))
    value[1, :4] = np.nan  # all of the first condition
    value[2, [0, 5]] = np.nan
    value[3, :8] = np.nan  # the last sample has no condition
    conditions = [*"aaaabbbb", ""]
    rows = missing_table(value, conditions, proteins(4)).to_pylist()
    shown = {(row["accession"], row["condition"]): (row["n_missing"], row["missing_fraction"], row["outcome"]) for row in rows}
    assert shown == {
        ("P0", "a"): (0, 0.0, "measured"),
        ("P0", "b"): (0, 0.0, "measured"),
        ("P1", "a"): (4, 1.0, "missing in the condition"),
        ("P1", "b"): (0, 0.0, "measured"),
        ("P2", "a"): (1, 0.25, "partly missing"),
        ("P2", "b"): (1, 0.25, "partly missing"),
        ("P3", "a"): (4, 1.0, "missing in all"),
        ("P3", "b"): (4, 1.0, "missing in all"),
    }
    p_values = {row["accession"]: row["p_value"] for row in rows}
    assert p_values == {"P0": None, "P1": pytest.approx(2 / 70), "P2": 1.0, "P3": None}
    tested = [row for row in rows if row["p_value"] is not None]
    expected = false_discovery_control([row["p_value"] for row in tested])
    np.testing.assert_allclose([row["q_value"] for row in tested], expected)


def test_missing_table_is_empty_if_samples_have_no_conditions():
    assert not len(missing_table(np.ones((2, 3)), ["", "", ""], proteins(2)))
    (only, *_) = missing_table(np.full((1, 3), np.nan), ["a"] * 3, proteins(1)).to_pylist()
    assert only["outcome"] == "missing in all" and only["p_value"] is None
