"""The digestion kernel and decoys against plain Python written from their definitions."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from proteoscope.engine.chemistry.enzymes import SPECIFICITIES, digest, enzyme
from proteoscope.kernels.cpu.peptides import digest_proteins, merge_peptides, write_decoys
from proteoscope.kernels.digestion_layouts import DigestionRules, PeptideDictionary, PeptideEntries
from tests.shim.read_only import read_only

MASSES = np.array([0 if residue in "BJXZ" else 100 + 7 * i for i, residue in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")], np.int64)
MASSES[MASSES == 0] = -1
WATER = 18
PROTEINS = st.lists(st.text("AKRPMDGXUO", min_size=0, max_size=25), min_size=1, max_size=5)


def flat(proteins: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    text = "".join(proteins).encode()
    offsets = np.concatenate(([0], np.cumsum([len(protein) for protein in proteins]))).astype(np.int64)
    read_only(offsets)
    return np.frombuffer(text, np.uint8), offsets


def enumerate_peptides(
    proteins: list[str], agent: str, ends: int, missed: int, lengths: tuple[int, int], masses: tuple[int, int], clip: bool, width: int = 50
) -> list[tuple[int, int, int, int, int, int]]:
    """Return (mass, position, length, flags, signature, residues) of each entry of the kernel, after checking its count."""
    residues, offsets = flat(proteins)
    buckets = np.zeros(masses[1] // width + 1, np.int64)
    every = np.arange(len(buckets))
    rules = DigestionRules(enzyme(agent).cleavage_table(), MASSES, WATER, ends, missed, *lengths, clip, *masses, width)
    digest_proteins(residues, offsets, 0, len(proteins), rules, every, buckets, False, PeptideEntries.empty(0))
    starts = np.concatenate(([0], np.cumsum(buckets)))
    cursor = starts[:-1].copy()
    out = PeptideEntries.empty(int(starts[-1]))
    digest_proteins(residues, offsets, 0, len(proteins), rules, every, cursor, True, out)
    assert np.array_equal(cursor, starts[1:])
    mass, signature, position, length, flags, residue_mask = out
    assert np.array_equal(mass // width, np.repeat(every, buckets)), "an entry is in the run of its bucket"
    columns = (mass, position, length, flags, signature, residue_mask)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def reference(
    proteins: list[str], agent: str, ends: int, missed: int, lengths: tuple[int, int], masses: tuple[int, int], clip: bool
) -> list[tuple[int, int, int, int]]:
    expected = []
    specificity = SPECIFICITIES[2 - ends]
    base = 0
    for protein in proteins:
        for start, stop, inside in digest(protein, enzyme(agent), missed, specificity, *lengths, clip):
            residues = [MASSES[ord(residue) - 65] for residue in protein[start:stop]]
            mass = WATER + int(sum(residues))
            if min(residues) < 0 or not masses[0] <= mass <= masses[1]:
                continue
            at_start = start == 0 or (clip and start == 1 and protein[0] == "M")
            flags = int(at_start) + 2 * int(stop == len(protein)) + 4 * inside
            expected.append((mass, base + start, stop - start, flags))
        base += len(protein)
    return sorted(expected)


@settings(max_examples=150, deadline=None)
@given(
    PROTEINS,
    st.sampled_from(["Trypsin", "Trypsin/P", "Asp-N", "CNBr", "Formic_acid", "no cleavage"]),
    st.sampled_from([1, 2]),
    st.integers(0, 3),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 12),
)
@example(["MKMR", "M", "MM", ""], "Trypsin", 2, 1, True, 1, 5)
def test_specific_digestion_equals_plain_python(
    proteins: list[str], agent: str, ends: int, missed: int, clip: bool, shortest: int, more: int
) -> None:
    arguments = (proteins, agent, ends, missed, (shortest, shortest + more), (0, 4000), clip)
    assert sorted(entry[:4] for entry in enumerate_peptides(*arguments)) == reference(*arguments)


@settings(max_examples=60, deadline=None)
@given(PROTEINS, st.sampled_from(["Trypsin", "Asp-N"]), st.integers(0, 3), st.booleans())
@example(["GKGKGKGKG"], "Trypsin", 1, False)
def test_non_specific_digestion_lists_every_subsequence(proteins: list[str], agent: str, missed: int, clip: bool) -> None:
    arguments = (proteins, agent, 0, missed, (2, 14), (0, 4000), clip)
    assert sorted(entry[:4] for entry in enumerate_peptides(*arguments)) == reference(*arguments)


def test_digestion_limits_of_length_and_mass_are_inclusive() -> None:
    protein, exact = "GAGAGAGK", WATER + sum(int(MASSES[ord(residue) - 65]) for residue in "GAGAGAGK")
    for low, high, n_peptides in ((exact, exact, 1), (exact + 1, exact + 9, 0), (0, exact - 1, 0)):
        assert len(enumerate_peptides([protein], "Trypsin", 2, 0, (8, 8), (low, high), False)) == n_peptides
    assert not enumerate_peptides([protein], "Trypsin", 2, 0, (9, 20), (0, 5000), False)
    assert not enumerate_peptides([protein], "Trypsin", 2, 0, (1, 7), (0, 5000), False)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("AGKR", min_size=1, max_size=14), min_size=1, max_size=6), st.integers(0, 2))
def test_merge_peptides_lists_every_position_of_each_peptide(proteins: list[str], missed: int) -> None:
    entries = enumerate_peptides(proteins, "Trypsin", 2, missed, (1, 14), (0, 9000), True)
    n = len(entries)
    mass, position, length, flags = (np.array([entry[i] for entry in entries]) for i in range(4))
    signature, residue_mask = np.array([entry[4] for entry in entries], np.uint64), np.array([entry[5] for entry in entries], np.uint32)
    dictionary = PeptideDictionary.empty(n)
    residues, _ = flat(proteins)
    order = np.argsort((mass.astype(np.uint64) << np.uint64(20)) | (signature >> np.uint64(44)))
    as_written = PeptideEntries(
        mass.astype(np.int64), signature, position.astype(np.uint32), length.astype(np.uint8), flags.astype(np.uint8), residue_mask
    )
    count = merge_peptides(residues, len(residues), order, as_written, dictionary)
    check_dictionary("".join(proteins), entries, count, dictionary)


def check_dictionary(text: str, entries: list[tuple[int, int, int, int, int, int]], count: int, dictionary: PeptideDictionary) -> None:
    expected: dict[str, list[tuple[int, int]]] = {}
    for _, at, size, flag, _, _ in entries:
        expected.setdefault(text[at : at + size], []).append((at, flag))
    out_mass, out_position, out_length, out_flags, residues, pointer, occurrence = dictionary
    bounds = [*pointer[:count].tolist(), len(entries)]
    actual = {}
    for i in range(count):
        sequence = text[out_position[i] : int(out_position[i]) + out_length[i]]
        assert sequence not in actual, "a peptide is listed once"
        actual[sequence] = occurrence[bounds[i] : bounds[i + 1]].tolist()
        places = sorted(expected[sequence])
        joined = places[0][1] >> 2 << 2
        for _, flag in places:
            joined |= flag & 3
        assert out_position[i] == places[0][0]
        assert out_flags[i] == joined
        assert {bit for bit in range(32) if residues[i] >> bit & 1} == {ord(residue) - 65 for residue in sequence}
        assert out_mass[i] == pytest.approx((WATER + sum(int(MASSES[ord(residue) - 65]) for residue in sequence)) * 1e-9, rel=1e-15)
    assert actual == {sequence: [at for at, _ in sorted(places)] for sequence, places in expected.items()}
    assert np.all(np.diff(out_mass[:count]) >= 0)


def test_merge_peptides_separates_peptides_with_equal_signatures() -> None:
    """Colliding masses and signatures are distinguished by the residues."""
    residues = np.frombuffer(b"ACCAACAC", np.uint8)
    n = 4
    dictionary = PeptideDictionary.empty(n)
    same = np.full(n, 7, np.uint64)
    position, length = np.array([6, 2, 4, 0], np.uint32), np.full(n, 2, np.uint8)
    flags, residue_mask = np.array([0, 0, 1, 2], np.uint8), np.full(n, 5, np.uint32)
    entries = PeptideEntries(np.full(n, 5), same, position, length, flags, residue_mask)
    count = merge_peptides(residues, len(residues), np.arange(n), entries, dictionary)
    assert count == 2
    assert dictionary.occurrence.tolist() == [0, 4, 6, 2]  # AC three times, then CA
    assert dictionary.pointer[:2].tolist() == [0, 3]
    assert dictionary.flags[:2].tolist() == [3, 0]


def decoys(proteins: list[str], method: int, agent: str = "Trypsin", seed: int = 5) -> list[str]:
    residues, offsets = flat(proteins)
    out = np.zeros_like(residues)
    write_decoys(residues.copy(), offsets.copy(), method, enzyme(agent).cleavage_table(), seed, out, np.empty(0, np.int64))
    return [bytes(out[a:b]).decode() for a, b in pairwise(offsets)]


def fully_cleaved(protein: str, agent: str) -> list[str]:
    return [protein[a:b] for a, b, _ in digest(protein, enzyme(agent))]


@settings(max_examples=50, deadline=None)
@given(PROTEINS)
def test_reversed_decoys_are_the_reversed_proteins(proteins: list[str]) -> None:
    assert decoys(proteins, 0) == [protein[::-1] for protein in proteins]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text("ACDEKRGM", max_size=25), min_size=1, max_size=4),
    st.sampled_from([1, 2]),
    st.sampled_from(["Trypsin/P", "Lys-C", "Asp-N", "Lys-N", "Formic_acid", "no cleavage"]),
)
@example(["GAAKGGGRCEMAK"], 1, "Trypsin/P")
@example(["GEADEGGADCAM"], 1, "Asp-N")
def test_decoys_preserve_cleavage_sites_and_peptide_composition(proteins: list[str], method: int, agent: str) -> None:
    for protein, decoy in zip(proteins, decoys(proteins, method, agent), strict=True):
        # No proline here: a proline that moves after a K protects it, for any method.
        target_peptides, decoy_peptides = fully_cleaved(protein, agent), fully_cleaved(decoy, agent)
        assert [Counter(decoy_peptide) for decoy_peptide in decoy_peptides] == [
            Counter(target_peptide) for target_peptide in target_peptides
        ]
        if method == 1:
            for target, other in zip(target_peptides, decoy_peptides, strict=True):
                assert other in {reversed_inside(target, first, last) for first in (0, 1) for last in (0, 1)}


def reversed_inside(peptide: str, first: int, last: int) -> str:
    """Return the peptide reversed, except for its first and last residue where these must stay."""
    last = max(first, len(peptide) - last)
    return peptide[:first] + peptide[first:last][::-1] + peptide[last:]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("ACDEFGHKRPM", min_size=5, max_size=30), min_size=2, max_size=4, unique=True))
def test_shuffled_decoys_depend_only_on_protein_and_seed(proteins: list[str]) -> None:
    first = dict(zip(proteins, decoys(proteins, 2), strict=True))
    shuffled = sorted(proteins, reverse=True)
    assert dict(zip(shuffled, decoys(shuffled, 2), strict=True)) == first


def test_shuffled_decoys_have_all_orders_equally_often() -> None:
    """All 24 orders of four residues are equally frequent over seeds (chi-square of 23 degrees of freedom, 99.9th percentile 49.7)."""
    counts = Counter(decoys(["ACDEKG"], 2, seed=seed)[0] for seed in range(2400))
    assert len(counts) == 24
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 49.7
    assert {order[4:] for order in counts} == {"KG"}
