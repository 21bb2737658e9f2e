"""Error rates of matches in groups, by distinct peptides.

Replicates of a spectrum that no peptide of the database explains find the same false one repeatedly. Counted by spectra, false matches then
cluster, and the first decoy says little about what lies above it. A group's rate is therefore that of its distinct peptides, each at its
best score, wherever that is larger.

Every list counts up to one decoy peptide more than it has, as the tail of its decoys suggests
(`proteoscope.engine.statistics.target_decoy`). Most groups have too few decoys for a tail. Their expected decoys are those they have and
one more, decaying as those of all groups do from their base. Forms that lost against better candidates show whether a group scores higher
than others due to the effect of its shift on the model; its base is raised by that lead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import DecoyTail, ScoreScale, best_by_group, q_values

__all__ = ["group_leads", "group_rates"]

_FEWEST_FORMS = 5  # for a group's lead to be known


def group_leads(score: NDArray[np.float64], is_decoy: NDArray[np.bool_], group: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return the excess of each group's median decoy score over that of all, 0 if negative or for few decoys.

    Parameters
    ----------
    score, is_decoy, group : (n,)
        Of all forms of all spectra.

    Returns
    -------
    (n_groups,) float64.
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
    """Return q-values and posterior error probabilities of competing matches, in each group by its own decoys.

    Parameters
    ----------
    score : (n,) float64
        Higher is better.
    is_decoy : ndarray of bool, shape (n,)
    peptide : (n,) int64
        The same for all forms of a peptide, and for its decoy partner.
    group : ndarray of int64, shape (n,)
    leads
        Of each group, see `group_leads`.
    plus_one
        Count a whole decoy more everywhere.
    decoy_ratio
        Decoy candidates for each target candidate.
    scale
        What is known of the score beforehand, where all groups have few decoys; None where it was learnt.

    Returns
    -------
    Two of (n,) float64.
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
    """Return the q-values of distinct peptides, for each match that of the lowest peptide not below it.

    Parameters
    ----------
    of_all : DecoyTail or None
        Tail of the decoy peptides of all groups.
    """
    best = best_by_group(unit, score)
    best = best[np.argsort(score[best], kind="stable")]
    ranked, decoy = score[best], is_decoy[best]
    expected = _expected(ranked[decoy], of_all, lead, ranked)
    q_value = q_values(ranked, decoy, plus_one=plus_one, decoy_ratio=decoy_ratio, expected=expected)
    return q_value[np.searchsorted(ranked, score)]


def _expected(of_group: NDArray[np.float64], of_all: DecoyTail | None, lead: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Decoy peptides of a group to be expected at or above some scores."""
    tail = DecoyTail.of(of_group)
    if tail is not None:
        return tail.at(at)
    if of_all is None:
        return np.ones(len(at))
    base = of_all.base + lead
    above = float((of_group - base).clip(min=0.0).mean()) if len(of_group) else 0.0
    return DecoyTail(base, len(of_group) + 1.0, max(of_all.spread, above)).at(at)
