"""False discovery proportions measured by entrapment, after Wen et al. 2025 (Nature Methods 22:1454), pooled over sets and seeds.

Of N_T + N_E accepted discoveries, N_E are entrapped, which means that they are known to be false. With r entrapment peptides for each
peptide of the sample:

lower     N_E / (N_T + N_E): wrong answers from the sample are not counted.
combined  N_E (1 + 1/r) / (N_T + N_E): not below the truth on average, if wrong answers hit both parts in proportion to their sizes.
paired    (N_E + N_below + 2 N_beaten) / (N_T + N_E), r = 1: an entrapped discovery represents one more if its partner is not
          accepted (below), and two more if the partner is accepted with a lower score (beaten).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COUNTS",
    "Bootstrap",
    "Interval",
    "Spread",
    "at_equal_share",
    "combined",
    "count",
    "holm",
    "lower",
    "net",
    "paired",
    "q_values",
    "spread_over_spectra",
]

Floats = NDArray[np.float64]

COUNTS = ("targets", "entrapped", "weighted", "below", "beaten")
"""Counts of a search: N_T, N_E, N_E (1 + 1/r) by the search's own r so that searches can be summed, N_below, N_beaten."""

RESAMPLES = 2000


def lower(counts: Floats) -> float:
    """Return the share that is entrapped; `counts` is (5,), in the order of `COUNTS`."""
    return float(counts[1] / max(counts[0] + counts[1], 1))


def combined(counts: Floats) -> float:
    """Return the entrapped share plus the share of false matches in the sample, estimated from the sizes of both parts."""
    return float(counts[2] / max(counts[0] + counts[1], 1))


def paired(counts: Floats) -> float:
    """Return the share by pairs; NaN for a database without pairs."""
    return float((counts[1] + counts[3] + 2 * counts[4]) / max(counts[0] + counts[1], 1))


def net(counts: Floats) -> float:
    """Return the accepted minus twice the entrapped discoveries: the true ones if each entrapped one represents another false one."""
    return float(counts[0] - counts[1])


def count(
    q_value: Floats,
    score: Floats,
    is_entrapped: NDArray[np.bool_],
    threshold: float,
    ratio: float,
    partner_q_value: Floats | None = None,
    partner_score: Floats | None = None,
) -> Floats:
    """Return counts, (5,), of the discoveries accepted at or below a reported q-value.

    Parameters
    ----------
    q_value, score, is_entrapped : (n,), no decoys among them; a q-value of NaN is not accepted.
    ratio : r, distinct entrapment peptides for each distinct peptide of the sample.
    partner_q_value, partner_score : (n,), of each entrapped row's partner: NaN and -inf where it was not found.
    """
    accepted = q_value <= threshold
    false = accepted & is_entrapped
    n_false = np.count_nonzero(false)
    below = beaten = math.nan
    if partner_q_value is not None and partner_score is not None:
        partner_accepted = partner_q_value <= threshold
        below = np.count_nonzero(false & ~partner_accepted)
        beaten = np.count_nonzero(false & partner_accepted & (score > partner_score))
    return np.array([np.count_nonzero(accepted) - n_false, n_false, n_false * (1 + 1 / ratio), below, beaten], np.float64)


@dataclass(frozen=True)
class Interval:
    """An estimate from all searches, the interval that holds 95 of 100 resamples, and their standard deviation; NaN where undefined."""

    estimate: float
    low: float
    high: float
    error: float


@dataclass(frozen=True)
class Bootstrap:
    """Sums of counts over all searches, `total` (k,), and over searches drawn again, `resampled` (resamples, k)."""

    total: Floats
    resampled: Floats

    @classmethod
    def of(cls, searches: Mapping[str, Floats]) -> Bootstrap:
        """Draw sets, then seeds within each set, with replacement; `searches` holds for each set a row of counts for each seed."""
        generator = np.random.default_rng(1)
        sets = list(searches.values())
        resampled = np.zeros((RESAMPLES, sets[0].shape[1]))
        for i, numbers in enumerate(generator.integers(0, len(sets), (RESAMPLES, len(sets))).tolist()):
            for set_counts in (sets[number] for number in numbers):
                resampled[i] += np.bincount(generator.integers(0, len(set_counts), len(set_counts)), minlength=len(set_counts)) @ set_counts
        return cls(np.sum([counts.sum(axis=0) for counts in sets], axis=0), resampled)

    def interval(self, statistic: Callable[[Floats], float]) -> Interval:
        """Return a statistic of the sums, with its spread."""
        estimate = statistic(self.total)
        values = np.array([statistic(row) for row in self.resampled])
        values = values[np.isfinite(values)]
        if len(values) == 0:
            return Interval(estimate, math.nan, math.nan, math.nan)
        return Interval(estimate, *np.quantile(values, (0.025, 0.975)).tolist(), float(values.std()))


class Spread(NamedTuple):
    """A combined share with its 95 % interval over resampled spectra, and the fraction of resamples with at most 1 %."""

    estimate: float
    low: float
    high: float
    p_value: float


def spread_over_spectra(accepted: Floats, false_spectra: Sequence[Sequence[int]], factor: Floats) -> Spread:
    """Estimate the error of a set's combined share by resampling spectra, each with all its copies and in all databases.

    False matches of the copies of a spectrum are one random event. Those in several databases are hardly independent either, since the
    decoys of the sample are the same in all of them.

    Parameters
    ----------
    accepted : (s,) number accepted in each search of one set. factor : (s,) 1 + 1/r of each.
    false_spectra : s lists of the original spectra whose entrapped matches are accepted, with repeats.
    """
    generator = np.random.default_rng(2)
    spectra, column = np.unique(
        np.concatenate([np.asarray(false_spectrum, np.int64) for false_spectrum in false_spectra]), return_inverse=True
    )
    false = np.bincount(column, np.repeat(factor, [len(false_spectrum) for false_spectrum in false_spectra]), len(spectra))
    estimate = float(false.sum() / max(accepted.sum(), 1))
    shares = generator.poisson(1.0, (RESAMPLES, len(spectra))) @ false / max(accepted.sum(), 1)
    low, high = np.quantile(shares, (0.025, 0.975)).tolist()
    return Spread(estimate, low, high, float(np.mean(shares <= 0.01)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979, Scand J Stat 6:65), in the order given."""
    order = np.argsort(p_values, kind="stable")
    raised = np.maximum.accumulate(np.asarray(p_values)[order] * (len(p_values) - np.arange(len(p_values))))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(raised, 1.0)
    return corrected.tolist()


def at_equal_share(accepted: Floats, weighted: Floats, share: float) -> float:
    """Return the number accepted where the combined share reaches `share`, interpolated linearly between two thresholds.

    `accepted` is N_T + N_E and `weighted` N_E (1 + 1/r), each (thresholds,) and rising; the last threshold below the share
    is used.
    """
    accepted = np.concatenate(([0.0], accepted))
    shares = np.concatenate(([0.0], weighted)) / np.maximum(accepted, 1)
    last = int(np.flatnonzero(shares <= share)[-1])
    if last + 1 == len(accepted):
        return float(accepted[last])
    part = (share - shares[last]) / (shares[last + 1] - shares[last])
    return float(accepted[last] + part * (accepted[last + 1] - accepted[last]))


def q_values(score: Floats, is_decoy: NDArray[np.bool_]) -> Floats:
    """Return q-values, shape (n,), of targets and decoys: the minimum of decoys / targets over all thresholds that accept the row."""
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    decoys = np.cumsum(is_decoy[order])
    rate = decoys / np.maximum(np.arange(1, len(score) + 1) - decoys, 1)
    last_of_tie = np.searchsorted(-ranked, -ranked, side="right") - 1
    q = np.empty(len(score))
    q[order] = np.minimum.accumulate(rate[last_of_tie][::-1])[::-1]
    return q
