"""Protein inference by parsimony (the smallest set of protein groups that explains all identified peptides), and sequence coverage.

After Nesvizhskii & Aebersold 2005 (Mol Cell Proteomics 4:1419) and Zhang 2007 (J Proteome Res 6:3549): proteins with the same peptides form
one group, since no spectrum distinguishes them. Groups with a unique peptide are selected. The remaining peptides are then covered greedily
by the group that explains most of them, and redundant groups are removed. Proteins whose peptides are all explained by other groups are in
no group.

A group has the score of its best razor peptide (see `ProteinGroups.razor_group`). Savitski 2015 (Mol Cell Proteomics 14:2394) and
The 2016 (J Am Soc Mass Spectrom 27:1719) find that the best peptide gives valid protein-level target-decoy estimates, while sums over
peptides favour long proteins, which collect false peptides. Decoy peptides are explained by decoy proteins in the same way, and all groups
are ranked together. If the decoy of each target is known, only the better of a target group and its decoy group competes ("picked",
Savitski 2015). This removes decoys of proteins that are in the sample.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, row_mask, segment_offsets
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = ["ProteinGroups", "coverage", "infer_protein_groups"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ProteinGroups:
    """Protein groups (g) as columns, sorted by descending score, then by first protein; p is the number of peptides.

    Attributes
    ----------
    member_offsets : ndarray of int64, shape (g + 1,)
        Start of each group in `members`, followed by the length of `members`.
    members : ndarray of int64
        Protein indices, ascending within a group; all proteins of a group have the same peptides.
    score : ndarray of float64, shape (g,)
        Best score of the group's razor peptides.
    q_value : ndarray of float64, shape (g,)
        q-value of each group.
    is_beaten : ndarray of bool, shape (g,)
        True if a group that contains the decoy (or target) of a member has a higher score, or, for a target group, the same score. The
        group then does not compete, and has a q-value of 1. All False if the pairs of targets and decoys are unknown.
    is_decoy : ndarray of bool, shape (g,)
        True for groups of decoys.
    n_peptides : ndarray of int64, shape (g,)
        Number of the group's peptides, including peptides shared with other groups.
    n_unique_peptides : ndarray of int64, shape (g,)
        Number of peptides that no other group contains.
    n_razor_peptides : ndarray of int64, shape (g,)
        Number of peptides assigned to the group; the sum over all groups is the number of explained peptides.
    n_psms : ndarray of int64, shape (g,)
        Number of spectra matched to the group's peptides, including shared peptides.
    razor_group : ndarray of int64, shape (p,)
        Index of the group to which each peptide is assigned, or -1 if no protein of the same type (target or decoy) contains the peptide.
    """

    member_offsets: Integers
    members: Integers
    score: NDArray[np.float64]
    q_value: NDArray[np.float64]
    is_beaten: NDArray[np.bool_]
    is_decoy: NDArray[np.bool_]
    n_peptides: Integers
    n_unique_peptides: Integers
    n_razor_peptides: Integers
    n_psms: Integers
    razor_group: Integers

    def __len__(self) -> int:
        return len(self.score)


def infer_protein_groups(
    peptide_offsets: Integers,
    peptide_proteins: Integers,
    peptide_score: NDArray[np.float64],
    peptide_is_decoy: NDArray[np.bool_],
    peptide_psms: Integers,
    protein_is_decoy: NDArray[np.bool_],
    *,
    decoy_partner: Integers | None = None,
    plus_one: bool = False,
    decoy_ratio: float = 1.0,
    expected_at: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None,
) -> ProteinGroups:
    """Return the smallest set of groups of indistinguishable proteins that explains the identified peptides.

    Pass target and decoy peptides above one score threshold (usually 1 % at peptide level). The q-values of groups then estimate the
    fraction of groups that are based on false peptides only.

    Parameters
    ----------
    peptide_offsets : ndarray of int64, shape (p + 1,)
        Start of each peptide's proteins in `peptide_proteins`, followed by the length of `peptide_proteins`.
    peptide_proteins : ndarray of int64
        Indices of the proteins that contain each peptide. Target peptides are explained only by targets, decoy peptides only by decoys.
    peptide_score : ndarray of float64, shape (p,)
        Score of each peptide; higher is better, no NaN.
    peptide_is_decoy : ndarray of bool, shape (p,)
        True for decoy peptides.
    peptide_psms : ndarray of int64, shape (p,)
        Number of spectra matched to each peptide.
    protein_is_decoy : ndarray of bool, shape (n,)
        True for decoy proteins.
    decoy_partner : ndarray of int64, shape (n,), or None
        Index of the decoy of each target and of the target of each decoy, or -1. If given, q-values are "picked": among a group and the
        groups that contain the decoys (or targets) of its members, only the best competes.
    plus_one : bool
        True adds one decoy to the observed decoys (see `target_decoy.q_values`).
    decoy_ratio : float
        Number of decoy candidates per target candidate (see `target_decoy.q_values`).
    expected_at : callable or None
        Function that returns the expected number of decoy groups at or above each score.

    Returns
    -------
    ProteinGroups

    Raises
    ------
    ValueError
        If lengths of arrays differ, or a protein index is out of range.
    """
    n_peptides, n_proteins = len(peptide_offsets) - 1, len(protein_is_decoy)
    peptide_score = np.asarray(peptide_score, np.float64)
    peptide_is_decoy, protein_is_decoy = np.asarray(peptide_is_decoy, bool), np.asarray(protein_is_decoy, bool)
    if not len(peptide_score) == len(peptide_is_decoy) == len(peptide_psms) == n_peptides or peptide_offsets[-1] != len(peptide_proteins):
        raise ValueError("the columns of the peptides differ in length")
    if len(peptide_proteins) and (np.min(peptide_proteins) < 0 or np.max(peptide_proteins) >= n_proteins):
        raise ValueError(f"protein numbers must lie in 0..{n_proteins - 1}")

    peptide, protein = _edges(peptide_offsets, peptide_proteins, peptide_is_decoy, protein_is_decoy)
    candidate_of = _indistinguishable(peptide, protein, n_peptides, n_proteins)
    first_member = _first_indices(candidate_of)
    of_first = first_member[candidate_of[protein]] == protein
    peptide_edge, candidate_edge = peptide[of_first], candidate_of[protein[of_first]]
    chosen = _parsimonious(peptide_edge, candidate_edge, n_peptides, len(first_member))

    size = np.bincount(candidate_edge, minlength=len(first_member))
    retained = chosen[candidate_edge]
    peptide_edge, candidate_edge = peptide_edge[retained], candidate_edge[retained]
    razor = _best_values(peptide_edge, (-size[candidate_edge], first_member[candidate_edge]), candidate_edge, n_peptides)
    score = np.full(len(first_member), -np.inf)
    explained = razor >= 0
    np.maximum.at(score, razor[explained], peptide_score[explained])

    order = np.flatnonzero(chosen)
    order = order[np.lexsort((first_member[order], -score[order]))]
    group_of_candidate = np.full(len(first_member) + 1, -1, np.int64)  # index -1 ("no candidate") reads the last entry
    group_of_candidate[order] = np.arange(len(order))
    group_edge = group_of_candidate[candidate_edge]
    n_groups = len(order)
    groups_of_peptide = np.bincount(peptide_edge, minlength=n_peptides)
    razor_group = group_of_candidate[razor]

    group_of_protein = group_of_candidate[candidate_of]
    members = np.flatnonzero(group_of_protein >= 0)
    members = members[np.argsort(group_of_protein[members], kind="stable")]
    is_decoy = protein_is_decoy[first_member[order]]
    is_beaten = _have_better_partner(score[order], is_decoy, group_of_protein, decoy_partner)
    q_value = np.ones(n_groups)
    competing = score[order][~is_beaten]
    expected = None if expected_at is None else expected_at(competing)
    rates = q_values(competing, is_decoy[~is_beaten], plus_one=plus_one, decoy_ratio=decoy_ratio, expected=expected)
    q_value[~is_beaten] = rates
    return ProteinGroups(
        member_offsets=segment_offsets(np.bincount(group_of_protein[members], minlength=n_groups)),
        members=members,
        score=score[order],
        q_value=q_value,
        is_beaten=is_beaten,
        is_decoy=is_decoy,
        n_peptides=size[order],
        n_unique_peptides=np.bincount(group_edge[groups_of_peptide[peptide_edge] == 1], minlength=n_groups),
        n_razor_peptides=np.bincount(razor_group[explained], minlength=n_groups),
        n_psms=np.bincount(group_edge, np.asarray(peptide_psms)[peptide_edge], n_groups).astype(np.int64),
        razor_group=razor_group,
    )


def coverage(length: Integers, protein: Integers, start: Integers, end: Integers) -> NDArray[np.float64]:
    """Return the fraction of each protein's residues that lie in at least one peptide.

    Parameters
    ----------
    length : ndarray of int64, shape (n,)
        Number of residues of each protein.
    protein : ndarray of int64, shape (m,)
        Index of the protein of each residue range.
    start, end : ndarray of int64, shape (m,)
        Residue ranges [start, end) from 0, in any order; they may overlap.

    Returns
    -------
    ndarray of float64, shape (n,)
        From 0 to 1; 0 for a protein without residues.

    Raises
    ------
    ValueError
        If a range exceeds its protein.

    Examples
    --------
    >>> coverage(np.array([10, 4]), np.array([0, 0, 0]), np.array([1, 2, 8]), np.array([3, 5, 9]))
    array([0.5, 0. ])
    """
    length, protein, start, end = (np.asarray(column, np.int64) for column in (length, protein, start, end))
    if len(protein) and not ((start >= 0) & (start <= end) & (end <= length[protein])).all():
        raise ValueError("the range of a peptide exceeds its protein")
    # Proteins are concatenated, so that one running maximum suffices: no range extends into the next protein.
    origin = np.cumsum(length) - length
    order = np.lexsort((start, protein))
    protein, start, end = protein[order], (origin[protein] + start)[order], (origin[protein] + end)[order]
    covered_to = np.maximum.accumulate(np.append(0, end))[:-1] if len(end) else end
    fresh = np.maximum(end - np.maximum(start, covered_to), 0)
    return np.bincount(protein, fresh, len(length)) / np.maximum(length, 1)


def _edges(
    offsets: Integers, proteins: Integers, peptide_is_decoy: NDArray[np.bool_], protein_is_decoy: NDArray[np.bool_]
) -> tuple[Integers, Integers]:
    """Return the distinct pairs of a peptide and a protein of the same type (target or decoy), sorted by protein, then by peptide."""
    peptide = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    protein = np.asarray(proteins, np.int64)
    same_kind = peptide_is_decoy[peptide] == protein_is_decoy[protein]
    n_peptides = max(len(offsets) - 1, 1)
    pairs = np.unique(protein[same_kind] * n_peptides + peptide[same_kind])
    return pairs % n_peptides, pairs // n_peptides


def _indistinguishable(peptide: Integers, protein: Integers, n_peptides: int, n_proteins: int) -> Integers:
    """Return a number for each protein; proteins with the same peptides have the same number, proteins without peptides -1.

    Numbers start at 0 and follow the order of the proteins. Sets of peptides are compared by two sums of random 64-bit numbers, one number
    per peptide: among 10^6 sets, the probability that two different sets have the same sums is below 10^-26.
    """
    signature = np.random.default_rng(0).integers(0, 2**64, (2, n_peptides), np.uint64)
    present, begin = np.unique(protein, return_index=True)
    candidate_of = np.full(n_proteins, -1, np.int64)
    if len(present) == 0:
        return candidate_of
    first, second = (np.add.reduceat(row[peptide], begin) for row in signature)
    order = np.lexsort((present, second, first))
    is_new = is_group_start(first[order], second[order])
    leader = present[order][is_new][np.cumsum(is_new) - 1]
    candidate_of[present[order]] = np.unique(leader, return_inverse=True)[1]
    return candidate_of


def _first_indices(number: Integers) -> Integers:
    """Return the index of the first occurrence in `number` of each non-negative value, in ascending order of the values."""
    values, first = np.unique(number, return_index=True)
    return first[values >= 0]


def _parsimonious(peptide: Integers, candidate: Integers, n_peptides: int, n_candidates: int) -> NDArray[np.bool_]:
    """Return True for the selected candidates; as few as possible are selected such that each peptide is in at least one of them.

    The selection is greedy. Candidates with more peptides that are not yet explained are preferred, then candidates with more peptides,
    then candidates with lower indices.
    """
    chosen = np.zeros(n_candidates, bool)
    size = np.bincount(candidate, minlength=n_candidates)
    chosen[candidate[np.bincount(peptide, minlength=n_peptides)[peptide] == 1]] = True
    explained = np.zeros(n_peptides, bool)
    peptide_left, candidate_left = peptide, candidate
    while True:
        explained[peptide_left[chosen[candidate_left]]] = True
        open_edge = ~explained[peptide_left]
        peptide_left, candidate_left = peptide_left[open_edge], candidate_left[open_edge]
        if len(peptide_left) == 0:
            break
        # A candidate that is first for all its remaining peptides is selected before any candidate that could change its count. All such
        # candidates can therefore be selected in one round, with the same result as one by one. Among equal counts, the larger set is
        # first, so that a set is never selected together with a superset.
        count = np.bincount(candidate_left, minlength=n_candidates)
        chosen |= _are_first_for_all(peptide_left, candidate_left, (-count, -size), n_peptides, n_candidates)

    while True:
        retained = chosen[candidate]
        alone = np.bincount(peptide[retained], minlength=n_peptides)[peptide] == 1
        needed = row_mask(n_candidates, candidate[retained & alone])
        spare = retained & ~needed[candidate]
        if not spare.any():
            return chosen
        last = np.arange(n_candidates, 0, -1)
        chosen &= ~_are_first_for_all(peptide[spare], candidate[spare], (size, last), n_peptides, n_candidates)


def _are_first_for_all(
    peptide: Integers, candidate: Integers, keys: tuple[Integers, ...], n_peptides: int, n_candidates: int
) -> NDArray[np.bool_]:
    """Return True for each candidate that is the first candidate of all its peptides.

    The candidates of a peptide are sorted by `keys`, then by index.
    """
    best = _best_values(peptide, (*(key[candidate] for key in keys), candidate), candidate, n_peptides)
    first = row_mask(n_candidates, candidate)
    first[candidate[best[peptide] != candidate]] = False
    return first


def _best_values(group: Integers, keys: tuple[Integers, ...], value: Integers, n_groups: int) -> Integers:
    """Return `value` of the first row of each of `n_groups` groups, with rows sorted by `keys`; -1 for a group without rows."""
    order = np.lexsort((*reversed(keys), group))
    best = np.full(n_groups, -1, np.int64)
    best[group[order][::-1]] = value[order][::-1]
    return best


def _have_better_partner(
    score: NDArray[np.float64], is_decoy: NDArray[np.bool_], group_of_protein: Integers, decoy_partner: Integers | None
) -> NDArray[np.bool_]:
    """Return True for groups with a member whose decoy (or target) is in a group with a higher score, or, for targets, the same score."""
    best_rival = np.full(len(score), -np.inf)
    if decoy_partner is not None:
        partner = np.asarray(decoy_partner, np.int64)
        member = np.flatnonzero((group_of_protein >= 0) & (partner >= 0))
        group, rival = group_of_protein[member], group_of_protein[partner[member]]
        np.maximum.at(best_rival, group[rival >= 0], score[rival[rival >= 0]])
    # With equal scores, the decoy wins, which is conservative.
    is_beaten: NDArray[np.bool_] = (best_rival > score) | ((best_rival == score) & ~is_decoy)
    return is_beaten
