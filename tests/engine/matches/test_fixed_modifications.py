"""Modifications that all residues of a kind carry, counted by residue."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.matches.fixed_modifications import C_END, N_END, fixed_of_parameters, on_all_residues


def of_all(*peptides: str) -> set[tuple[str, str]]:
    """Return the fixed modifications of peptides in ProForma."""
    parsed = [parse(peptide) for peptide in peptides]
    carried = [modification for form in parsed for modification in form.modifications]
    lengths = np.array([len(form.modifications) for form in parsed], np.int64)
    positions, names = (
        np.array([modification.position for modification in carried], np.int64),
        [modification.name for modification in carried],
    )
    return set(on_all_residues([form.sequence for form in parsed], lengths, positions, names))


ALKYLATED = ("C[Carbamidomethyl]AKC[Carbamidomethyl]", "MC[Carbamidomethyl]K", "AC[Carbamidomethyl]R")


def test_modification_on_all_residues_of_a_type_is_fixed() -> None:
    assert of_all(*ALKYLATED) == {("Carbamidomethyl", "C")}
    assert of_all(*ALKYLATED, "ACK") == set()
    assert of_all("MC[Carbamidomethyl]K", "AC[Carbamidomethyl]R") == set(), "two are too few"
    assert of_all() == set()


def test_isobaric_labels_are_fixed_at_termini_and_residues() -> None:
    labelled = ("[TMT6plex]-AC[Carbamidomethyl]K[TMT6plex]", "[TMT6plex]-KK", "[TMT6plex]-GGR")
    assert of_all(*labelled) == {("TMT6plex", N_END)}
    whole = [peptide.replace("-KK", "-K[TMT6plex]K[TMT6plex]") for peptide in labelled]
    assert of_all(*whole) == {("TMT6plex", N_END), ("TMT6plex", "K")}
    assert of_all(*(f"{residue}K-[Label:18O(1)]" for residue in ("A", "G", "S"))) == {("Label:18O(1)", C_END)}


@pytest.mark.parametrize("name", ["Phospho", "Oxidation", "Sulfo"])
def test_biological_modifications_are_never_detected_as_fixed(name: str) -> None:
    residue = "M" if name == "Oxidation" else "Y"
    assert of_all(*(f"A{residue}[{name}]{'G' * k}K" for k in range(30))) == set()
    assert of_all(*(f"AC[{blocked}]K" for blocked in ["Propionamide"] * 3)) == {("Propionamide", "C")}


def test_fixed_of_parameters_ignores_invalid_values() -> None:
    named = ["Carbamidomethyl (C)", "TMT6plex (K)", "TMT6plex (N-term)", "Heavy:+8.0142 (KR)"]
    assert fixed_of_parameters({"fixed_modifications": named}) == {
        ("Carbamidomethyl", "C"),
        ("TMT6plex", "K"),
        ("TMT6plex", N_END),
        *((name, residue) for name in ("Heavy", "+8.0142") for residue in "KR"),
    }
    for invalid in ({}, {"fixed_modifications": None}, {"fixed_modifications": 3}, {"fixed_modifications": ["nothing (!)", 7]}):
        assert fixed_of_parameters(invalid) == frozenset()
