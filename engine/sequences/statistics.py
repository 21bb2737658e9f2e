"""Bit scores and E-values of local alignments.

Scores of unrelated sequences follow ``P(S >= x) = 1 - exp(-K A(x) exp(-lambda x))`` (Karlin and Altschul 1990, PNAS 87:2264; with gaps
Altschul and others 2001, NAR 29:351). ``A`` is the product of the two lengths, each reduced by the length of an alignment with this score:
the finite-size correction of Park, Sheetlin, Ma, Madden and Spouge (2012, BMC Research Notes 5:286).

* If NCBI's tables contain the matrix and the gap costs, all constants are taken from them.
* Otherwise lambda and K are fitted by maximum likelihood to scores of the search itself, or to scores of random sequences if the search
has too few; the other constants are derived from lambda in the same way as in NCBI's tables. To exclude related pairs, only
scores below a limit that is rarely exceeded by chance are used. Their likelihood takes this limit into account (truncated fit).
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels, resources
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.sequences.matrices import SYMBOLS, Matrix, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme

__all__ = [
    "BACKGROUND",
    "ScoreStatistics",
    "default_gap_costs",
    "expected_score",
    "fit",
    "random_sequences",
    "tabulated",
    "ungapped_lambda",
]

LN_2 = log(2.0)
_FREQUENCIES = {
    "A": 0.07805,
    "R": 0.05129,
    "N": 0.04487,
    "D": 0.05364,
    "C": 0.01925,
    "Q": 0.04264,
    "E": 0.06295,
    "G": 0.07377,
    "H": 0.02199,
    "I": 0.05142,
    "L": 0.09019,
    "K": 0.05744,
    "M": 0.02243,
    "F": 0.03856,
    "P": 0.05203,
    "S": 0.07120,
    "T": 0.05841,
    "W": 0.01330,
    "Y": 0.03216,
    "V": 0.06441,
}
BACKGROUND: NDArray[np.float64] = np.array([_FREQUENCIES.get(symbol, 0.0) for symbol in SYMBOLS])
"""Fraction of each residue code in proteins, shape (27,) (Robinson and Robinson 1991, PNAS 88:8880)."""

_GAP_COSTS = {
    "BLOSUM45": (14, 2),
    "BLOSUM50": (13, 2),
    "BLOSUM62": (11, 1),
    "BLOSUM80": (10, 1),
    "BLOSUM90": (10, 1),
    "PAM30": (9, 1),
    "PAM70": (10, 1),
    "PAM250": (14, 2),
    "IDENTITY": (15, 2),
    "DAYHOFF": (14, 2),
    "GONNET": (14, 2),  # not in NCBI's tables; same scale as PAM250
}

# Dependence of a (residues of an alignment per unit of score) and alpha (variance per unit of score) on lambda in NCBI's 85 gapped rows:
# a = ungapped a * (1 + 6.8 (ungapped lambda / lambda - 1)) within 7 % (rms), alpha = 3.07 a^2 / lambda within 12 %; 2.35 without gaps.
_LENGTH_BY_LAMBDA, _VARIANCE_BY_LENGTH, _UNGAPPED_VARIANCE_BY_LENGTH = 6.8, 3.07, 2.35

_MINIMUM_LENGTH = 30  # scores of shorter sequences depend on edge effects
_MINIMUM_PAIRS, _MAXIMUM_PAIRS = 2000, 30_000
_TAIL = 3e-3  # fraction of the chance scores that truncation excludes
_FIRST_BOUND = 4.0  # interquartile ranges above the third quartile, which one pair of a thousand exceeds by chance
_ROUNDS = 8
_LENGTH_GROUPS = 256
_GOLDEN = (5**0.5 - 1) / 2
_TWO_PI = 2.0 * np.pi


@dataclass(frozen=True)
class ScoreStatistics:
    """Constants for bit scores and E-values.

    Attributes
    ----------
    lambda_, K : float
        Constants of the distribution of scores by chance.
    a, b : float
        Constants of the mean length of an alignment of score S in a sequence, ``a S + b``.
    alpha, beta : float
        Constants of the variance of this length, ``alpha S + beta``.
    sigma, tau : float
        Constants of the covariance of the lengths in both sequences, ``sigma S + tau``.
    source : str
        Source of the constants as text.
    n_pairs : int
        Number of scores in the fit; 0 for constants from a table.
    """

    lambda_: float
    K: float
    a: float
    b: float
    alpha: float
    beta: float
    sigma: float
    tau: float
    source: str
    n_pairs: int = 0

    def bit_scores(self, scores: NDArray[np.integer] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bit scores ``(lambda S - ln K) / ln 2`` of scores S."""
        return (self.lambda_ * np.asarray(scores, np.float64) - log(self.K)) / LN_2

    def e_values(
        self,
        scores: NDArray[np.integer] | NDArray[np.float64],
        query_length: int,
        subject_lengths: NDArray[np.integer],
        database_residues: int,
    ) -> NDArray[np.float64]:
        """Return the number of subjects in the database that are expected to reach each score by chance.

        Parameters
        ----------
        scores : ndarray, shape (n,)
            Scores of one query with n subjects.
        query_length : int
            Number of residues of the query.
        subject_lengths : ndarray of int, shape (n,)
            Number of residues of each subject.
        database_residues : int
            Number of residues of the whole database.

        Returns
        -------
        ndarray of float64, shape (n,)
            E-values.
        """
        y, n = np.asarray(scores, np.float64), np.maximum(np.asarray(subject_lengths, np.float64), 1.0)
        return self.K * np.exp(self._log_pairs(y, np.full(len(y), float(query_length)), n)) * (database_residues / n)

    def minimum_scores(
        self,
        maximum_e_value: float,
        query_length: int,
        subject_lengths: NDArray[np.integer],
        database_residues: int,
        most: int,
        scale: float = 1.0,
    ) -> NDArray[np.int64]:
        """Return, for each subject, a score below which its E-value certainly exceeds `maximum_e_value`.

        Subjects with lower scores need no E-value. A score is computed for each group of subjects of similar lengths, from twice the
        maximum E-value, since lengths differ within a group.

        Parameters
        ----------
        maximum_e_value : float
            Maximum E-value of hits.
        query_length : int
            Number of residues of the query.
        subject_lengths : ndarray of int, shape (n,)
            Number of residues of each subject, ascending.
        database_residues : int
            Number of residues of the whole database.
        most : int
            Maximum score of a subject.
        scale : float
            Maximum factor by which a score is multiplied before its E-value is computed.

        Returns
        -------
        ndarray of int64, shape (n,)
            Scores from 1 to `most` + 1.
        """
        n = len(subject_lengths)
        cuts = np.unique(np.linspace(0, n, _LENGTH_GROUPS + 1).astype(np.int64))
        ends = np.concatenate((subject_lengths[cuts[:-1]], subject_lengths[cuts[1:] - 1]))
        low, high = np.zeros(len(ends), np.int64), np.full(len(ends), most + 1)
        while (high - low > 1).any():
            middle = np.maximum(1, (low + high) // 2)
            passes = self.e_values(scale * middle, query_length, ends, database_residues) <= 2.0 * maximum_e_value
            low, high = np.where(passes, low, middle), np.where(passes, middle, high)
        return np.repeat(high.reshape(2, -1).min(axis=0), np.diff(cuts))

    def _log_pairs(self, y: NDArray[np.float64], m: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``ln(A(y) exp(-lambda y))`` for scores `y`, query lengths `m` and subject lengths `n`.

        A(y) is the expected product of query length and subject length, after the length of an alignment with score y was subtracted from
        both. Alignment lengths are assumed to have a normal distribution.
        """
        if self.alpha == 0.0:  # the lengths of alignments are unknown
            return np.log(np.maximum(m, 1.0) * n) - self.lambda_ * y
        taken = self.a * y + self.b
        deviation = np.sqrt(np.maximum(2.0 * self.alpha / self.lambda_, self.alpha * y + self.beta))
        area, both = np.ones(len(y)), np.maximum(2.0 * self.sigma / self.lambda_, self.sigma * y + self.tau)
        for length in (m, n):
            left = (length - taken) / deviation
            chance = kernels.cpu.tails.normal_tail(-left)
            area *= deviation * (left * chance + np.exp(-0.5 * left * left) / np.sqrt(_TWO_PI))
            both *= chance
        return np.log(np.maximum(area + both, 1e-300)) - self.lambda_ * y


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str, str], dict[str, float]]:
    text = resources.path("statistics", "karlin_altschul.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader((line for line in text.splitlines() if not line.startswith("#")), delimiter="\t")
    keys = ("matrix", "gap_open", "gap_extend")
    return {(row["matrix"], row["gap_open"], row["gap_extend"]): {k: float(v) for k, v in row.items() if k not in keys} for row in rows}


def tabulated(scheme: ScoringScheme) -> ScoreStatistics | None:
    """Return NCBI's constants for a matrix and gap costs; None if NCBI's tables do not contain them.

    A matrix file is treated as NCBI's matrix if the scores are equal.
    """
    name = next((name for name in _GAP_COSTS if scheme.matrix.scores_as(read_matrix(name))), "")
    row = _table().get((name, str(scheme.gap_open), str(scheme.gap_extend)))
    if row is None:
        return None
    ungapped = _table()[name, "-", "-"]
    return _complete(
        scheme, row["lambda"], row["K"], (row["a"], row["alpha"], row["sigma"]), (ungapped["a"], ungapped["alpha"]), "NCBI's table", 0
    )


def _complete(
    scheme: ScoringScheme,
    lambda_: float,
    k: float,
    rates: tuple[float, float, float],
    ungapped: tuple[float, float],
    source: str,
    n_pairs: int,
) -> ScoreStatistics:
    """Return the statistics, with the constants b, beta and tau derived from the given constants as in Park et al. (2012).

    `rates` are a, alpha and sigma; `ungapped` are a and alpha without gaps.
    """
    a, alpha, sigma = rates
    twice = 2.0 * scheme.first_residue_cost
    at_zero = (twice * (ungapped[0] - a), twice * (ungapped[1] - alpha), twice * (ungapped[1] - sigma))
    return ScoreStatistics(lambda_, k, a, at_zero[0], alpha, at_zero[1], sigma, at_zero[2], source, n_pairs)


def default_gap_costs(matrix: str) -> tuple[int, int]:
    """Return the default gap opening and extension costs of a matrix: NCBI's defaults if there are any, otherwise 11 and 1."""
    return _GAP_COSTS.get(matrix, (11, 1))


def expected_score(matrix: Matrix) -> float:
    """Return the mean score of two random residues, which must be negative for local alignment statistics."""
    return float(BACKGROUND @ matrix.scores @ BACKGROUND)


def ungapped_lambda(matrix: Matrix) -> float | None:
    """Return lambda of ungapped alignments: the value for which the mean of ``exp(lambda s)`` over random pairs of residues is 1.

    None is returned if scores by chance grow with the sequence length, so that there is no such value.
    """
    weights, scores = np.outer(BACKGROUND, BACKGROUND), matrix.scores.astype(np.float64)
    if expected_score(matrix) >= 0 or scores[weights > 0].max() <= 0:
        return None
    low, high = 0.0, 1.0 / matrix.greatest
    while (weights * np.exp(high * scores)).sum() < 1:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (weights * np.exp(middle * scores)).sum() < 1 else (low, middle)
    return high


def random_sequences(lengths: Sequence[int] | NDArray[np.integer], seed: int) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Return random sequences with the background composition.

    Parameters
    ----------
    lengths : sequence of int, length n
        Number of residues of each sequence.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    codes : ndarray of int8, shape (total,)
        Residue codes of all sequences.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each sequence in `codes`, followed by the length of `codes`.
    """
    generator = np.random.default_rng(seed)
    codes = generator.choice(len(SYMBOLS), int(sum(lengths)), p=BACKGROUND / BACKGROUND.sum()).astype(np.int8)
    return codes, segment_offsets(np.asarray(lengths, np.int64))


def fit(
    scores: NDArray[np.integer],
    query_lengths: NDArray[np.integer],
    subject_lengths: NDArray[np.integer],
    scheme: ScoringScheme,
    source: str,
) -> ScoreStatistics | None:
    """Fit lambda and K to the scores of a search.

    Parameters
    ----------
    scores : ndarray of int, shape (queries, subjects)
        Scores; a few pairs may be related.
    query_lengths, subject_lengths : ndarray of int, shape (queries,) and (subjects,)
        Number of residues of each sequence.
    scheme : ScoringScheme
        Matrix and gap costs.
    source : str
        Source of the scores as text.

    Returns
    -------
    ScoreStatistics or None
        Fitted statistics; None if too few pairs are long enough, or if the scores do not vary.
    """
    queries, subjects = np.asarray(query_lengths, np.float64), np.asarray(subject_lengths, np.float64)
    rows, columns = np.flatnonzero(queries >= _MINIMUM_LENGTH), np.flatnonzero(subjects >= _MINIMUM_LENGTH)
    n_pairs = len(rows) * len(columns)
    if n_pairs < _MINIMUM_PAIRS:
        return None
    taken = np.unique(np.linspace(0, n_pairs - 1, min(n_pairs, _MAXIMUM_PAIRS)).astype(np.int64))
    row, column = rows[taken // len(columns)], columns[taken % len(columns)]
    sample = _Sample(scores[row, column].astype(np.float64), queries[row], subjects[column], scheme)
    return sample.fit(source)


class _Sample:
    """Scores to which constants are fitted, with the lengths of the pairs."""

    def __init__(self, x: NDArray[np.float64], m: NDArray[np.float64], n: NDArray[np.float64], scheme: ScoringScheme) -> None:
        self._x, self._m, self._n, self._scheme = x, m, n, scheme
        self._ungapped = ungapped_lambda(scheme.matrix)
        self._bound = np.full(len(x), np.percentile(x, 75) + _FIRST_BOUND * (np.percentile(x, 75) - np.percentile(x, 25) + 1))

    def fit(self, source: str) -> ScoreStatistics | None:
        """Return the maximum likelihood constants; None if the scores do not vary or the likelihood is not finite."""
        low, high = np.percentile(self._x, (10, 75))
        if high - low < 1:
            return None
        # The range between these percentiles is about 2 / lambda.
        lambda_ = 2.0 / float(high - low)
        statistics = None
        for _ in range(_ROUNDS):
            before = lambda_
            lambda_ = exp(_maximum(lambda value: self._likelihood(exp(value))[0], log(lambda_ / 3), log(lambda_ * 3)))
            likelihood, K = self._likelihood(lambda_)
            if not np.isfinite(likelihood):
                return None
            n_pairs = int((self._x < self._bound).sum())
            statistics = self._statistics(lambda_, K, source, n_pairs)
            if abs(lambda_ / before - 1) < 1e-3:
                break
            self._bound = np.floor(self._truncation_scores(statistics))
        return statistics

    def _truncation_scores(self, statistics: ScoreStatistics) -> NDArray[np.float64]:
        """Return, for each pair, the score that a random pair of the same lengths exceeds with probability `_TAIL`."""
        y = (np.log(statistics.K * self._m * self._n) - log(_TAIL)) / statistics.lambda_
        for _ in range(3):
            excess = log(statistics.K) + statistics._log_pairs(y, self._m, self._n) - log(_TAIL)
            y = np.maximum(y + excess / statistics.lambda_, 1.0)
        return y

    def _statistics(self, lambda_: float, k: float, source: str, n_pairs: int) -> ScoreStatistics:
        if self._ungapped is None:
            return ScoreStatistics(lambda_, k, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, source, n_pairs)
        weights, scores = np.outer(BACKGROUND, BACKGROUND), self._scheme.matrix.scores.astype(np.float64)
        # Without gaps, a is lambda / H, where H is the mean of lambda s in related pairs.
        relative_entropy = self._ungapped * float((weights * scores * np.exp(self._ungapped * scores)).sum())
        a_ungapped = self._ungapped / relative_entropy
        a = a_ungapped * (1 + _LENGTH_BY_LAMBDA * max(0.0, self._ungapped / lambda_ - 1))
        alpha = _VARIANCE_BY_LENGTH * a * a / lambda_
        alpha_ungapped = _UNGAPPED_VARIANCE_BY_LENGTH * a_ungapped**2 / self._ungapped
        return _complete(self._scheme, lambda_, k, (a, alpha, alpha), (a_ungapped, alpha_ungapped), source, n_pairs)

    def _likelihood(self, lambda_: float) -> tuple[float, float]:
        """Return the log-likelihood of `lambda_` together with the best K, and this K.

        With ``g(x) = A(x) exp(-lambda x)``, the likelihood of a score x below the limit `bound` is ``K (g(x) - g(x + 1)) exp(-K (g(x + 1/2)
        - g(bound)))``. At the best K, the derivative of the total log-likelihood with respect to K is zero.
        """
        below = self._x < self._bound
        x, m, n, bound = self._x[below], self._m[below], self._n[below], self._bound[below]
        statistics = self._statistics(lambda_, 1.0, "", 0)
        log_g, log_next = statistics._log_pairs(x, m, n), statistics._log_pairs(x + 1, m, n)
        total = float((np.exp((log_g + log_next) / 2) - np.exp(statistics._log_pairs(bound, m, n))).sum())
        if not (total > 0 and np.isfinite(total)):
            return -inf, 0.0
        # The correction of lengths is inaccurate far below the fitted scores: the difference of g could become negative.
        fall = np.minimum(log_next - log_g, -1e-6)
        K = len(x) / total
        return len(x) * (log(K) - 1.0) + float((log_g + np.log(-np.expm1(fall))).sum()), K


def _maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the position of the maximum of a unimodal function, by golden-section search."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-3:
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2
