"""Semi-supervised linear rescoring: a model, trained on the run, that separates correct matches from decoys.

The method follows Percolator (Käll 2007, Nature Methods 4:923): repeatedly, a linear model is trained on the decoys and on the targets
accepted at 1 % by the current score, and gives the next score. A match is scored only by models trained without the matches of its peptide.
Replicates, fractions and neighbouring scans repeat the spectrum of a peptide. A model trained on one of these spectra would know the label
of the other spectra. If spectra instead of peptides were assigned to folds (as in Granholm 2012, BMC Bioinformatics 13(S16):S3), 3 % of the
matches accepted at 1 % in five copies of a run were false. All peptidoforms of a peptide and its decoy partner are therefore in one fold.

A single division into folds changes the number of accepted matches of a small run by several percent. The score is therefore the mean over
several divisions.

The model is a ridge-penalised logistic regression, fitted by Newton's method. Its solution equals the solution of scikit-learn's
`LogisticRegression`; solving the 25 x 25 systems here avoids importing scikit-learn, which takes a second. The penalty is constant, but the
log-likelihood grows with the number of matches; for a small run, weights are thus nearly proportional to how well each single feature
separates targets from decoys. The initial score is one of the features.

Matches are rescored whenever there are enough peptides for training, even if the initial score accepts more matches: choosing the score
that accepts more matches would favour chance.

The scores of different models are made comparable by standardisation over all spectra, which uses no label. The common alternative,
aligning each fold at its own 1 % threshold, lets the labels of scored spectra change their scores: in a test with 73 true matches and real
decoys with random labels, 3 false targets were accepted instead of 1. The mean score is then scaled linearly, so that the 1 % threshold is
0 and the median score of decoys is -1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import splitmix64
from proteoscope.engine.execution.libraries import one_algebra_thread
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = ["Rescoring", "RescoringModels", "folds_by_peptide", "rescore"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
Features = Mapping[str, NDArray[np.floating]]
"""Feature columns by name, each (n,)."""

_ACCEPTED = 0.01
_TRAINING_LEVELS = (0.01, 0.02, 0.05)  # a looser level is used if a stricter one accepts too few
_ENOUGH_POSITIVES = 20
_MAXIMUM_DIVISIONS, _FEWEST_DIVISIONS = 10, 2
_ROWS_LEARNT = 40_000  # matches over all divisions; for large runs, the division into folds matters less
_MAXIMUM_ROWS_LEARNT = 100_000  # matches per division, enough for thirty weights
_ROWS_SCORED = 1 << 16


@dataclass(frozen=True)
class RescoringModels:
    """Models trained on a run, which score matches of the same run; their columns are f features and the initial score.

    Attributes
    ----------
    mean, spread : ndarray of float64, shape (f + 1,)
        Mean and standard deviation over training matches; a spread of 0 excludes a column.
    weights : ndarray of float64, shape (divisions, folds, f + 2)
        Weight of each standardised column, and constant term, of the model of each fold.
    centre, width : ndarray of float64, shape (divisions, folds)
        Mean and standard deviation of each model's scores of training matches.
    threshold, median : float
        Values of the mean score over all divisions that are scaled to 0 (`threshold`) and to -1 (`median`).
    seed : int
        Random seed of the assignment to folds.
    """

    mean: Floats
    spread: Floats
    weights: Floats
    centre: Floats
    width: Floats
    threshold: float
    median: float
    seed: int

    def score(self, features: Features, initial_score: Floats, peptide: Integers) -> Floats:
        """Return the new score of each match, (n,) float64, from the models trained without the peptide of the match.

        See `rescore` for the parameters.
        """
        total, (divisions, folds, _) = np.zeros(len(initial_score)), self.weights.shape
        for first in range(0, len(total), _ROWS_SCORED):  # batches limit the memory for standardised columns
            some = slice(first, first + _ROWS_SCORED)
            table, of_some = _standardised(_table(features, initial_score, some), self.mean, self.spread), total[some]
            for division in range(divisions):
                fold_of = folds_by_peptide(peptide[some], folds, self.seed + division)
                for fold in range(folds):
                    held = fold_of == fold
                    of_fold = _scores(table[held], self.weights[division, fold])
                    of_some[held] += (of_fold - self.centre[division, fold]) / self.width[division, fold]
        return (total - self.threshold) / (self.threshold - self.median)


@dataclass(frozen=True)
class Rescoring:
    """Result of `rescore`.

    Attributes
    ----------
    score : ndarray of float64, shape (n,)
        New score (0 at the 1 % threshold, -1 at the median decoy), or the initial score if no model was trained; higher is better.
    message : str
        Sentence for the user on the outcome.
    learnt : RescoringModels or None
        Trained models; None if no model was trained.
    """

    score: Floats
    message: str
    learnt: RescoringModels | None = None


class RescoringSettings(NamedTuple):
    """Settings of rescoring.

    Attributes
    ----------
    folds : int
        Number of folds, at least 2; the matches of a fold are scored by a model trained on the other folds. A hash of `peptide` assigns
        matches to folds, independent of their order.
    divisions : int or None
        Number of divisions to average; None uses 10 for small runs and 2 for large runs.
    iterations : int
        Number of iterations of selecting positives and training.
    minimum_peptides : int
        Minimum number of distinct peptides among the targets accepted at 1 % by the initial score; with fewer, no model is trained.
    minimum_decoys : int
        Minimum number of distinct decoy peptides; with fewer, no model is trained, since the separation would mostly be due to chance.
    ridge : float
        Penalty on the squared weights of standardised features, relative to a sum of log-likelihoods.
    seed : int
        Seed of the hash that assigns peptides to folds.
    decoy_ratio : float
        Decoy candidates per target candidate (see `proteoscope.engine.statistics.target_decoy`).
    """

    folds: int = 5
    divisions: int | None = None
    iterations: int = 6
    minimum_peptides: int = 20
    minimum_decoys: int = 10
    ridge: float = 10.0
    seed: int = 1
    decoy_ratio: float = 1.0


def rescore(
    features: Features,
    is_decoy: Truths,
    peptide: Integers,
    initial_score: Floats,
    competes: Truths | None = None,
    settings: RescoringSettings | None = None,
    resources: Resources | None = None,
) -> Rescoring:
    """Score matches by a linear combination of their features, trained on targets and decoys.

    Parameters
    ----------
    features : mapping of str to ndarray, shape (n,)
        Features by name; finite values of any sign and scale.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    peptide : ndarray of int64, shape (n,)
        Number shared by all peptidoforms of a peptide and its decoy partner; a model never scores a match whose number occurs in its
        training matches.
    initial_score : ndarray of float64, shape (n,)
        Finite, higher is better.
    competes : ndarray of bool, shape (n,), or None
        True for the one match of each spectrum that is used for training and error rates; None uses all. Other matches are only scored.
    settings : RescoringSettings or None
        None uses the defaults.
    resources : Resources or None
        Threads, which train models in parallel, and progress, which is checked for cancellation between models; None uses one thread.

    Returns
    -------
    Rescoring
        The initial score is retained if there are too few matches for training.

    Raises
    ------
    ValueError
        If lengths of arrays differ, a value is not finite, or there are fewer than two folds.
    """
    settings, resources = settings or RescoringSettings(), resources or Resources(threads=1)
    folds, divisions = settings.folds, settings.divisions
    is_decoy, peptide = np.asarray(is_decoy, bool), np.asarray(peptide, np.int64)
    initial_score = np.asarray(initial_score, np.float64)
    competes = np.ones(len(is_decoy), bool) if competes is None else np.asarray(competes, bool)
    table = _table(features, initial_score)
    if not len(peptide) == len(competes) == len(is_decoy) == len(table):
        raise ValueError("the columns of the matches differ in length")
    if not np.isfinite(table).all():
        raise ValueError(f"not finite: {', '.join(np.array([*features, 'initial score'])[~np.isfinite(table).all(axis=0)])}")
    if folds < 2:
        raise ValueError("rescoring needs at least 2 folds")

    decoy, of_peptide = is_decoy[competes], peptide[competes]
    accepted = _accepted(initial_score[competes], decoy, settings.decoy_ratio)
    n_peptides = len(np.unique(of_peptide[accepted]))
    n_decoys = len(np.unique(of_peptide[decoy]))
    if n_peptides < settings.minimum_peptides or n_decoys < settings.minimum_decoys:
        lack = f"{n_peptides} peptides at 1 % are too few to learn from ({settings.minimum_peptides} are needed)"
        if n_peptides >= settings.minimum_peptides:
            lack = f"{n_decoys} peptides of decoys are too few to learn from ({settings.minimum_decoys} are needed)"
        return Rescoring(initial_score, f"Rescoring skipped: {lack}")

    # A peptide trains with all its matches or with none.
    n_parts = -(-int(np.count_nonzero(competes)) // _MAXIMUM_ROWS_LEARNT)
    is_training = competes & (folds_by_peptide(peptide, n_parts, settings.seed - 1) == 0) if n_parts > 1 else competes
    of_peptide, of_decoy = peptide[is_training], is_decoy[is_training]
    mean, spread = _mean_and_spread(table[is_training])
    learnt_from = _standardised(table[is_training], mean, spread)
    if divisions is None:
        divisions = int(np.clip(_ROWS_LEARNT // len(learnt_from), _FEWEST_DIVISIONS, _MAXIMUM_DIVISIONS))
    parts = [(division, number) for division in range(divisions) for number in range(folds)]
    fold_of = [folds_by_peptide(of_peptide, folds, settings.seed + division) for division in range(divisions)]

    def learn(part: tuple[int, int]) -> Floats:
        seen = fold_of[part[0]] != part[1]
        return _learn(learnt_from[seen], of_decoy[seen], settings)

    with one_algebra_thread():  # several BLAS threads are ten times slower on a busy machine
        weights = run_on_threads(learn, parts, resources.threads, resources.progress, steps=lambda _: 0)
        of_all = [_scores(learnt_from, weight) for weight in weights]
        models, shape = np.stack(weights), (divisions, folds)
        centre, width = np.array([scores.mean() for scores in of_all]), np.array([max(float(scores.std()), 1e-12) for scores in of_all])
        unscaled = RescoringModels(
            mean, spread, models.reshape(*shape, -1), centre.reshape(shape), width.reshape(shape), 0.0, -1.0, settings.seed
        )
        total = unscaled.score(features, initial_score, peptide)
    threshold, median = _landmarks(total[competes], decoy, settings.decoy_ratio)
    learnt = replace(unscaled, threshold=threshold, median=median)
    return Rescoring((total - threshold) / (threshold - median), f"Rescoring learnt from {n_peptides} peptides", learnt)


def _table(features: Features, initial_score: Floats, rows: slice = slice(None)) -> Floats:
    """Return the features and the initial score as the columns of a table, for the rows `rows`."""
    return np.column_stack([*(np.asarray(column[rows], np.float64) for column in features.values()), initial_score[rows]])


def _learn(table: Floats, is_decoy: Truths, settings: RescoringSettings) -> Floats:
    """Return the weight of each column, trained by repeatedly selecting the targets that the current score accepts and fitting a model.

    The second last column of the table is the initial score, the last column is constant.
    """
    weights = np.zeros(table.shape[1])
    score = table[:, -2]
    workspace = np.empty((2, *table.shape))  # allocating a new array for each step would take longer than the step
    for turn in range(settings.iterations):
        q = q_values(score, is_decoy, decoy_ratio=settings.decoy_ratio)
        positive = np.empty(0, np.int64)
        for level in _TRAINING_LEVELS:
            positive = np.flatnonzero((q <= level) & ~is_decoy)
            if len(positive) >= _ENOUGH_POSITIVES:
                break
        if len(positive) == 0 or not is_decoy.any():
            break
        rows = np.append(positive, np.flatnonzero(is_decoy))
        examples = np.take(table, rows, axis=0, out=workspace[0, : len(rows)], mode="clip")  # other modes copy `out`
        is_positive = np.arange(len(rows)) < len(positive)
        weights = _logistic_regression(examples, is_positive, settings.ridge, weights if turn else None, workspace[1, : len(rows)])
        score = table @ weights
    if not weights.any():
        weights[-2] = 1.0
    return weights


def _logistic_regression(
    table: Floats, label: Truths, ridge: float, start: Floats | None = None, workspace: Floats | None = None
) -> Floats:
    """Return the weights that minimise log-loss + ridge/2 |w|^2 by Newton's method, with no penalty for the constant (last column).

    `workspace` has the shape of `table` and is overwritten.
    """
    penalty = np.full(table.shape[1], ridge)
    penalty[-1] = 1e-6  # keeps the system regular
    weights, labels = np.zeros(table.shape[1]) if start is None else start, label.astype(np.float64)
    weighted = np.empty_like(table) if workspace is None else workspace
    fitted, deviation = np.empty(len(table)), np.empty(len(table))
    for _ in range(25):
        np.matmul(table, weights, out=fitted)
        np.clip(fitted, -30, 30, out=fitted)
        np.exp(np.negative(fitted, out=fitted), out=fitted)
        np.divide(1, np.add(fitted, 1, out=fitted), out=fitted)
        gradient = table.T @ np.subtract(fitted, labels, out=deviation) + penalty * weights
        np.sqrt(np.multiply(fitted, np.subtract(1, fitted, out=deviation), out=deviation), out=deviation)
        np.multiply(table, deviation[:, None], out=weighted)
        curvature = weighted.T @ weighted  # BLAS computes only half of a symmetric product
        step = np.linalg.solve(curvature + np.diag(penalty), gradient)
        # Far from the solution the quadratic model overshoots; a bounded step still descends.
        weights = weights - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-3:
            break
    return weights


def _scores(table: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of each row's columns; unlike with a matrix product, equal rows always give equal sums."""
    sums: Floats = np.einsum("ij,j->i", table, weights)
    return sums


def _landmarks(score: Floats, is_decoy: Truths, decoy_ratio: float) -> tuple[float, float]:
    """Return the minimum score accepted at 1 % FDR, and the median score of the decoys."""
    accepted = _accepted(score, is_decoy, decoy_ratio)
    threshold = float(score[accepted].min()) if accepted.any() else float(score.max())
    median = float(np.median(score[is_decoy]))
    # A model that puts the threshold at or below the median decoy does not separate them; any positive scale is valid.
    return threshold, median if median < threshold else threshold - 1.0


def _accepted(score: Floats, is_decoy: Truths, decoy_ratio: float) -> Truths:
    """Return True for targets accepted at 1 % FDR."""
    return (q_values(score, is_decoy, decoy_ratio=decoy_ratio) <= _ACCEPTED) & ~is_decoy


def _mean_and_spread(table: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each column; the standard deviation of constant columns is exactly 0."""
    mean = table.mean(axis=0)
    spread, scale = (table - mean).std(axis=0), np.abs(table).max(axis=0)
    return mean, np.where(spread > 1e-12 * scale, spread, 0.0)


def _standardised(table: Floats, mean: Floats, spread: Floats) -> Floats:
    """Return standardised columns (0 for columns with a spread of 0), followed by a column of ones."""
    columns = np.divide(table - mean, spread, out=np.zeros_like(table), where=spread > 0.0)
    return np.column_stack([columns, np.ones(len(table))])


def folds_by_peptide(peptide: Integers, folds: int, seed: int) -> Integers:
    """Return the fold of each row, 0 to `folds` - 1, (n,) int64: a SplitMix64 hash of the peptide of the row (Steele 2014, OOPSLA)."""
    golden = 0x9E3779B97F4A7C15
    state = peptide.view(np.uint64) + np.uint64((seed + 1) * golden % 2**64)
    return (splitmix64(state) % np.uint64(folds)).astype(np.int64)
