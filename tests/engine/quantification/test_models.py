"""Linear models with blocks equal ordinary least squares by protein, and limma if R is installed."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from scipy import stats

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.quantification.amounts import RawQuantities
from proteoscope.engine.quantification.changes import moderated_variances, protein_changes
from proteoscope.engine.quantification.design import Design, DesignRow, Sample
from proteoscope.engine.quantification.models import comparison_model, fit
from proteoscope.engine.quantification.parameters import QuantificationParameters


def design(conditions: str, **blocks: str) -> Design:
    """Return a design from one character for each sample and for each block of it."""
    samples = [
        Sample(f"s{i}", name, conditions[: i + 1].count(name), **{block: text[i].strip() for block, text in blocks.items()})
        for i, name in enumerate(conditions)
    ]
    return Design(tuple(samples), tuple(DesignRow(i, i) for i in range(len(samples))))


def by_lstsq(row: np.ndarray, matrix: np.ndarray, contrast: np.ndarray) -> tuple[float, float, float, int]:
    """Return the estimate, its unscaled variance, the residual sum of squares and the degrees of freedom of a protein."""
    has = ~np.isnan(row)
    x, y = matrix[has], row[has]
    coefficient, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    inverse = np.linalg.pinv(x.T @ x)
    is_estimable = np.allclose(contrast @ np.linalg.pinv(x) @ x, contrast, atol=1e-6)
    left = float(((y - x @ coefficient) ** 2).sum())
    estimate = float(contrast @ coefficient) if is_estimable else np.nan
    return estimate, float(contrast @ inverse @ contrast), left, int(has.sum() - rank)


def test_linear_model_equals_least_squares_with_missing_values():
    model = comparison_model(design("aaabbbccc", subject="123123123", batch="112122211"), ("a", "b", "c"))
    assert model.blocks == ("batch", "subject")
    rng = np.random.default_rng(1)
    logs = rng.normal(20, 2, (300, 9))
    logs[rng.random(logs.shape) < 0.35] = np.nan
    fitted = fit(logs, model.matrix, model.contrasts)
    n_lost = 0
    for i, row in enumerate(logs):
        for k, contrast in enumerate(model.contrasts):
            estimate, factor, left, degrees = by_lstsq(row, model.matrix, contrast)
            assert fitted.degrees[i] == degrees
            np.testing.assert_allclose(fitted.estimate[i, k], estimate, rtol=1e-6, atol=1e-8)
            if not np.isnan(estimate):
                np.testing.assert_allclose(fitted.factor[i, k], factor, rtol=1e-6)
            n_lost += np.isnan(estimate)
            if degrees:
                np.testing.assert_allclose(fitted.variance[i], left / degrees, rtol=1e-6, atol=1e-10)
    assert n_lost > 10


def test_subject_blocks_give_a_paired_t_test():
    rng = np.random.default_rng(2)
    logs = rng.normal(20, 2, (100, 5)) + rng.normal(0, 2, (100, 1))
    logs = np.concatenate([logs, logs + rng.normal(0.3, 0.2, (100, 5))], axis=1)
    plan = design("aaaaabbbbb", subject="1234512345")
    (changes,) = protein_changes(RawQuantities.from_values(2.0**logs), comparison_model(plan, ("a", "b")), QuantificationParameters())
    apart = logs[:, 5:] - logs[:, :5]
    # For pairs, the residual variance of the model is half the variance of the differences.
    drawn, prior = moderated_variances(apart.var(axis=1, ddof=1) / 2, np.full(100, 4.0))
    t = apart.mean(axis=1) / np.sqrt(drawn * 2 / 5)
    np.testing.assert_allclose(changes.t, t, rtol=1e-6)
    np.testing.assert_allclose(changes.p_value, 2 * stats.t.sf(np.abs(t), 4 + prior.degrees), rtol=1e-6)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ({"plex": "111222"}, "conditions and plex change together"),
        ({"batch": "111223"}, "conditions and batch change together"),
        ({"subject": "112334"}, "conditions and subject change together"),
        ({"batch": "121 21"}, "not for sample s3"),
        ({"batch": "112112", "subject": "123231", "plex": "112221"}, "the error cannot be estimated from"),
    ],
)
def test_comparison_model_rejects_confounded_blocks(blocks, words):
    with pytest.raises(ParameterError, match=words):
        comparison_model(design("aaabbb", **blocks), ("a", "b"))


def test_comparison_model_omits_blocks_without_repeated_samples():
    model = comparison_model(design("aaabbb", batch="111111", subject="123456"), ("a", "b"))
    assert model.blocks == () and model.matrix.shape == (6, 2)
    assert any("subject" in message and "differ in all samples" in message for message in model.messages)
    scaled = comparison_model(design("aaabbbrr", plex="11122212"), ("a", "b"), reference="r")
    assert scaled.blocks == () and any("only the reference" in message for message in scaled.messages)


@pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not installed")
def test_moderated_test_with_blocks_equals_limma(tmp_path):
    if subprocess.run(["Rscript", "-e", "library(limma)"], capture_output=True, check=False).returncode:
        pytest.skip("limma is not installed")
    rng = np.random.default_rng(3)
    logs = rng.normal(20, 2, (400, 1)) + rng.normal(size=(400, 8)) * np.sqrt(0.1 * 5 / rng.chisquare(5, (400, 1)))
    logs[:, 4:] += rng.normal(0, 1, (400, 1))  # the second plex
    logs[rng.random(logs.shape) < 0.1] = np.nan
    plan = design("aabbaabb", plex="11112222")
    (changes,) = protein_changes(RawQuantities.from_values(2.0**logs), comparison_model(plan, ("a", "b")), QuantificationParameters())
    np.savetxt(tmp_path / "table.tsv", logs, delimiter="\t", fmt="%.15g")
    script = (
        f'library(limma); x <- as.matrix(read.table("{tmp_path}/table.tsv", sep="\\t", na.strings="nan"));'
        "b <- factor(c(0,0,1,1,0,0,1,1)); p <- factor(c(1,1,1,1,2,2,2,2)); fit <- eBayes(lmFit(x, model.matrix(~ b + p)));"
        f'write.table(cbind(fit$t[,2], fit$p.value[,2]), "{tmp_path}/out.tsv", row.names=FALSE, col.names=FALSE, na="nan")'
    )
    subprocess.run(["Rscript", "-e", script], check=True, capture_output=True)
    t, p_value = np.loadtxt(tmp_path / "out.tsv").T
    both = ~np.isnan(changes.t)
    assert both.sum() > 350 and not np.isnan(t[both]).any()
    np.testing.assert_allclose(changes.t[both], t[both], rtol=1e-6)
    np.testing.assert_allclose(changes.p_value[both], p_value[both], rtol=1e-6)
