"""Protein changes between conditions: moderated t-tests as in limma, and Benjamini-Hochberg correction.

A linear model of conditions and blocks is fitted to the log2 quantities of each protein. The residual variance is shrunk towards a prior
common to all proteins (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3:3), and t is computed with the shrunk variance. A test needs two
measured values in each condition. Missing quantities are not used unless imputation is on: two or more measured values in one condition
are then compared with imputed values in the other, which contribute to the difference but not to the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import RawQuantities, State
from proteoscope.engine.quantification.identified import Proteins
from proteoscope.engine.quantification.models import ComparisonModel, Fit, fit
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.tables import CHANGES
from proteoscope.engine.results.arrow import or_null, taken

__all__ = [
    "Changes",
    "VariancePrior",
    "adjusted",
    "changes_table",
    "model_fit",
    "moderated_variances",
    "protein_changes",
]

_INTERVAL = 0.95
_LOW_PERCENT, _LESS_LOW_PERCENT = 1.0, 2.0
"""Percentile of a sample's proteins used as imputed value, and a higher percentile; the distance between both is the assumed error.

The error accounts for missing quantities that are just below the limit of detection.
"""
_FEWEST_VARIANCES = 3
_FEWEST_VALUES = 2
"""Minimum number of measured values per condition for a test.

With one value, the variance would be based on other proteins only, and a wrong identification would appear as a large change.
"""


class VariancePrior(NamedTuple):
    """Prior of the variances of all proteins: a scaled inverse chi-square distribution, given by its degrees of freedom and location."""

    degrees: float
    variance: float


def moderated_variances(variance: NDArray[np.float64], degrees: NDArray[np.float64]) -> tuple[NDArray[np.float64], VariancePrior]:
    """Return variances shrunk towards a common prior, and the prior.

    The prior is fitted to the moments of the logarithms of the variances (Smyth 2004, section 6.2).

    Parameters
    ----------
    variance : ndarray of float64, shape (n,)
        Residual variances, at least 0.
    degrees : ndarray of float64, shape (n,)
        Degrees of freedom of each variance; variances with 0 are not used.

    Returns
    -------
    ndarray of float64, shape (n,)
        Shrunk variances; NaN without degrees of freedom.
    VariancePrior
        Fitted prior.
    """
    from scipy.special import digamma, polygamma  # slow to import: loaded after the files are read

    used = (degrees > 0) & np.isfinite(variance)
    if used.sum() < _FEWEST_VARIANCES:
        return np.where(used, variance, np.nan), VariancePrior(0.0, 0.0)
    # As in limma: variances of zero are replaced by a small fraction of the median.
    s2, d = variance[used], degrees[used] / 2
    middle = float(np.median(s2))
    s2 = np.maximum(s2, 1e-5 * (middle if middle > 0 else 1.0))
    e = np.log(s2) - digamma(d) + np.log(d)
    spread = float(e.var(ddof=1) - polygamma(1, d).mean())
    if spread > 0:
        half = _inverse_trigamma(spread)
        prior = VariancePrior(2 * half, float(np.exp(e.mean() + digamma(half) - np.log(half))))
        drawn = (prior.degrees * prior.variance + degrees * variance) / (prior.degrees + degrees)
    else:
        prior = VariancePrior(float("inf"), float(np.exp(e.mean())))
        drawn = np.full(len(variance), prior.variance)
    return np.where(used, drawn, np.nan), prior


def _inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = `value` > 0.

    Newton's method is applied to 1 / trigamma, which is nearly linear (Smyth 2004, appendix).
    """
    from scipy.special import polygamma  # slow to import: loaded after the files are read

    if value > 1e7:
        return float(1 / np.sqrt(value))
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-10:
            break
    return x


@dataclass(frozen=True)
class Changes:
    """Comparison of p proteins between a condition and the reference condition.

    Attributes
    ----------
    name : str
        Names of both conditions.
    log2_fold_change : ndarray of float64, shape (p,)
        log2 of the ratio of the condition to the reference; NaN if it cannot be estimated, like the limits and the statistics of the test.
    low, high : ndarray of float64, shape (p,)
        Limits of the 95 % confidence interval of the log2 fold change.
    t, p_value, q_value : ndarray of float64, shape (p,)
        t statistic, p-value and q-value of each protein.
    outcome : ndarray of str, shape (p,)
        Outcome of the test of each protein.
    n_first, n_second : ndarray of int64, shape (p,)
        Number of samples with a measured value, in the condition and in the reference condition.
    n_too_low, n_not_seen, n_imputed : ndarray of int64, shape (p,)
        Number of samples, in both conditions, whose quantity is too low or refused, not seen, or imputed.
    """

    name: str
    log2_fold_change: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    t: NDArray[np.float64]
    p_value: NDArray[np.float64]
    q_value: NDArray[np.float64]
    outcome: NDArray[np.str_]
    n_first: NDArray[np.int64]
    n_second: NDArray[np.int64]
    n_too_low: NDArray[np.int64]
    n_not_seen: NDArray[np.int64]
    n_imputed: NDArray[np.int64]

    @property
    def n_tested(self) -> int:
        """Number of proteins with a p-value."""
        return int((~np.isnan(self.p_value)).sum())

    @property
    def n_changed(self) -> int:
        """Number of proteins that changed at the requested false discovery rate."""
        return int((self.outcome == "changed").sum())


def model_fit(logs: NDArray[np.float64], model: ComparisonModel) -> Fit:
    """Return the fit of a linear model, with moderated variances and their degrees of freedom.

    Parameters
    ----------
    logs : ndarray of float64, shape (p, s)
        log2 quantities in the samples of the model, NaN if missing.
    model : ComparisonModel
        Model of the compared conditions.
    """
    result = fit(logs, model.matrix, model.contrasts)
    variance, prior = moderated_variances(result.variance, result.degrees)
    # As in limma: at most as many degrees of freedom as all proteins have together.
    return result._replace(variance=variance, degrees=np.minimum(result.degrees + prior.degrees, result.degrees.sum()))


def protein_changes(proteins: RawQuantities, model: ComparisonModel | None, parameters: QuantificationParameters) -> list[Changes]:
    """Compare each further condition of a model with the first; return an empty list if there is no model.

    Parameters
    ----------
    proteins : RawQuantities, shape (p, s)
        Normalised amounts of proteins in all samples of the design.
    model : ComparisonModel or None
        Model of the compared conditions; None if nothing is compared.
    parameters : QuantificationParameters
        Parameters of the quantification.

    Returns
    -------
    list of Changes
    """
    if model is None:
        return []
    logs, groups = proteins.log2[:, model.columns], model.groups
    fitted = model_fit(logs, model)
    has = ~np.isnan(logs)
    number = np.stack([has[:, model.condition == i].sum(axis=1) for i in range(len(groups))], axis=1)
    result = []
    for i in range(1, len(groups)):
        sample, imputed = _sample(proteins, logs, model, fitted, number, i, parameters)
        state = proteins.state[:, model.columns[np.isin(model.condition, (0, i))]]
        counts = {
            "n_first": number[:, i],
            "n_second": number[:, 0],
            "n_too_low": np.isin(state, (State.TOO_LOW, State.REFUSED)).sum(axis=1),
            "n_not_seen": (state == State.NOT_SEEN).sum(axis=1),
            "n_imputed": imputed.sum(axis=1),
        }
        tested = _test_proteins(sample, fitted, parameters.change_fdr)
        result.append(Changes(f"{groups[i]} / {groups[0]}", sample.difference, *tested, **counts))
    return result


def _sample(
    proteins: RawQuantities,
    logs: NDArray[np.float64],
    model: ComparisonModel,
    fitted: Fit,
    number: NDArray[np.int64],
    i: int,
    parameters: QuantificationParameters,
) -> tuple[_Sample, NDArray[np.bool_]]:
    """Return the values for a test of condition `i` against the first condition, and a mask of the imputed quantities, (p, s)."""
    estimate, factor = fitted.estimate[:, i - 1], fitted.factor[:, i - 1]
    is_apart = _without_ratio(proteins, model, number, i)
    imputed, spread, rows = np.zeros(logs.shape, np.bool_), np.zeros(len(logs)), np.zeros(len(logs), np.bool_)
    if parameters.imputation == "low":
        filled, imputed, spread = _imputed(logs, model, np.where(is_apart[:, None], 0, number), i)
        refitted = fit(filled, model.matrix, model.contrasts[[i - 1]])
        rows[:] = imputed.any(axis=1)
        estimate, factor = np.where(rows, refitted.estimate[:, 0], estimate), np.where(rows, refitted.factor[:, 0], factor)
    return _Sample(estimate, factor, number[:, i], number[:, 0], rows, spread, is_apart), imputed


def _without_ratio(proteins: RawQuantities, model: ComparisonModel, number: NDArray[np.int64], i: int) -> NDArray[np.bool_]:
    """Return True for proteins without values in condition `i` or the first condition, because samples share no ion with others."""
    result = np.zeros(len(proteins), np.bool_)
    for k in (0, i):
        state = proteins.state[:, model.columns[model.condition == k]]
        result |= (number[:, k] == 0) & (state == State.NO_SHARED_ION).any(axis=1)
    return result


class _Sample(NamedTuple):
    """Values of p proteins in two conditions, for a test.

    Attributes
    ----------
    difference : ndarray of float64, shape (p,)
        Difference of mean log2 quantities.
    factor : ndarray of float64, shape (p,)
        Variance of the difference divided by the residual variance.
    n_first, n_second : ndarray of int64, shape (p,)
        Number of measured values in the condition and in the reference condition.
    is_imputed : ndarray of bool, shape (p,)
        True if the values of one condition are imputed.
    imputed_error : ndarray of float64, shape (p,)
        Error of imputed values, in log2 units.
    is_apart : ndarray of bool, shape (p,)
        True if the amounts of one condition have no ratio to those of the other condition.
    """

    difference: NDArray[np.float64]
    factor: NDArray[np.float64]
    n_first: NDArray[np.int64]
    n_second: NDArray[np.int64]
    is_imputed: NDArray[np.bool_]
    imputed_error: NDArray[np.float64]
    is_apart: NDArray[np.bool_]


def _imputed(
    logs: NDArray[np.float64], model: ComparisonModel, number: NDArray[np.int64], i: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Return the log2 quantities with imputed values, True for imputed values, and the error of the imputed values of each protein.

    A protein gets imputed values in one of the two conditions (condition `i` and the first condition) if it has no value there, and at
    least two values in the other. The imputed value is the first percentile of all values in the sample.
    """
    result, imputed, spread = logs.copy(), np.zeros(logs.shape, np.bool_), np.zeros(len(logs))
    for lacking, other in ((i, 0), (0, i)):
        rows = np.flatnonzero((number[:, lacking] == 0) & (number[:, other] >= _FEWEST_VALUES))
        for column in np.flatnonzero(model.condition == lacking).tolist():
            if not np.isnan(logs[:, column]).all():
                low, less_low = np.nanpercentile(logs[:, column], (_LOW_PERCENT, _LESS_LOW_PERCENT))
                result[rows, column] = low
                imputed[rows, column] = True
                spread[rows] = np.maximum(spread[rows], less_low - low)
    return result, imputed, spread


def adjusted(p_value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return q-values by the method of Benjamini and Hochberg, in the shape of `p_value`; NaN for a p-value of NaN."""
    from scipy.stats import false_discovery_control  # slow to import: loaded after the files are read

    q_value, is_tested = np.full(p_value.shape, np.nan), ~np.isnan(p_value)
    if is_tested.any():
        q_value[is_tested] = false_discovery_control(p_value[is_tested])
    return q_value


def _test_proteins(sample: _Sample, fitted: Fit, fdr: float) -> tuple[NDArray[Any], ...]:
    """Return the confidence interval of the log2 fold change, t, p-value, q-value and outcome of each protein."""
    from scipy.stats import t as students  # slow to import: loaded after the files are read

    difference, degrees = sample.difference, fitted.degrees
    both = (sample.n_first > 0) & (sample.n_second > 0)
    is_enough = (np.minimum(sample.n_first, sample.n_second) >= _FEWEST_VALUES) | sample.is_imputed
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(fitted.variance * sample.factor + sample.imputed_error**2)
        t = np.where(error > 0, difference / error, np.nan)
    is_tested = is_enough & ~np.isnan(t) & (degrees > 0)
    t = np.where(is_tested, t, np.nan)
    reach = np.where(is_tested, students.ppf((1 + _INTERVAL) / 2, np.maximum(degrees, 1e-9)) * error, np.nan)
    p_value = np.where(is_tested, 2 * students.sf(np.abs(t), np.maximum(degrees, 1e-9)), np.nan)
    q_value = adjusted(p_value)
    outcome = np.select(
        [is_tested & (q_value <= fdr), is_tested, sample.is_apart, both, sample.n_first > 0, sample.n_second > 0],
        ["changed", "unchanged", "no shared ion", "not tested", "only here", "only there"],
        "absent",
    )
    return difference - reach, difference + reach, t, p_value, q_value, outcome


def changes_table(changes: Sequence[Changes], proteins: Proteins) -> pa.Table:
    """Return all comparisons as one table; the rows of each comparison are sorted by p-value."""
    orders = [np.lexsort((-np.abs(np.nan_to_num(change.t)), np.where(np.isnan(change.p_value), 2.0, change.p_value))) for change in changes]
    if not changes:
        return CHANGES.schema().empty_table()
    row = np.concatenate(orders)
    columns: dict[str, Any] = {
        "comparison": np.repeat([change.name for change in changes], len(proteins)).tolist(),
        "accession": taken(proteins.accession, row),
        "description": taken(proteins.description, row),
        **{name: column.take(pa.array(row)) for name, column in proteins.names.items()},
    }
    for name in CHANGES.by_name.keys() - columns.keys():
        values = np.concatenate([getattr(change, name)[order] for change, order in zip(changes, orders, strict=True)])
        columns[name] = or_null(values) if values.dtype == np.float64 else values.tolist() if name == "outcome" else values
    return CHANGES.arrow(columns)
