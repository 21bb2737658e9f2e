"""Coverage of proteins by peptides, compared with its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.views.coverage import cover

SEQUENCES = st.text("ACDEFGHIKL", min_size=1, max_size=60)


@settings(max_examples=100, deadline=None)
@given(SEQUENCES, st.lists(st.tuples(st.integers(0, 59), st.integers(1, 12)), max_size=8))
def test_protein_coverage_equals_the_definition(sequence: str, segments: list[tuple[int, int]]) -> None:
    rows: list[dict[str, Any]] = []
    for i, (start, length) in enumerate(segments):
        segment = sequence[start % len(sequence) :][:length]
        rows.append({"row": i, "peptide": segment, "sequence": segment, "n_psms": 1, "q_value": 0.0})
    coverage = cover("", sequence, rows)
    alike = sequence.replace("I", "L")
    expected = np.zeros(len(sequence), bool)
    positions = set()
    for row in rows:
        wanted = row["sequence"].replace("I", "L")
        for start in range(len(sequence)):
            if alike[start : start + len(wanted)] == wanted:
                expected[start : start + len(wanted)] = True
                positions.add((row["row"], start, start + len(wanted)))
    assert coverage.covered.tolist() == expected.tolist()
    assert {(peptide.row, peptide.start, peptide.end) for peptide in coverage.peptides} == positions
    by_lane: dict[int, list[Any]] = {}
    for peptide in coverage.peptides:
        for other in by_lane.setdefault(peptide.lane, []):
            assert peptide.start > other.end or other.start > peptide.end, "bars of a lane do not touch"
        by_lane[peptide.lane].append(peptide)


SEQUENCE = "MKAAACDEFGHIKLLLLMNPQRSTVWYKGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGR" * 3


PEPTIDES = [
    {"row": 10, "peptide": "AAAC[Carbamidomethyl]DEFGHIK", "sequence": "AAACDEFGHIK", "n_psms": 3, "q_value": 0.001},
    {"row": 11, "peptide": "[Acetyl]-MKAAACDEFGHIK", "sequence": "MKAAACDEFGHIK", "n_psms": 1, "q_value": 0.005},
    {"row": 12, "peptide": "LLLLM[Oxidation]NPQR", "sequence": "LLLLMNPQR", "n_psms": 2, "q_value": 0.0},
]


def test_coverage_marks_modified_residues_of_peptides() -> None:
    coverage = cover("", SEQUENCE[:70], PEPTIDES)
    assert coverage.modified == {0: ("Acetyl",), 5: ("Carbamidomethyl",), 17: ("Oxidation",)}
    # Fixed modifications are marked neither in the sequence nor on the bars; a terminus is not a residue.
    fixed = frozenset({("Carbamidomethyl", "C"), ("Acetyl", "M"), ("Oxidation", "C")})
    with_fixed = cover("", SEQUENCE[:70], PEPTIDES, fixed=fixed)
    assert with_fixed.modified == {0: ("Acetyl",), 17: ("Oxidation",)}
    assert {modification for peptide in with_fixed.peptides for modification in peptide.modifications} == {(0, "Acetyl"), (17, "Oxidation")}
    assert cover("", SEQUENCE[:70], PEPTIDES, fixed=frozenset({("Acetyl", "N-term")})).modified == {
        5: ("Carbamidomethyl",),
        17: ("Oxidation",),
    }
    assert SEQUENCE[5] == "C"
    assert SEQUENCE[17] == "M"
