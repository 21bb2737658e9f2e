"""What all residues of a kind carry, counted residue by residue."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.matches.fixed_modifications import C_END, N_END, fixed_of_parameters, on_all_residues


def of_all(*peptides: str) -> set[tuple[str, str]]:
    """The same from peptides in ProForma."""
    parsed = [parse(one) for one in peptides]
    carried = [one for form in parsed for one in form.modifications]
    lengths = np.array([len(form.modifications) for form in parsed], np.int64)
    positions, names = np.array([one.position for one in carried], np.int64), [one.name for one in carried]
    return set(on_all_residues([form.sequence for form in parsed], lengths, positions, names))


ALKYLATED = ("C[Carbamidomethyl]AKC[Carbamidomethyl]", "MC[Carbamidomethyl]K", "AC[Carbamidomethyl]R")


def test_what_every_residue_carries_is_fixed_and_what_one_lacks_is_not() -> None:
    assert of_all(*ALKYLATED) == {("Carbamidomethyl", "C")}
    assert of_all(*ALKYLATED, "ACK") == set()
    assert of_all("MC[Carbamidomethyl]K", "AC[Carbamidomethyl]R") == set(), "two tell nothing"
    assert of_all() == set()


def test_labels_are_fixed_at_ends_and_residues_and_ends_are_no_residues() -> None:
    labelled = ("[TMT6plex]-AC[Carbamidomethyl]K[TMT6plex]", "[TMT6plex]-KK", "[TMT6plex]-GGR")
    assert of_all(*labelled) == {("TMT6plex", N_END)}
    whole = [one.replace("-KK", "-K[TMT6plex]K[TMT6plex]") for one in labelled]
    assert of_all(*whole) == {("TMT6plex", N_END), ("TMT6plex", "K")}
    assert of_all(*(f"{one}K-[Label:18O(1)]" for one in ("A", "G", "S"))) == {("Label:18O(1)", C_END)}


@pytest.mark.parametrize("name", ["Phospho", "Oxidation", "Sulfo"])
def test_what_cells_or_air_do_to_all_that_is_seen_is_evidence_of_each_residue(name: str) -> None:
    letter = "M" if name == "Oxidation" else "Y"
    assert of_all(*(f"A{letter}[{name}]{'G' * k}K" for k in range(30))) == set()
    assert of_all(*(f"AC[{blocked}]K" for blocked in ["Propionamide"] * 3)) == {("Propionamide", "C")}


def test_parameters_name_them_with_their_ends_and_what_is_unreadable_is_none() -> None:
    named = ["Carbamidomethyl (C)", "TMT6plex (K)", "TMT6plex (N-term)", "Heavy:+8.0142 (KR)"]
    assert fixed_of_parameters({"fixed_modifications": named}) == {
        ("Carbamidomethyl", "C"),
        ("TMT6plex", "K"),
        ("TMT6plex", N_END),
        *((name, letter) for name in ("Heavy", "+8.0142") for letter in "KR"),
    }
    for spoilt in ({}, {"fixed_modifications": None}, {"fixed_modifications": 3}, {"fixed_modifications": ["nothing (!)", 7]}):
        assert fixed_of_parameters(spoilt) == frozenset()
