"""Protein groups compared with brute force over all choices of proteins, and coverage with sets of residues."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.matches.protein_groups import ProteinGroups, coverage, infer_protein_groups
from tests.effort import lines_run

N_PROTEINS = 7
CASES = st.lists(st.tuples(st.sets(st.integers(0, N_PROTEINS - 1), min_size=1), st.integers(0, 5)), min_size=1, max_size=9)


def infer(peptides: list[set[int]], score: list[float] | None = None, **options: object) -> ProteinGroups:
    """Infer groups of target peptides, each given as the set of its proteins."""
    n_proteins = max((max(proteins) for proteins in peptides), default=0) + 1
    return infer_protein_groups(
        np.cumsum([0, *map(len, peptides)]),
        np.array([protein for proteins in peptides for protein in sorted(proteins)], np.int64),
        np.arange(len(peptides), 0, -1.0) if score is None else np.array(score, float),
        np.zeros(len(peptides), bool),
        np.arange(1, len(peptides) + 1),
        np.zeros(n_proteins, bool),
        **options,
    )


def rows(offsets: np.ndarray, values: np.ndarray) -> list[list[int]]:
    return [values[begin:end].tolist() for begin, end in itertools.pairwise(offsets)]


@settings(deadline=None, max_examples=300)
@given(CASES)
def test_protein_groups_explain_all_peptides_without_redundancy(case: list[tuple[set[int], int]]) -> None:
    peptides, score = [c[0] for c in case], [float(c[1]) for c in case]
    groups = infer(peptides, score)
    peptides_of = {protein: {p for p, proteins in enumerate(peptides) if protein in proteins} for protein in range(N_PROTEINS)}
    members = rows(groups.member_offsets, groups.members)
    explained = [peptides_of[group[0]] for group in members]

    for group, its_peptides in zip(members, explained, strict=True):
        assert group == sorted(protein for protein in peptides_of if peptides_of[protein] == its_peptides)
    assert set.union(*explained) == set(range(len(peptides))), "every peptide is explained"
    assert not any(a <= b for a, b in itertools.permutations(explained, 2)), "no group lies in another"
    for left_out in range(len(explained)):
        assert set().union(*(e for n, e in enumerate(explained) if n != left_out)) != set(range(len(peptides))), "no group is needless"
    smallest = next(
        size
        for size in range(1, N_PROTEINS + 1)
        if any(
            set().union(*(peptides_of[p] for p in chosen)) == set(range(len(peptides)))
            for chosen in itertools.combinations(peptides_of, size)
        )
    )
    harmonic = sum(1 / n for n in range(1, max(map(len, explained)) + 1))
    assert smallest <= len(members) <= smallest * harmonic

    containing = [[g for g, e in enumerate(explained) if peptide in e] for peptide in range(len(peptides))]
    for peptide, its_groups in enumerate(containing):
        razor = int(groups.razor_group[peptide])
        assert razor in its_groups
        assert len(explained[razor]) == max(len(explained[g]) for g in its_groups)
    for number, its_peptides in enumerate(explained):
        razors = [p for p in its_peptides if groups.razor_group[p] == number]
        assert groups.n_peptides[number] == len(its_peptides)
        assert groups.n_unique_peptides[number] == sum(len(containing[p]) == 1 for p in its_peptides)
        assert groups.n_razor_peptides[number] == len(razors)
        assert groups.n_psms[number] == sum(p + 1 for p in its_peptides)
        assert groups.score[number] == max(score[p] for p in razors)
    assert (np.diff(groups.score) <= 0).all()


@settings(deadline=None)
@given(CASES)
def test_protein_groups_equal_greedy_selection(case: list[tuple[set[int], int]]) -> None:
    peptides = [c[0] for c in case]
    peptides_of = {protein: frozenset(p for p, proteins in enumerate(peptides) if protein in proteins) for protein in range(N_PROTEINS)}
    sets: dict[frozenset[int], int] = {}
    for protein, its_peptides in peptides_of.items():
        if its_peptides:
            sets.setdefault(its_peptides, protein)
    chosen = {s for s in sets if any(sum(p in other for other in sets) == 1 for p in s)}
    while still_open := set(range(len(peptides))) - set().union(*chosen):
        chosen.add(min(sets, key=lambda s: (-len(s & still_open), -len(s), sets[s])))
    while spare := [s for s in chosen if all(sum(p in other for other in chosen) > 1 for p in s)]:
        chosen.remove(min(spare, key=lambda s: (len(s), -sets[s])))
    groups = infer(peptides)
    assert {group[0] for group in rows(groups.member_offsets, groups.members)} == {sets[s] for s in chosen}


def test_protein_groups_equal_textbook_cases() -> None:
    """Distinct, indistinguishable, subset, and subsumable proteins of Nesvizhskii & Aebersold 2005."""
    distinct = infer([{0}, {0}, {1}])
    assert rows(distinct.member_offsets, distinct.members) == [[0], [1]]
    indistinguishable = infer([{0, 1}, {0, 1}])
    assert rows(indistinguishable.member_offsets, indistinguishable.members) == [[0, 1]]
    subset = infer([{0, 1}, {0}])
    assert rows(subset.member_offsets, subset.members) == [[0]]
    subsumable = infer([{0}, {0, 1}, {1, 2}, {2}])
    assert rows(subsumable.member_offsets, subsumable.members) == [[0], [2]]


def test_target_and_decoy_proteins_are_grouped_separately() -> None:
    groups = infer_protein_groups(
        np.array([0, 2, 3, 4, 5]),
        np.array([0, 2, 0, 2, 1]),
        np.array([9.0, 8.0, 7.0, 6.0]),
        np.array([False, False, True, False]),
        np.ones(4, np.int64),
        np.array([False, False, True]),
    )
    assert groups.members.tolist() == [0, 2, 1]
    assert groups.is_decoy.tolist() == [False, True, False]
    assert groups.n_peptides.tolist() == [2, 1, 1], "the decoy does not count the target peptide"
    np.testing.assert_allclose(groups.q_value, [0, 0.5, 0.5])


def test_picked_protein_groups_compete_with_their_decoy() -> None:
    """Decoy 3 of protein 1 is worse than protein 1 itself and no longer counts; decoy 2 beats protein 0."""
    score = np.array([5.0, 9.0, 6.0, 7.0])
    arguments = (
        np.arange(5),
        np.arange(4),
        score,
        np.array([False, False, True, True]),
        np.ones(4, np.int64),
        np.array([False, False, True, True]),
    )
    partner = np.array([2, 3, 0, 1])
    picked = infer_protein_groups(*arguments, decoy_partner=partner)
    assert picked.members.tolist() == [1, 3, 2, 0]
    np.testing.assert_allclose(picked.q_value, [0, 1, 1, 1])
    np.testing.assert_allclose(infer_protein_groups(*arguments).q_value, [0, 1, 1, 1])


def test_protein_group_loses_to_better_decoy_of_any_member() -> None:
    """Proteins 0 and 1 share their only peptide; the decoy of 1, in a group with another decoy, scores better."""
    groups = infer_protein_groups(
        np.array([0, 2, 4, 5]),
        np.array([0, 1, 4, 5, 2]),
        np.array([5.0, 7.0, 3.0]),
        np.array([False, True, False]),
        np.ones(3, np.int64),
        np.array([False, False, False, True, True, True]),
        decoy_partner=np.array([3, 4, 5, 0, 1, 2]),
    )
    assert [groups.members[a:b].tolist() for a, b in zip(groups.member_offsets, groups.member_offsets[1:], strict=False)] == [
        [4, 5],
        [0, 1],
        [2],
    ]
    assert groups.is_beaten.tolist() == [False, True, True]
    np.testing.assert_allclose(groups.q_value, [1, 1, 1])


def test_target_peptide_with_only_decoy_proteins_has_no_group() -> None:
    groups = infer_protein_groups(
        np.array([0, 0, 1]), np.array([0]), np.ones(2), np.zeros(2, bool), np.ones(2, np.int64), np.array([False])
    )
    assert groups.razor_group.tolist() == [-1, 0]
    assert len(groups) == 1


def test_no_peptides_give_no_protein_groups() -> None:
    groups = infer_protein_groups(
        np.array([0]), np.empty(0, np.int64), np.empty(0), np.empty(0, bool), np.empty(0, np.int64), np.zeros(3, bool)
    )
    assert len(groups) == 0
    assert groups.member_offsets.tolist() == [0]


def test_infer_protein_groups_rejects_invalid_arrays() -> None:
    with pytest.raises(ValueError, match="protein numbers"):
        infer_protein_groups(np.array([0, 1]), np.array([1]), np.ones(1), np.zeros(1, bool), np.ones(1, np.int64), np.zeros(1, bool))
    with pytest.raises(ValueError, match="differ in length"):
        infer_protein_groups(np.array([0, 1]), np.array([0]), np.ones(2), np.zeros(1, bool), np.ones(1, np.int64), np.zeros(1, bool))


def test_protein_grouping_effort_is_linear_in_peptides() -> None:
    def inferred(n_peptides: int) -> None:
        rng = np.random.default_rng(1)
        n_proteins = n_peptides * 3 // 10
        per_peptide = rng.integers(1, 6, n_peptides)
        proteins = (np.repeat(rng.integers(0, n_proteins, n_peptides), per_peptide) + rng.integers(0, 4, per_peptide.sum())) % n_proteins
        groups = infer_protein_groups(
            np.append(0, np.cumsum(per_peptide)),
            proteins,
            rng.normal(size=n_peptides),
            np.zeros(n_peptides, bool),
            per_peptide,
            np.zeros(n_proteins, bool),
        )
        assert groups.n_razor_peptides.sum() == n_peptides

    def cost(n_peptides: int) -> tuple[int, int]:
        """Return the number of Python lines run and the maximum of allocated bytes."""
        tracemalloc.start()
        try:
            return lines_run(lambda: inferred(n_peptides)), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    for small, large in zip(cost(2_000), cost(16_000), strict=True):
        assert large < 10 * small, (small, large)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=5), st.data())
def test_protein_coverage_is_fraction_of_residues_in_peptides(length: list[int], data: st.DataObject) -> None:
    stretches = []
    for _ in range(data.draw(st.integers(0, 12))):
        protein = data.draw(st.integers(0, len(length) - 1))
        start = data.draw(st.integers(0, length[protein]))
        stretches.append((protein, start, data.draw(st.integers(start, length[protein]))))
    expected = [
        len({r for p, start, end in stretches if p == protein for r in range(start, end)}) / max(residues, 1)
        for protein, residues in enumerate(length)
    ]
    protein, start, end = (np.array([s[column] for s in stretches], np.int64) for column in range(3))
    np.testing.assert_allclose(coverage(np.array(length), protein, start, end), expected)


def test_protein_coverage_rejects_positions_outside_the_protein() -> None:
    with pytest.raises(ValueError, match="exceeds its protein"):
        coverage(np.array([5]), np.array([0]), np.array([3]), np.array([6]))
