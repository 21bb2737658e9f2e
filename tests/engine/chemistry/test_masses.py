"""Masses against pyteomics, which has independent tables, and against published numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyteomics import mass as pyteomics_mass

from proteoscope.engine.chemistry import formulas, masses
from proteoscope.engine.errors import ParameterError


@pytest.mark.parametrize("element", list(formulas.ELEMENT_MASS))
def test_element_masses_equal_pyteomics(element: str) -> None:
    number = int("".join(filter(str.isdigit, element)) or 0)
    symbol = element.lstrip("0123456789")
    if number == 0 and symbol != "Se":
        expected = pyteomics_mass.nist_mass[symbol][0][0]
    else:
        expected = pyteomics_mass.nist_mass[symbol][number or 80][0]
    assert formulas.ELEMENT_MASS[element] == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("residue", list("ACDEFGHIJKLMNOPQRSTUVWY"))
def test_residue_masses_equal_pyteomics(residue: str) -> None:
    expected = pyteomics_mass.std_aa_mass[residue]
    assert masses.RESIDUE_MASS[ord(residue) - ord("A")] == pytest.approx(expected, abs=2e-5)


def test_ambiguous_residues_have_no_mass() -> None:
    assert [chr(i + ord("A")) for i in np.flatnonzero(np.isnan(masses.RESIDUE_MASS))] == ["B", "X", "Z"]
    assert np.isnan(masses.sequence_mass("PEPXIDE"))


@given(st.text("ACDEFGHIKLMNPQRSTVWYUO", min_size=1, max_size=60), st.integers(1, 6))
def test_peptide_masses_equal_pyteomics(sequence: str, charge: int) -> None:
    mass = masses.sequence_mass(sequence)
    assert mass == pytest.approx(pyteomics_mass.fast_mass(sequence), abs=2e-5 * len(sequence))
    assert masses.mz(mass, charge) == pytest.approx(pyteomics_mass.fast_mass(sequence, charge=charge), abs=2e-5 * len(sequence))
    assert masses.neutral_mass(masses.mz(mass, charge), charge) == pytest.approx(mass, abs=1e-9)


def test_peptide_mz_equals_published_values() -> None:
    # [M+H]+ of calibration peptides: angiotensin I, Glu-1-fibrinopeptide B.
    assert masses.mz(masses.sequence_mass("DRVYIHPFHL"), 1) == pytest.approx(1296.6853, abs=1e-3)
    assert masses.mz(masses.sequence_mass("EGVNDNEEGFFSAR"), 2) == pytest.approx(785.8426, abs=1e-3)


def test_formula_mass_sums_elements_and_rejects_invalid_formulas() -> None:
    assert formulas.formula_mass("H3PO4") == pytest.approx(97.976896, abs=1e-6)
    assert formulas.formula_mass("[13C6]C-6") == pytest.approx(6 * masses.ISOTOPE_SPACING)
    for wrong in ("", "Xx", "H2O)", "2H"):
        with pytest.raises(ParameterError):
            formulas.formula_mass(wrong)


def test_sequence_mass_rejects_lower_case_residues() -> None:
    with pytest.raises(ParameterError, match="'e'"):
        masses.residue_masses("PePTIDE")
