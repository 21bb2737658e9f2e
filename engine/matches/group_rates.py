"""Error rates of matches in groups, by distinct peptides.

Replicate spectra whose peptide is not in the database find the same false peptide repeatedly. Counted by spectra, false matches therefore
cluster, and the first decoy reveals little about the targets above it. The rate of a group is the larger of its rate by spectra and its
rate by distinct peptides (the best score of each).

Every list adds up to one expected decoy peptide, as the tail of its decoy scores suggests (`proteoscope.engine.statistics.target_decoy`).
Most groups have too few decoys to fit a tail. Their expected decoys are the observed number plus one, decaying like the decoys of all
groups from the same base score. Forms that lost against better candidates show if a group scores higher than others because of the effect
of its mass shift on the model; the group's base score is raised by this lead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import DecoyTail, ScoreScale, best_by_group, q_values

__all__ = ["group_leads", "group_rates"]

_FEWEST_FORMS = 5  # decoy forms needed to estimate a group's lead


def group_leads(score: NDArray[np.float64], is_decoy: NDArray[np.bool_], group: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return how far each group's median decoy score exceeds that of all groups; 0 if negative or with too few decoys.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores of all forms of all spectra.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    group : ndarray of int64, shape (n,)
        Group index, below `n_groups`.
    n_groups : int
        Number of groups.

    Returns
    -------
    ndarray of float64, shape (n_groups,)
    """
    leads = np.zeros(n_groups)
    for number in range(n_groups):
        of_group = score[is_decoy & (group == number)]
        if len(of_group) >= _FEWEST_FORMS:
            leads[number] = max(0.0, float(np.median(of_group) - np.median(score[is_decoy])))
    return leads


def group_rates(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    peptide: NDArray[np.int64],
    group: NDArray[np.int64],
    leads: NDArray[np.float64],
    *,
    plus_one: bool,
    decoy_ratio: float,
    scale: ScoreScale | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return q-values and posterior error probabilities of competing matches, estimated per group from its own decoys.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Higher is better.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    peptide : ndarray of int64, shape (n,)
        Equal for all peptidoforms of a peptide and for its decoy partner.
    group : ndarray of int64, shape (n,)
        Group index.
    leads : ndarray of float64, shape (n_groups,)
        See `group_leads`.
    plus_one : bool
        Count one additional decoy everywhere.
    decoy_ratio : float
        Decoy candidates per target candidate.
    scale : ScoreScale or None
        Known distribution of the score, used if all groups have few decoys; None for a trained score.

    Returns
    -------
    q_value : ndarray of float64, shape (n,)
    posterior_error : ndarray of float64, shape (n,)
    """
    unit = 2 * np.unique(peptide, return_inverse=True)[1] + is_decoy
    best = best_by_group(unit, score)
    of_all = DecoyTail.of(score[best][is_decoy[best]], scale)
    q_value, posterior_error = np.empty((2, len(score)))
    for number in np.unique(group).tolist():
        rows = np.flatnonzero(group == number)
        by_peptide = _by_peptide(score[rows], is_decoy[rows], unit[rows], of_all, leads[number], plus_one=plus_one, decoy_ratio=decoy_ratio)
        by_match = q_values(score[rows], is_decoy[rows], plus_one=plus_one, decoy_ratio=decoy_ratio)
        q_value[rows] = np.maximum(by_peptide, by_match)
        posterior_error[rows] = posterior_error_probabilities(score[rows], is_decoy[rows], decoy_ratio)
    return q_value, posterior_error


def _by_peptide(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    unit: NDArray[np.int64],
    of_all: DecoyTail | None,
    lead: float,
    *,
    plus_one: bool,
    decoy_ratio: float,
) -> NDArray[np.float64]:
    """Return the q-value of each match by distinct peptides: the q-value of the lowest-scoring peptide at or above its score.

    `of_all` is the decoy tail of the peptides of all groups, or None.
    """
    best = best_by_group(unit, score)
    best = best[np.argsort(score[best], kind="stable")]
    ranked, decoy = score[best], is_decoy[best]
    expected = _expected(ranked[decoy], of_all, lead, ranked)
    q_value = q_values(ranked, decoy, plus_one=plus_one, decoy_ratio=decoy_ratio, expected=expected)
    return q_value[np.searchsorted(ranked, score)]


def _expected(of_group: NDArray[np.float64], of_all: DecoyTail | None, lead: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected number of a group's decoy peptides at or above each score in `at`."""
    tail = DecoyTail.of(of_group)
    if tail is not None:
        return tail.at(at)
    if of_all is None:
        return np.ones(len(at))
    base = of_all.base + lead
    above = float((of_group - base).clip(min=0.0).mean()) if len(of_group) else 0.0
    return DecoyTail(base, len(of_group) + 1.0, max(of_all.spread, above)).at(at)
