"""Where peptides lie in a protein, against their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.views.coverage import cover

letters = st.text("ACDEFGHIKL", min_size=1, max_size=60)


@settings(max_examples=100, deadline=None)
@given(letters, st.lists(st.tuples(st.integers(0, 59), st.integers(1, 12)), max_size=8))
def test_coverage_by_definition(sequence: str, pieces: list[tuple[int, int]]) -> None:
    rows: list[dict[str, Any]] = []
    for i, (start, length) in enumerate(pieces):
        piece = sequence[start % len(sequence) :][:length]
        rows.append({"row": i, "peptide": piece, "sequence": piece, "n_psms": 1, "q_value": 0.0})
    coverage = cover("", sequence, rows)
    alike = sequence.replace("I", "L")
    expected = np.zeros(len(sequence), bool)
    places = set()
    for row in rows:
        wanted = row["sequence"].replace("I", "L")
        for start in range(len(sequence)):
            if alike[start : start + len(wanted)] == wanted:
                expected[start : start + len(wanted)] = True
                places.add((row["row"], start, start + len(wanted)))
    assert coverage.covered.tolist() == expected.tolist()
    assert {(peptide.row, peptide.start, peptide.end) for peptide in coverage.peptides} == places
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


def test_modified_residues_are_where_the_peptide_has_them() -> None:
    coverage = cover("", SEQUENCE[:70], PEPTIDES)
    assert coverage.modified == {0: ("Acetyl",), 5: ("Carbamidomethyl",), 17: ("Oxidation",)}
    # Of what every residue carries nothing is marked, neither in the sequence nor on the bars; an end is no residue.
    fixed = frozenset({("Carbamidomethyl", "C"), ("Acetyl", "M"), ("Oxidation", "C")})
    told = cover("", SEQUENCE[:70], PEPTIDES, fixed=fixed)
    assert told.modified == {0: ("Acetyl",), 17: ("Oxidation",)}
    assert {one for peptide in told.peptides for one in peptide.modifications} == {(0, "Acetyl"), (17, "Oxidation")}
    assert cover("", SEQUENCE[:70], PEPTIDES, fixed=frozenset({("Acetyl", "N-term")})).modified == {
        5: ("Carbamidomethyl",),
        17: ("Oxidation",),
    }
    assert SEQUENCE[5] == "C"
    assert SEQUENCE[17] == "M"
