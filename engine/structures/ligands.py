"""Ligands, cofactors, ions and sugars near a chain, read from its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.reading import gemmi_structure
from proteoscope.engine.structures.residue_atoms import Atoms, bonds_between

if TYPE_CHECKING:
    import gemmi

__all__ = ["MAXIMUM_LIGANDS", "ligand_atoms"]

MAXIMUM_LIGANDS = 60
"""Maximum number of ligands of a chain; more are usually crystallisation additives, which would hide the chain."""
_MAXIMUM_ATOMS = 300  # maximum number of atoms of a ligand
_NEAR = 8.0
"""Maximum distance of a ligand atom from a Cα, Å, which corresponds to the length of side chains."""
_WATERS = frozenset({"HOH", "DOD", "WAT", "H2O"})


def ligand_atoms(path: Path, chains: Chains) -> Atoms:
    """Return the heavy atoms of ligands near a chain, with bonds and without water.

    Parameters
    ----------
    path : Path
        Structure file.
    chains : Chains
        Object with exactly one chain.

    Returns
    -------
    Atoms
        Atoms with coordinates as in the file; `residue` is the index of the ligand, from 0.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    structure = gemmi_structure(path)
    structure.setup_entities()
    names: list[str] = []
    elements: list[str] = []
    positions: list[tuple[float, float, float]] = []
    radii: list[float] = []
    owners: list[int] = []
    alpha = np.asarray(chains.position, np.float64)
    alpha = alpha[np.isfinite(alpha).all(axis=1)]
    n = 0
    for residue in (residue for chain in structure[0] for residue in chain):
        if n == MAXIMUM_LIGANDS:
            break
        if not _is_ligand(residue):
            continue
        atoms = [atom for atom in list(residue)[:_MAXIMUM_ATOMS] if not atom.element.is_hydrogen and atom.altloc in ("\0", "A", "1")]
        position = np.array([(atom.pos.x, atom.pos.y, atom.pos.z) for atom in atoms]).reshape(-1, 3)
        if not len(atoms) or not np.isfinite(position).all() or not _is_near(position, alpha):
            continue
        names += [f"{residue.name[:5]} {atom.name[:8]}" for atom in atoms]
        elements += [atom.element.name for atom in atoms]
        positions += [(atom.pos.x, atom.pos.y, atom.pos.z) for atom in atoms]
        radii += [atom.element.covalent_r for atom in atoms]
        owners += [n] * len(atoms)
        n += 1
    position, owner = np.array(positions, np.float32).reshape(-1, 3), np.array(owners, np.int32)
    return Atoms(tuple(names), tuple(elements), position, owner, bonds_between(position, np.array(radii), owner))


def _is_ligand(residue: gemmi.Residue) -> bool:
    import gemmi  # slow to import: only structures need it

    if residue.name in _WATERS or residue.entity_type in (gemmi.EntityType.Polymer, gemmi.EntityType.Water):
        return False
    return residue.find_atom("CA", "*") is None or not gemmi.find_tabulated_residue(residue.name).is_amino_acid()


def _is_near(position: NDArray[np.float64], alpha: NDArray[np.float64]) -> bool:
    return any(bool((((alpha - index) ** 2).sum(axis=1) < _NEAR**2).any()) for index in position)
