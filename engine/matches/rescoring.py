"""Semi-supervised linear rescoring: a model, trained on the run, that separates correct matches from decoys.

The method follows Percolator (Käll 2007, Nature Methods 4:923): repeatedly, a linear model is trained on the decoys and on the targets
accepted at 1 % by the current score, and gives the next score. A match is scored only by models trained without the matches of its peptide.
Replicates, fractions and neighbouring scans repeat the spectrum of a peptide. A model trained on one of these spectra would know the label
of the other spectra. If spectra instead of peptides were assigned to folds (as in Granholm 2012, BMC Bioinformatics 13(S16):S3), 3 % of the
matches accepted at 1 % in five copies of a run were false. All peptidoforms of a peptide and its decoy partner are therefore in one fold.

A single division into folds changes the number of accepted matches of a small run by several percent. The score is therefore the mean over
several divisions.

The model is a ridge-penalised logistic regression, fitted by Newton's method (`proteoscope.kernels.cpu.rescoring`). Its solution equals
that of scikit-learn's `LogisticRegression`, whose import takes a second. The penalty is constant, but the
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
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.statistics.target_decoy import q_values
from proteoscope.kernels.cpu.rescoring import learn_weights, score_matches

__all__ = ["Rescoring", "RescoringModels", "folds_by_peptide", "rescore"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
Features = Mapping[str, NDArray[np.floating]]
"""Feature columns by name, each (n,)."""

_ACCEPTED = 0.01
_TRAINING_LEVELS = np.array([0.01, 0.02, 0.05])  # a looser level is used if a stricter one accepts too few
_ENOUGH_POSITIVES = 20
_MAXIMUM_DIVISIONS, _FEWEST_DIVISIONS = 10, 2
_ROWS_LEARNT = 40_000  # matches over all divisions; for large runs, the division into folds matters less
_MAXIMUM_ROWS_LEARNT = 100_000  # matches per division, enough for thirty weights
_ROWS_SCORED = 1 << 16
_SMALLEST_WIDTH = 1e-12  # standard deviation of the scores of a model


@dataclass(frozen=True)
class RescoringModels:
    """Models trained on a run, which score matches of the same run; their columns are f features and the initial score.

    Attributes
    ----------
    mean, spread : ndarray of float64, shape (f + 1,)
        Mean and standard deviation over training matches; a spread of 0 excludes a column.
    models : ndarray of float64, shape (divisions, folds, f + 4)
        Model of each fold: the weight of each standardised column, the constant term, and the mean and the standard deviation of its scores
        over training matches.
    threshold, median : float
        Sums of the scores of all divisions that are scaled to 0 (`threshold`) and to -1 (`median`).
    seed : int
        Random seed of the assignment to folds.
    """

    mean: Floats
    spread: Floats
    models: Floats
    threshold: float
    median: float
    seed: int

    def score(self, features: Features, initial_score: Floats, peptide: Integers) -> Floats:
        """Return the new score of each match, (n,) float64, from the models trained without the peptide of the match.

        See `rescore` for the parameters.
        """
        total, (divisions, folds, _) = np.empty(len(initial_score)), self.models.shape
        for first in range(0, len(total), _ROWS_SCORED):  # batches limit the memory for the table
            some = slice(first, first + _ROWS_SCORED)
            fold = np.stack([folds_by_peptide(peptide[some], folds, self.seed + division) for division in range(divisions)])
            score_matches(_table(features, initial_score, some), self.mean, self.spread, self.models, fold, total[some])
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
    if not len(peptide) == len(competes) == len(is_decoy) == table.shape[1]:
        raise ValueError("the columns of the matches differ in length")
    if not np.isfinite(table).all():
        raise ValueError(f"not finite: {', '.join(np.array([*features, 'initial score'])[~np.isfinite(table).all(axis=1)])}")
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
    learnt_from = np.ones((len(table) + 1, len(of_peptide)))  # the last row is the constant
    learnt_from[:-1] = table[:, is_training]
    mean, spread = _mean_and_spread(learnt_from[:-1])
    _standardise(learnt_from[:-1], mean, spread)
    if divisions is None:
        divisions = int(np.clip(_ROWS_LEARNT // len(of_peptide), _FEWEST_DIVISIONS, _MAXIMUM_DIVISIONS))
    fold_of = [folds_by_peptide(of_peptide, folds, settings.seed + division) for division in range(divisions)]
    models = np.empty((divisions, folds, len(learnt_from) + 2))

    def learn(part: tuple[int, int]) -> None:
        division, fold = part
        _learn(learnt_from, of_decoy, fold_of[division] != fold, settings, models[part])

    parts = [(division, fold) for division in range(divisions) for fold in range(folds)]
    run_on_threads(learn, parts, resources.threads, resources.progress, steps=lambda _: 0)
    models[..., -1] = np.maximum(models[..., -1], _SMALLEST_WIDTH)
    unscaled = RescoringModels(mean, spread, models, 0.0, -1.0, settings.seed)
    total = unscaled.score(features, initial_score, peptide)
    threshold, median = _landmarks(total[competes], decoy, settings.decoy_ratio)
    learnt = replace(unscaled, threshold=threshold, median=median)
    return Rescoring((total - threshold) / (threshold - median), f"Rescoring learnt from {n_peptides} peptides", learnt)


def _table(features: Features, initial_score: Floats, some: slice = slice(None)) -> Floats:
    """Return a table with a row for each feature and a row for the initial score, of the matches `some`."""
    return np.stack([*(np.asarray(values[some], np.float64) for values in features.values()), initial_score[some]])


def _learn(table: Floats, is_decoy: Truths, is_seen: Truths, settings: RescoringSettings, model: Floats) -> None:
    """Train the model of a fold (see `learn_weights`)."""
    learn_weights(
        table, is_decoy, is_seen, _TRAINING_LEVELS, _ENOUGH_POSITIVES, settings.decoy_ratio, settings.iterations, settings.ridge, model
    )


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
    """Return the mean and the standard deviation of each row; the standard deviation of constant rows is exactly 0."""
    mean, spread, scale = table.mean(axis=1), table.std(axis=1), np.abs(table).max(axis=1)
    return mean, np.where(spread > 1e-12 * scale, spread, 0.0)


def _standardise(table: Floats, mean: Floats, spread: Floats) -> None:
    """Standardise each row of a table in place; rows with a spread of 0 become 0."""
    np.subtract(table, mean[:, None], out=table)
    np.divide(table, spread[:, None], out=table, where=spread[:, None] > 0.0)
    table[spread == 0.0] = 0.0


def folds_by_peptide(peptide: Integers, folds: int, seed: int) -> Integers:
    """Return the fold of each row, 0 to `folds` - 1, (n,) int64: a SplitMix64 hash of the peptide of the row (Steele 2014, OOPSLA)."""
    golden = 0x9E3779B97F4A7C15
    state = peptide.view(np.uint64) + np.uint64((seed + 1) * golden % 2**64)
    return (splitmix64(state) % np.uint64(folds)).astype(np.int64)
