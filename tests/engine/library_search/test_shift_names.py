"""Mass differences of an open search are named and localised like the chemistry of the planted modifications."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.searches import run_search
from tests.engine.library_search.test_search import fragments, rows_of

# Monoisotopic masses, dalton (CODATA and AME 2020).
ELEMENTS = {"H": 1.00782503223, "C": 12.0, "N": 14.00307400443, "O": 15.99491461957, "P": 30.97376199842, "S": 31.9720711744}
PLANTED = {
    # Name: added elements, and the modified residue.
    "Oxidation": ({"O": 1}, "M"),
    "Phospho": ({"H": 1, "P": 1, "O": 3}, "S"),
    "Acetyl": ({"C": 2, "H": 2, "O": 1}, "K"),
    "Deamidated": ({"H": -1, "N": -1, "O": 1}, "N"),
    "Carbamidomethyl": ({"C": 2, "H": 3, "N": 1, "O": 1}, "C"),
}


def mass_of(elements):
    return sum(ELEMENTS[name] * count for name, count in elements.items())


def planted():
    """Return peptides with one modifiable residue, and their modifications."""
    generator, made = np.random.default_rng(8), []
    for number in range(60):
        name = list(PLANTED)[number % len(PLANTED)]
        residue = PLANTED[name][1]
        before, after = ("".join(generator.choice(list("AVLGEFDP"), n)) for n in (5, 4))
        sequence = before + residue + after + "R"
        made.append((sequence, name, len(before)))
    return made


@pytest.fixture
def matches(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    generator, entries, spectra = np.random.default_rng(9), [], []
    for sequence, name, at in planted():
        heights = generator.exponential(1.0, 2 * (len(sequence) - 1)) * 900 + 100
        mz, precursor = fragments(sequence)
        peaks = "\n".join(f"{position:.5f}\t{height:.1f}" for position, height in zip(mz, heights, strict=True))
        entries.append(f"Name: {sequence}/2\nComment: Parent={precursor:.5f}\nNum peaks: {len(mz)}\n{peaks}\n")
        order = np.argsort(mz)
        moved, precursor = fragments(sequence, at, mass_of(PLANTED[name][0]))
        peaks = "\n".join(f"{position:.5f} {height:.1f}" for position, height in zip(moved, heights[order], strict=True))
        spectra.append(f"BEGIN IONS\nTITLE={sequence}\nPEPMASS={precursor:.5f}\nCHARGE=2+\n{peaks}\nEND IONS\n")
    (tmp_path / "l.msp").write_text("\n".join(entries))
    (tmp_path / "s.mgf").write_text("\n".join(spectra))
    inputs = {"spectra": [tmp_path / "s.mgf"], "library": [tmp_path / "l.msp"]}
    run_search("library", inputs, project=tmp_path / "p", device="cpu", precursor_tolerance="200 Da")
    return rows_of(tmp_path / "p" / "exports" / "matches.tsv"), rows_of(tmp_path / "p" / "exports" / "psms.tsv")


def test_library_search_names_and_localises_modifications(matches):
    table, psms = matches
    matches_by_id = {row["spectrum_id"]: row for row in table}
    peptides = {row["spectrum_id"]: row["peptide"] for row in psms if row["is_decoy"] == "false"}
    assert len(matches_by_id) == len(planted())
    for sequence, name, at in planted():
        row = matches_by_id[sequence]
        assert (row["peptide"], row["kind"]) == (sequence, "shifted")
        assert float(row["mass_difference"]) == pytest.approx(mass_of(PLANTED[name][0]), abs=2e-4)
        assert name in row["possible_names"].split("; ") or row["modification"] == name, row
        assert row["modification"] == name
        assert peptides[sequence] == f"{sequence[: at + 1]}[{name}]{sequence[at + 1 :]}"
