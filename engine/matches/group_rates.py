"""Error rates of matches in groups (such as mass shifts), estimated from spectra and from distinct peptides.

Replicate spectra of a peptide that is not in the database match the same false peptide repeatedly. False matches are then not independent,
and the first decoy reveals little about the targets that score higher. The error rate of a group is therefore the larger of two
estimates: one from all matches, one from the best match of each distinct peptide.

In each list, up to one expected decoy is added to the observed decoys, estimated from the tail of the decoy score distribution
(`proteoscope.engine.statistics.target_decoy`). Most groups have too few decoys to fit a tail. Their expected number is the observed number
plus one at the score where the tail of all groups starts, and decays with the tail of all groups. Some groups have higher scores than
others because their mass shift gives the scoring more freedom; candidates at lower ranks show this. The start of the tail is raised by
this score advantage of the group (`group_leads`).
"""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import DecoyTail, ScoreScale, best_by_group, q_values

__all__ = ["group_leads", "group_rates"]

_FEWEST_FORMS = 5  # decoy forms needed to estimate a group's lead


def group_leads(score: NDArray[np.float64], is_decoy: NDArray[np.bool_], group: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return the score advantage of each group: median of its decoy scores minus the median of all decoy scores.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores of all candidates of all spectra, including lower ranks.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    group : ndarray of int64, shape (n,)
        Group of each candidate, from 0 to `n_groups` - 1.
    n_groups : int
        Number of groups.

    Returns
    -------
        0 if the difference is negative, or the group has fewer than five decoys.
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
    """Return q-values and posterior error probabilities of matches that compete within their groups.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Higher is better.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    peptide : ndarray of int64, shape (n,)
        Number shared by all peptidoforms of a peptide and its decoy partner.
    group : ndarray of int64, shape (n,)
        Index of each match's group.
    leads : ndarray of float64, shape (n_groups,)
        Score advantage of each group (see `group_leads`).
    plus_one : bool
        True adds one decoy to the observed decoys at all thresholds.
    decoy_ratio : float
        Decoy candidates per target candidate.
    scale : ScoreScale or None
        Prior parameters of the score's decoy tail, used if all groups have few decoys; None for a trained score.

    Returns
    -------
    q_value : ndarray of float64, shape (n,)
    posterior_error : ndarray of float64, shape (n,)
    """
    unit = 2 * np.unique(peptide, return_inverse=True)[1] + is_decoy
    best = best_by_group(unit, score)
    of_all = DecoyTail.fit(score[best][is_decoy[best]], scale)
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
    """Return the q-value of each match by distinct peptides.

    This is the q-value of the lowest-scoring peptide that scores at least as high as the match. `of_all` is the tail of the decoy peptides
    of all groups, or None; `lead` is the score advantage of the group.
    """
    best = best_by_group(unit, score)
    best = best[np.argsort(score[best], kind="stable")]
    ranked, decoy = score[best], is_decoy[best]
    expected = _expected(ranked[decoy], of_all, lead, ranked)
    q_value = q_values(ranked, decoy, plus_one=plus_one, decoy_ratio=decoy_ratio, expected=expected)
    return q_value[np.searchsorted(ranked, score)]


def _expected(of_group: NDArray[np.float64], of_all: DecoyTail | None, lead: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected number of decoy peptides of a group at or above each score in `at`; see `_by_peptide` for `of_all` and `lead`."""
    tail = DecoyTail.fit(of_group)
    if tail is not None:
        return tail.at(at)
    if of_all is None:
        return np.ones(len(at))
    base = of_all.base + lead
    above = float((of_group - base).clip(min=0.0).mean()) if len(of_group) else 0.0
    return DecoyTail(base, len(of_group) + 1.0, max(of_all.spread, above)).at(at)
