"""Protein inference: the fewest protein groups that explain all identified peptides, and sequence coverage.

Parsimony after Nesvizhskii & Aebersold 2005 (Mol Cell Proteomics 4:1419) and Zhang 2007 (J Proteome Res 6:3549): proteins with the same
peptides form one group, since no spectrum distinguishes them; groups with a unique peptide are selected; other peptides are covered
greedily by the group that explains most remaining ones; redundant groups are removed. Proteins whose peptides are all explained by others
are in no group.

A group's score is that of its best razor peptide. Savitski 2015 (Mol Cell Proteomics 14:2394) and The 2016 (J Am Soc Mass Spectrom 27:1719)
find that the best peptide gives valid protein-level target-decoy estimates, while sums over peptides let long proteins collect false ones.
Decoy peptides are explained by decoy proteins likewise, and groups are ranked together. If target-decoy pairs are known, both first compete
("picked", Savitski 2015): decoys of proteins in the sample then say nothing about absent ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = ["ProteinGroups", "coverage", "infer_protein_groups"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ProteinGroups:
    """Groups as columns, best score first (equal scores: by first protein); g groups, p peptides, as handed in.

    Attributes
    ----------
    member_offsets, members
        Int64 (g+1,), (m,): proteins of each group, ascending; the proteins of a group have the same peptides.
    score
        Float64 (g,): best score among the group's razor peptides.
    q_value
        Float64 (g,).
    is_beaten
        Bool (g,): a group that holds the decoy, or the target, of one of its proteins scores better, so that this one does not count; its
        q-value is 1. False everywhere where partners are not known.
    is_decoy
        Bool (g,).
    n_peptides
        Int64 (g,): peptides that the group contains, shared ones too.
    n_unique_peptides
        Int64 (g,): of these, the peptides that no other group contains.
    n_razor_peptides
        Int64 (g,): peptides assigned to the group; over all groups they add up to the explained peptides.
    n_psms
        Int64 (g,): spectra matched to its peptides, shared ones too.
    razor_group
        Int64 (p,): the one group that each peptide is assigned to; -1 where a peptide has no protein of its kind.
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
    """Explain identified peptides by the fewest groups of indistinguishable proteins.

    Pass target *and decoy* peptides above one score threshold (usually 1 % at peptide level). The groups' q-values then estimate how many
    of them rest on false peptides only.

    Parameters
    ----------
    peptide_offsets, peptide_proteins
        int64 (p+1,), (e,): proteins that contain each peptide. Target peptides are explained by target proteins only, decoys by decoys.
    peptide_score
        float64 (p,), higher is better, no NaN.
    peptide_is_decoy
        bool (p,).
    peptide_psms
        int64 (p,): spectra matched to each peptide.
    protein_is_decoy
        bool (n,).
    decoy_partner
        int64 (n,), the decoy of each target and the target of each decoy, -1 for none. With it, q-values are "picked": of a group and the
        groups of its members' partners only the best counts; the others get the q-value of their score.
    plus_one, decoy_ratio
        As in `target_decoy.q_values`.
    expected_at
        Expected decoys at or above scores of groups, likewise.

    Raises
    ------
    ValueError
        Arrays do not match, or a protein number is out of range.
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
    first_member = _first_of_each(candidate_of)
    of_first = first_member[candidate_of[protein]] == protein
    peptide_edge, candidate_edge = peptide[of_first], candidate_of[protein[of_first]]
    chosen = _parsimonious(peptide_edge, candidate_edge, n_peptides, len(first_member))

    size = np.bincount(candidate_edge, minlength=len(first_member))
    retained = chosen[candidate_edge]
    peptide_edge, candidate_edge = peptide_edge[retained], candidate_edge[retained]
    razor = _best_of_each(peptide_edge, (-size[candidate_edge], first_member[candidate_edge]), candidate_edge, n_peptides)
    score = np.full(len(first_member), -np.inf)
    explained = razor >= 0
    np.maximum.at(score, razor[explained], peptide_score[explained])

    order = np.flatnonzero(chosen)
    order = order[np.lexsort((first_member[order], -score[order]))]
    group_of_candidate = np.full(len(first_member) + 1, -1, np.int64)  # the last entry means "no candidate", whose number is -1
    group_of_candidate[order] = np.arange(len(order))
    group_edge = group_of_candidate[candidate_edge]
    n_groups = len(order)
    groups_of_peptide = np.bincount(peptide_edge, minlength=n_peptides)
    razor_group = group_of_candidate[razor]

    group_of_protein = group_of_candidate[candidate_of]
    members = np.flatnonzero(group_of_protein >= 0)
    members = members[np.argsort(group_of_protein[members], kind="stable")]
    is_decoy = protein_is_decoy[first_member[order]]
    is_beaten = _beaten(score[order], is_decoy, group_of_protein, decoy_partner)
    q_value = np.ones(n_groups)
    competing = score[order][~is_beaten]
    expected = None if expected_at is None else expected_at(competing)
    rates = q_values(competing, is_decoy[~is_beaten], plus_one=plus_one, decoy_ratio=decoy_ratio, expected=expected)
    q_value[~is_beaten] = rates
    return ProteinGroups(
        member_offsets=run_offsets(np.bincount(group_of_protein[members], minlength=n_groups)),
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
    """Share of each protein's residues that lie in at least one peptide.

    Parameters
    ----------
    length
        Int64 (n,), residues of each protein.
    protein, start, end
        Int64 (m,): stretches [start, end) of residues counted from 0, in any order, overlapping or repeated.

    Returns
    -------
    float64 (n,), in [0, 1]; 0 for a protein without residues.

    Raises
    ------
    ValueError
        A stretch leaves its protein.

    Examples
    --------
    >>> coverage(np.array([10, 4]), np.array([0, 0, 0]), np.array([1, 2, 8]), np.array([3, 5, 9]))
    array([0.5, 0. ])
    """
    length, protein, start, end = (np.asarray(column, np.int64) for column in (length, protein, start, end))
    if len(protein) and not ((start >= 0) & (start <= end) & (end <= length[protein])).all():
        raise ValueError("a peptide's stretch leaves its protein")
    # All proteins are laid end to end, so that one running maximum serves them all: no stretch reaches into the next protein.
    origin = np.cumsum(length) - length
    order = np.lexsort((start, protein))
    protein, start, end = protein[order], (origin[protein] + start)[order], (origin[protein] + end)[order]
    covered_to = np.maximum.accumulate(np.append(0, end))[:-1] if len(end) else end
    fresh = np.maximum(end - np.maximum(start, covered_to), 0)
    return np.bincount(protein, fresh, len(length)) / np.maximum(length, 1)


def _edges(
    offsets: Integers, proteins: Integers, peptide_is_decoy: NDArray[np.bool_], protein_is_decoy: NDArray[np.bool_]
) -> tuple[Integers, Integers]:
    """Distinct pairs of a peptide and a protein of its kind, sorted by protein, then peptide."""
    peptide = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    protein = np.asarray(proteins, np.int64)
    same_kind = peptide_is_decoy[peptide] == protein_is_decoy[protein]
    n_peptides = max(len(offsets) - 1, 1)
    pairs = np.unique(protein[same_kind] * n_peptides + peptide[same_kind])
    return pairs % n_peptides, pairs // n_peptides


def _indistinguishable(peptide: Integers, protein: Integers, n_peptides: int, n_proteins: int) -> Integers:
    """Return the number of each protein's peptide set, from 0 by first protein; -1 without peptides.

    Sets are compared by two sums of 64-bit random numbers of their peptides: among 10^6 sets two different ones agree with a probability
    below 10^-26.
    """
    signature = np.random.default_rng(0).integers(0, 2**64, (2, n_peptides), np.uint64)
    present, begin = np.unique(protein, return_index=True)
    candidate_of = np.full(n_proteins, -1, np.int64)
    if len(present) == 0:
        return candidate_of
    first, second = (np.add.reduceat(row[peptide], begin) for row in signature)
    order = np.lexsort((present, second, first))
    is_new = np.append(True, (first[order][1:] != first[order][:-1]) | (second[order][1:] != second[order][:-1]))
    leader = present[order][is_new][np.cumsum(is_new) - 1]
    candidate_of[present[order]] = np.unique(leader, return_inverse=True)[1]
    return candidate_of


def _first_of_each(number: Integers) -> Integers:
    """First index at which each of the numbers 0..max occurs."""
    values, first = np.unique(number, return_index=True)
    return first[values >= 0]


def _parsimonious(peptide: Integers, candidate: Integers, n_peptides: int, n_candidates: int) -> NDArray[np.bool_]:
    """Return the candidates selected so that each peptide is in at least one; candidates are numbered by preference."""
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
        # A candidate that comes first for every peptide it still has is taken before anything that could change its count. So all of these
        # can be taken in one round, and the result is that of taking one after the other. Of equal counts the larger set goes first, so
        # that no set is taken together with one that contains it.
        count = np.bincount(candidate_left, minlength=n_candidates)
        chosen |= _first_for_all(peptide_left, candidate_left, (-count, -size), n_peptides, n_candidates)

    while True:
        retained = chosen[candidate]
        alone = np.bincount(peptide[retained], minlength=n_peptides)[peptide] == 1
        needed = np.zeros(n_candidates, bool)
        needed[candidate[retained & alone]] = True
        spare = retained & ~needed[candidate]
        if not spare.any():
            return chosen
        last = np.arange(n_candidates, 0, -1)
        chosen &= ~_first_for_all(peptide[spare], candidate[spare], (size, last), n_peptides, n_candidates)


def _first_for_all(
    peptide: Integers, candidate: Integers, keys: tuple[Integers, ...], n_peptides: int, n_candidates: int
) -> NDArray[np.bool_]:
    """Candidates that come first, by the keys and then by number, for each of their peptides."""
    best = _best_of_each(peptide, (*(key[candidate] for key in keys), candidate), candidate, n_peptides)
    first = np.zeros(n_candidates, bool)
    first[candidate] = True
    first[candidate[best[peptide] != candidate]] = False
    return first


def _best_of_each(group: Integers, keys: tuple[Integers, ...], value: Integers, n_groups: int) -> Integers:
    """Value of the row that comes first by the keys in each group 0..n-1; -1 for a group without rows."""
    order = np.lexsort((*reversed(keys), group))
    best = np.full(n_groups, -1, np.int64)
    best[group[order][::-1]] = value[order][::-1]
    return best


def _beaten(
    score: NDArray[np.float64], is_decoy: NDArray[np.bool_], group_of_protein: Integers, decoy_partner: Integers | None
) -> NDArray[np.bool_]:
    """Return the groups with a member whose partner is in a better-scoring group."""
    best_rival = np.full(len(score), -np.inf)
    if decoy_partner is not None:
        partner = np.asarray(decoy_partner, np.int64)
        member = np.flatnonzero((group_of_protein >= 0) & (partner >= 0))
        group, rival = group_of_protein[member], group_of_protein[partner[member]]
        np.maximum.at(best_rival, group[rival >= 0], score[rival[rival >= 0]])
    # The target of two equal ones gives way: among false pairs that errs on the safe side.
    return (best_rival > score) | ((best_rival == score) & ~is_decoy)
