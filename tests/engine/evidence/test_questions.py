"""Answers to questions against their definitions, counted another way: by pyteomics' digestion, and by looking for letters in letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from pyteomics import mass, parser

from proteoscope.engine.evidence.identified_peptides import IdentifiedPeptides, Modifications, ProteinEntry
from proteoscope.engine.evidence.mapped_residues import MappedRows
from proteoscope.engine.evidence.peptide_positions import find_peptide_places, residue_evidence
from proteoscope.engine.evidence.questions import missed_stretches, shared_peptides
from proteoscope.engine.jobs.progress import Progress

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def entries(sequences: Sequence[str]) -> list[ProteinEntry]:
    """Proteins of these residues."""
    return [ProteinEntry(f"P{k}", (), "", one, 0.0) for k, one in enumerate(sequences)]


def identified(sequences: Sequence[str]) -> IdentifiedPeptides:
    """Peptides without modifications, each of one spectrum."""
    n = len(sequences)
    none = Modifications.of(np.zeros(n, np.int64), [], [], [])
    return IdentifiedPeptides(tuple(sequences), tuple(sequences), none, np.ones(n, np.int64), np.full(n, 0.001), np.full(n, np.nan))


def random_protein(generator: np.random.Generator, n: int) -> str:
    """So many residues."""
    return "".join(generator.choice(list(LETTERS), n).tolist())


@pytest.mark.parametrize("seed", range(3))
def test_shared_and_own_peptides_are_those_whose_letters_are_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    base = random_protein(generator, 240)
    swapped = base.translate(str.maketrans("IL", "LI"))
    # A paralogue with other residues here and there, an isoform without an exon, one with isoleucine and leucine exchanged, a stranger.
    paralogue = "".join(letter if generator.random() > 0.05 else LETTERS[int(generator.integers(20))] for letter in base)
    proteins = [base, paralogue, base[:80] + base[140:], swapped, random_protein(generator, 150)]
    peptides = []
    for protein in proteins:
        starts = generator.integers(0, len(protein) - 15, 12).tolist()
        peptides += [protein[at : at + 7 + k % 9] for k, at in enumerate(starts)]
    # The same peptide by both spellings is one.
    peptides = list(dict.fromkeys([*peptides, *(one.replace("I", "L") for one in peptides[:20])]))
    found = identified(peptides)
    shared = shared_peptides(found, find_peptide_places(found, entries(proteins)), len(proteins))
    alike = [{one.replace("I", "L") for one in peptides if one.replace("I", "L") in protein.replace("I", "L")} for protein in proteins]
    wanted = {
        (a, b): (len(alike[a] & alike[b]), len(alike[a] - alike[b]), len(alike[b] - alike[a]))
        for a in range(len(proteins))
        for b in range(a + 1, len(proteins))
        if alike[a] & alike[b]
    }
    columns = (shared.protein, shared.other, shared.n_shared, shared.n_own, shared.n_of_other)
    assert {(a, b): tuple(counts) for a, b, *counts in zip(*(column.tolist() for column in columns), strict=True)} == wanted
    # Nothing tells a protein from its twin of exchanged isoleucine and leucine.
    assert wanted[0, 3][1:] == (0, 0) and wanted[0, 2][0] > 0


def seen_by(sequence: str, rule: str) -> NDArray[np.bool_]:
    """Residues in fully cut peptides of 7 to 30 residues and at most 4,600 Da, by pyteomics."""
    seen = np.zeros(len(sequence), np.bool_)
    for start, peptide in parser.xcleave(sequence, rule, missed_cleavages=0):
        if 7 <= len(peptide) <= 30 and mass.fast_mass(peptide) <= 4600.0:
            seen[start : start + len(peptide)] = True
    return seen


RULES = (
    "Trypsin",
    "Lys-C",
    "Arg-C",
    "Asp-N",
    "CNBr",
    "Chymotrypsin",
    "PepsinA",
    "TrypChymo",
    "V8-DE",
    "leukocyte elastase",
    "2-iodobenzoate",
)


def test_each_enzyme_would_show_of_a_missed_stretch_what_another_digestion_says() -> None:
    generator = np.random.default_rng(4)
    sequences = [random_protein(generator, n) for n in (400, 250, 90, 8)]
    peptides = identified([sequences[0][50:75], sequences[0][200:212], sequences[1][0:20], sequences[2][70:90]])
    proteins = entries(sequences)
    residues = residue_evidence(peptides, proteins, find_peptide_places(peptides, proteins))
    found = missed_stretches(proteins, residues, [], MappedRows.of([], residues), Progress(), n_enzymes=100)
    covered = [np.zeros(len(one), np.bool_) for one in sequences]
    for protein, start, end in ((0, 50, 75), (0, 200, 212), (1, 0, 20), (2, 70, 90)):
        covered[protein][start:end] = True
    spans = list(zip(found.protein.tolist(), found.start.tolist(), found.end.tolist(), strict=True))
    missed = {(protein, at) for protein, start, end in spans for at in range(start, end)}
    assert missed == {(k, at) for k, one in enumerate(covered) for at in np.flatnonzero(~one).tolist()}
    # Stretches are whole: none begins where another ends.
    assert not {(protein, end) for protein, _, end in spans} & {(protein, start) for protein, start, _ in spans}
    there = [name for name in RULES if name in found.enzymes and name in parser.psims_rules]
    assert len(there) == len(RULES)
    for name in there:
        number = found.enzymes.index(name)
        by_rule = [seen_by(one, name) for one in sequences]
        for row, (protein, start, end) in enumerate(spans):
            (at,) = np.flatnonzero(found.enzyme[row] == number)
            assert int(found.n_seen[row, at]) == int(by_rule[protein][start:end].sum()), (name, protein, start, end)
    # The best come first, and of the same number the first of the list.
    for row in range(len(spans)):
        order = list(zip((-found.n_seen[row]).tolist(), found.enzyme[row].tolist(), strict=True))
        assert order == sorted(order)
