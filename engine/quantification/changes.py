"""Which proteins change between conditions: the moderated t-test of limma, and Benjamini-Hochberg.

A linear model with a mean for each condition is fitted to the log2 quantities of each protein, its residual variance is drawn towards
what the variances of all proteins have in common (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3:3), and t is taken with that. Nothing is made
up for what is missing unless that is asked for: a protein that one of two conditions lacks is told as such, and not tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import Amounts, State
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Proteins
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.tables import CHANGES

if TYPE_CHECKING:
    pass

__all__ = ["Changes", "VariancePrior", "changes_table", "moderated_variances", "protein_changes"]

_INTERVAL = 0.95
_LOW_PERCENT = 1.0
_FEWEST_VARIANCES = 3


class VariancePrior(NamedTuple):
    """What the variances of all proteins have in common: scaled inverse chi-square, by its degrees of freedom and its location."""

    degrees: float
    variance: float


def moderated_variances(variance: NDArray[np.float64], degrees: NDArray[np.float64]) -> tuple[NDArray[np.float64], VariancePrior]:
    """Variances drawn towards their common prior, which is fitted by the moments of their logarithms (Smyth 2004, section 6.2).

    Parameters
    ----------
    variance : (n,) float64, residual, at least 0. degrees : (n,) float64, of freedom; those without any take part in nothing.

    Returns
    -------
    (n,) float64, NaN where there is no degree of freedom at all; and the prior.
    """
    from scipy.special import digamma, polygamma  # slow to import: loaded after the files are read

    used = (degrees > 0) & np.isfinite(variance)
    if used.sum() < _FEWEST_VARIANCES:
        return np.where(used, variance, np.nan), VariancePrior(0.0, 0.0)
    # As limma: variances of nothing are taken for a small part of the median.
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
    """x of which trigamma(x) is the value, above 0, by Newton's method on 1 / trigamma, which is nearly a line (Smyth 2004, appendix)."""
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
    """A comparison of p proteins between a condition and the one that it is compared with.

    Attributes
    ----------
    log2_fold_change, low, high, t, p_value, q_value : (p,) float64, NaN where none is told.
    outcome : (p,) texts. n_first, n_second, n_too_low, n_not_seen, n_imputed : (p,) int64, samples.
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
        """Proteins with a p-value."""
        return int((~np.isnan(self.p_value)).sum())

    @property
    def n_changed(self) -> int:
        """Proteins that change at the rate asked for."""
        return int((self.outcome == "changed").sum())


def protein_changes(proteins: Amounts, design: Design, groups: tuple[str, ...], parameters: QuantificationParameters) -> list[Changes]:
    """Each condition of `groups` but the first, compared with the first; none where there are no groups.

    Parameters
    ----------
    proteins : (p, s), normalised.
    """
    if not groups:
        return []
    columns = [np.array([i for i, one in enumerate(design.samples) if one.condition == name]) for name in groups]
    logs = np.full(proteins.value.shape, np.nan)
    np.log2(proteins.value, out=logs, where=proteins.value > 0)
    imputed = np.zeros(logs.shape, np.bool_)
    if parameters.imputation == "low":
        logs, imputed = _imputed(logs, columns)
    has = ~np.isnan(logs)
    number = np.stack([has[:, rows].sum(axis=1) for rows in columns], axis=1)
    total = np.stack([np.nansum(logs[:, rows], axis=1) for rows in columns], axis=1)
    mean = np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)
    apart = sum(np.nansum((logs[:, rows] - mean[:, [i]]) ** 2, axis=1) for i, rows in enumerate(columns))
    degrees = np.maximum(number - 1, 0).sum(axis=1).astype(np.float64)
    residual = np.divide(apart, degrees, out=np.full(len(logs), np.nan), where=degrees > 0)
    variance, prior = moderated_variances(residual, degrees)
    # As limma: no more degrees of freedom than all proteins have together.
    total_degrees = np.minimum(degrees + prior.degrees, degrees.sum())
    found = []
    for i in range(1, len(groups)):
        both = np.concatenate([columns[i], columns[0]])
        state = proteins.state[:, both]
        counts = {
            "n_first": number[:, i], "n_second": number[:, 0], "n_too_low": np.isin(state, (State.TOO_LOW, State.REFUSED)).sum(axis=1),
            "n_not_seen": (state == State.NOT_SEEN).sum(axis=1), "n_imputed": imputed[:, both].sum(axis=1),
        }  # fmt: skip
        difference = mean[:, i] - mean[:, 0]
        tested = _tested(difference, number[:, i], number[:, 0], variance, total_degrees, parameters.change_fdr)
        found.append(Changes(f"{groups[i]} / {groups[0]}", difference, *tested, **counts))
    return found


def _imputed(logs: NDArray[np.float64], columns: list[NDArray[np.int64]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Where all of a condition are missing, and another condition has some: what only one percent of the sample's proteins is below."""
    found, imputed = logs.copy(), np.zeros(logs.shape, np.bool_)
    has = ~np.isnan(logs)
    every = np.concatenate(columns)
    for rows in columns:
        missing = np.flatnonzero(~has[:, rows].any(axis=1) & has[:, every].any(axis=1))
        for column in rows.tolist():
            if has[:, column].any():
                found[missing, column] = np.nanpercentile(logs[:, column], _LOW_PERCENT)
                imputed[missing, column] = True
    return found, imputed


def _tested(
    difference: NDArray[np.float64], n_first: NDArray[np.int64], n_second: NDArray[np.int64], variance: NDArray[np.float64],
    degrees: NDArray[np.float64], fdr: float,
) -> tuple[NDArray, ...]:  # fmt: skip
    """Interval, t, p-value, q-value and outcome of each protein."""
    from scipy.stats import false_discovery_control  # slow to import: loaded after the files are read
    from scipy.stats import t as students  # slow to import: loaded after the files are read

    both = (n_first > 0) & (n_second > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(variance * (1 / n_first + 1 / n_second))
        t = np.where(error > 0, difference / error, np.nan)
    is_tested = both & ~np.isnan(t) & (degrees > 0)
    t = np.where(is_tested, t, np.nan)
    reach = np.where(is_tested, students.ppf((1 + _INTERVAL) / 2, np.maximum(degrees, 1e-9)) * error, np.nan)
    p_value = np.where(is_tested, 2 * students.sf(np.abs(t), np.maximum(degrees, 1e-9)), np.nan)
    q_value = np.full(len(p_value), np.nan)
    if is_tested.any():
        q_value[is_tested] = false_discovery_control(p_value[is_tested])
    outcome = np.select(
        [is_tested & (q_value <= fdr), is_tested, both, n_first > 0, n_second > 0],
        ["changed", "unchanged", "too few", "only here", "only there"], "absent",
    )  # fmt: skip
    return difference - reach, difference + reach, t, p_value, q_value, outcome


def changes_table(changes: list[Changes], proteins: Proteins) -> pa.Table:
    """The comparisons as a table, one behind the other, those that are surest first."""
    numbers = ("log2_fold_change", "low", "high", "t", "p_value", "q_value")
    counts = ("n_first", "n_second", "n_too_low", "n_not_seen", "n_imputed")
    orders = [np.lexsort((-np.abs(np.nan_to_num(one.t)), np.where(np.isnan(one.p_value), 2.0, one.p_value))) for one in changes]
    row = np.concatenate([np.zeros(0, np.int64), *orders])

    def joined(name: str, empty: NDArray) -> NDArray:
        return np.concatenate([empty, *(getattr(one, name)[order] for one, order in zip(changes, orders, strict=True))])

    floats = {name: joined(name, np.zeros(0)) for name in numbers}
    return CHANGES.arrow(
        {
            "comparison": np.repeat([one.name for one in changes], len(proteins)).tolist(),
            "accession": pa.array(proteins.accession, pa.string()).take(pa.array(row)),
            "description": pa.array(proteins.description, pa.string()).take(pa.array(row)),
            **{name: pa.array(values, mask=np.isnan(values)) for name, values in floats.items()},
            "outcome": joined("outcome", np.zeros(0, "U1")).tolist(),
            **{name: joined(name, np.zeros(0, np.int64)) for name in counts},
        }
    )
