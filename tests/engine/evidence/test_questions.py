"""Shared peptides and missed stretches against their definitions, computed by pyteomics' digestion and by string search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from pyteomics import mass, parser

from proteoscope.engine.evidence.identified_peptides import IdentifiedPeptides, Modifications, ProteinEntry
from proteoscope.engine.evidence.mapped_residues import MappedRows
from proteoscope.engine.evidence.peptide_positions import find_peptide_positions, residue_evidence
from proteoscope.engine.evidence.questions import shared_peptides, uncovered_ranges
from proteoscope.engine.jobs.progress import Progress

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def entries(sequences: Sequence[str]) -> list[ProteinEntry]:
    """Return proteins with these sequences."""
    return [ProteinEntry(f"P{k}", (), "", sequence, 0.0) for k, sequence in enumerate(sequences)]


def identified(sequences: Sequence[str]) -> IdentifiedPeptides:
    """Return unmodified peptides with one spectrum each."""
    n = len(sequences)
    none = Modifications.from_columns(np.zeros(n, np.int64), [], [], [])
    return IdentifiedPeptides(tuple(sequences), tuple(sequences), none, np.ones(n, np.int64), np.full(n, 0.001), np.full(n, np.nan))


def random_protein(generator: np.random.Generator, n: int) -> str:
    """Return a random sequence of n residues."""
    return "".join(generator.choice(list(AMINO_ACIDS), n).tolist())


@pytest.mark.parametrize("seed", range(3))
def test_shared_peptides_equal_string_search(seed: int) -> None:
    generator = np.random.default_rng(seed)
    base = random_protein(generator, 240)
    swapped = base.translate(str.maketrans("IL", "LI"))
    # A paralogue with exchanged residues, an isoform without an exon, one with I and L exchanged, and an unrelated protein.
    paralogue = "".join(residue if generator.random() > 0.05 else AMINO_ACIDS[int(generator.integers(20))] for residue in base)
    proteins = [base, paralogue, base[:80] + base[140:], swapped, random_protein(generator, 150)]
    peptides = []
    for protein in proteins:
        starts = generator.integers(0, len(protein) - 15, 12).tolist()
        peptides += [protein[at : at + 7 + k % 9] for k, at in enumerate(starts)]
    # Both spellings of a peptide count as one.
    peptides = list(dict.fromkeys([*peptides, *(peptide.replace("I", "L") for peptide in peptides[:20])]))
    peptide_table = identified(peptides)
    shared = shared_peptides(peptide_table, find_peptide_positions(peptide_table, entries(proteins)), len(proteins))
    alike = [
        {peptide.replace("I", "L") for peptide in peptides if peptide.replace("I", "L") in protein.replace("I", "L")}
        for protein in proteins
    ]
    wanted = {
        (a, b): (len(alike[a] & alike[b]), len(alike[a] - alike[b]), len(alike[b] - alike[a]))
        for a in range(len(proteins))
        for b in range(a + 1, len(proteins))
        if alike[a] & alike[b]
    }
    columns = (shared.protein, shared.other, shared.n_shared, shared.n_own, shared.n_of_other)
    assert {(a, b): tuple(counts) for a, b, *counts in zip(*(column.tolist() for column in columns), strict=True)} == wanted
    # No peptide distinguishes a protein from its copy with I and L exchanged.
    assert wanted[0, 3][1:] == (0, 0) and wanted[0, 2][0] > 0


def observable_residues(sequence: str, rule: str) -> NDArray[np.bool_]:
    """Mark residues in fully cleaved peptides of 7 to 30 residues and at most 4,600 Da, by pyteomics."""
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


def test_uncovered_stretches_match_pyteomics_digestion() -> None:
    generator = np.random.default_rng(4)
    sequences = [random_protein(generator, n) for n in (400, 250, 90, 8)]
    peptides = identified([sequences[0][50:75], sequences[0][200:212], sequences[1][0:20], sequences[2][70:90]])
    proteins = entries(sequences)
    residues = residue_evidence(peptides, proteins, find_peptide_positions(peptides, proteins))
    stretches = uncovered_ranges(proteins, residues, [], MappedRows.from_chains([], residues), Progress(), n_enzymes=100)
    covered = [np.zeros(len(sequence), np.bool_) for sequence in sequences]
    for protein, start, end in ((0, 50, 75), (0, 200, 212), (1, 0, 20), (2, 70, 90)):
        covered[protein][start:end] = True
    spans = list(zip(stretches.protein.tolist(), stretches.start.tolist(), stretches.end.tolist(), strict=True))
    missed = {(protein, at) for protein, start, end in spans for at in range(start, end)}
    assert missed == {(k, at) for k, is_covered in enumerate(covered) for at in np.flatnonzero(~is_covered).tolist()}
    # Stretches are maximal: no two are adjacent.
    assert not {(protein, end) for protein, _, end in spans} & {(protein, start) for protein, start, _ in spans}
    names = [name for name in RULES if name in stretches.enzymes and name in parser.psims_rules]
    assert len(names) == len(RULES)
    for name in names:
        number = stretches.enzymes.index(name)
        by_rule = [observable_residues(sequence, name) for sequence in sequences]
        for row, (protein, start, end) in enumerate(spans):
            (at,) = np.flatnonzero(stretches.enzyme[row] == number)
            assert int(stretches.n_seen[row, at]) == int(by_rule[protein][start:end].sum()), (name, protein, start, end)
    # Enzymes are ordered by the number of observable residues, then as listed.
    for row in range(len(spans)):
        order = list(zip((-stretches.n_seen[row]).tolist(), stretches.enzyme[row].tolist(), strict=True))
        assert order == sorted(order)
