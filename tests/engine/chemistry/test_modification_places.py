"""Modifications of terminal residues at the positions that the file formats give."""

import pytest

from proteoscope.engine.chemistry.modification_places import (
    SearchedModification,
    locate_modification,
    move_to_terminal_residues,
    terminal_position,
)
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide


@pytest.mark.parametrize(
    ("sequence", "name", "unimod_id", "at_terminus", "on_residue"),
    [
        ("QAK", "Gln->pyro-Glu", 28, 0, 1),  # Occurs only at an N-terminal glutamine.
        ("AAR", "Arg-loss", 1287, 4, 3),
    ],
)
def test_terminal_position_reverses_move_to_terminal_residues(sequence, name, unimod_id, at_terminus, on_residue):
    other = NotedModification(2, "Oxidation")
    moved = move_to_terminal_residues(NotedPeptide(sequence, (other, NotedModification(at_terminus, name))))
    assert moved.modifications == tuple(sorted((other, NotedModification(on_residue, name)), key=lambda noted: noted.position))
    assert terminal_position(on_residue, sequence, unimod_id) == at_terminus


@pytest.mark.parametrize(
    ("name", "unimod_id", "position"), [("Gln->pyro-Glu", 28, 0), ("Acetyl", 1, 0), ("Amidated", 2, 4), ("Unheard", None, 0)]
)
def test_terminal_modification_not_tied_to_residue_is_not_moved(name, unimod_id, position):
    peptide = NotedPeptide("AAK", (NotedModification(position, name),))
    assert move_to_terminal_residues(peptide) == peptide
    residue = 1 if position == 0 else 3
    assert terminal_position(residue, "AAK", unimod_id) == residue
    assert terminal_position(2, "AQK", 28) == 2


OXIDATION = SearchedModification("Oxidation", 15.994915, "M", at_front=False, at_back=False)


@pytest.mark.parametrize(
    ("noted", "residues", "sequence", "occupied", "searched", "place"),
    [
        (NotedModification(0, "Acetyl"), "", "AAR", (), (), 0),  # Unimod lists termini and residues: the terminus comes first
        (NotedModification(0, "Acetyl"), "", "AAR", (0,), (), None),
        (NotedModification(0, "Amidated"), "", "AAR", (), (), 4),
        (NotedModification(0, "", 15.99), "", "AMK", (), (OXIDATION,), 2),  # Identified by its mass, within 0.01 dalton.
        (NotedModification(0, "", 15.98), "", "AMK", (), (OXIDATION,), None),
        (NotedModification(0, "Oxidation"), "", "MAM", (1,), (OXIDATION,), 3),
        (NotedModification(0, "Oxidation"), "", "MAM", (), (OXIDATION,), None),  # Either modification is possible.
        (NotedModification(0, "Oxidation"), "K", "MAK", (), (OXIDATION,), 3),  # As named in the file.
        (NotedModification(0, "x", 1.0), "", "AAR", (), (SearchedModification("x", 1.0, "", at_front=False, at_back=True),), 4),
    ],
)
def test_locate_modification_returns_the_only_possible_position(noted, residues, sequence, occupied, searched, place):
    assert locate_modification(noted, residues, sequence, occupied, searched) == place
