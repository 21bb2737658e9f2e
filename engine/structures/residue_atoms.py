"""Atoms of residues, read again from the file of a chain, for pictures of side chains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.outputs import chain_atoms

if TYPE_CHECKING:
    import gemmi

__all__ = ["BACKBONE", "MAXIMUM_RESIDUES", "NO_ATOMS", "Atoms", "b_factors", "bonds_between", "residue_atoms"]

MAXIMUM_RESIDUES = 200
"""Maximum number of residues whose atoms are shown."""
_MAXIMUM_ATOMS = 100  # maximum number of atoms of a residue, more than any amino acid has
BACKBONE = ("N", "C", "O", "OXT")
_SLACK = 0.4  # Å by which a bond may be longer than the sum of both covalent radii
_MINIMUM_BOND = 0.5


@dataclass(frozen=True)
class Atoms:
    """Atoms and the bonds between them.

    Attributes
    ----------
    name, element : tuple of str
        Name and element of each atom, such as ``CG`` and ``C``.
    position : ndarray of float32, shape (a, 3)
        Coordinates in Å, as in the file.
    residue : ndarray of int32, shape (a,)
        Index of the residue of each atom in the chain.
    bonds : ndarray of int32, shape (b, 2)
        Indices of bonded atoms.
    """

    name: tuple[str, ...]
    element: tuple[str, ...]
    position: NDArray[np.float32]
    residue: NDArray[np.int32]
    bonds: NDArray[np.int32]


NO_ATOMS = Atoms((), (), np.empty((0, 3), np.float32), np.empty(0, np.int32), np.empty((0, 2), np.int32))


def residue_atoms(path: Path, chains: Chains, rows: NDArray[np.integer], *, with_backbone: bool = False) -> Atoms:
    """Return the heavy atoms of residues; by default, Cα and side chains.

    Parameters
    ----------
    path : Path
        Structure file.
    chains : Chains
        Object with exactly one chain.
    rows : ndarray of int
        Indices of residues in the chain; only the first `MAXIMUM_RESIDUES` are used.
    with_backbone : bool
        True to include N, C and O.

    Returns
    -------
    Atoms
        Atoms with coordinates as in the file.

    Raises
    ------
    InputError
        If the file is missing, no longer contains the chain, or has only Cα atoms.
    """
    wanted = set(np.unique(rows)[:MAXIMUM_RESIDUES].tolist())
    names: list[str] = []
    elements: list[str] = []
    positions: list[tuple[float, float, float]] = []
    radii: list[float] = []
    owners: list[int] = []
    for row, residue, alternative in _residues(path, chains):
        if row not in wanted:
            continue
        for atom in list(residue)[:_MAXIMUM_ATOMS]:
            is_omitted = atom.altloc not in ("\0", alternative) or atom.element.is_hydrogen or (not with_backbone and atom.name in BACKBONE)
            if not is_omitted:
                names.append(atom.name[:8])
                elements.append(atom.element.name)
                positions.append((atom.pos.x, atom.pos.y, atom.pos.z))
                radii.append(atom.element.covalent_r)
                owners.append(row)
    position = np.array(positions, np.float32).reshape(-1, 3)
    owner = np.array(owners, np.int32)
    if len(names) and set(names) == {"CA"} and not _is_bare(chains, owner):
        raise InputError(path, "contains only Cα atoms", remedy="Side chains need a file with all atoms")
    return Atoms(tuple(names), tuple(elements), position, owner, bonds_between(position, np.array(radii), owner))


def b_factors(path: Path, chains: Chains) -> NDArray[np.float32]:
    """Return the Cα B-factors of a chain in Å², shape (r,), NaN if missing.

    Parameters
    ----------
    path : Path
        Structure file.
    chains : Chains
        Object with exactly one chain, of r residues.

    Raises
    ------
    InputError
        If the file no longer exists or no longer contains the chain.
    """
    result = np.full(int(chains.offsets[-1]), np.nan, np.float32)
    for row, residue, alternative in _residues(path, chains):
        for atom in residue:
            if atom.name == "CA" and atom.altloc in ("\0", alternative):
                result[row] = atom.b_iso
    # Files without B-factors have zeros.
    return result if np.nanmax(result, initial=0.0) > 0.0 else np.full_like(result, np.nan)


def _residues(path: Path, chains: Chains) -> list[tuple[int, gemmi.Residue, str]]:
    """Read a chain from its file; return the index of each residue in `chains`, gemmi's residue, and the selected alternative location."""
    row_at = {tuple(position): row for row, position in enumerate(chains.position.tolist())}
    result = []
    for residue in chain_atoms(path, chains)[0][0]:
        for atom in residue:
            position = tuple(np.array([atom.pos.x, atom.pos.y, atom.pos.z], np.float32).tolist())
            if atom.name == "CA" and position in row_at:
                result.append((row_at[position], residue, atom.altloc))
                break
    return result


def _is_bare(chains: Chains, owner: NDArray[np.int32]) -> bool:
    """Return True if all residues with the indices `owner` are glycine, which has no heavy atom in its side chain."""
    return bool((chains.residue[owner] == SYMBOLS.index("G")).all())


def bonds_between(position: NDArray[np.float32], radius: NDArray[np.float64], owner: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the bonded pairs of atoms, (b, 2): in one residue or in successive residues, closer than about the sum of their radii.

    Parameters
    ----------
    position : ndarray of float32, shape (a, 3)
        Coordinates in Å.
    radius : ndarray of float64, shape (a,)
        Covalent radii in Å.
    owner : ndarray of int32, shape (a,)
        Index of the residue of each atom, ascending.
    """
    bonds = []
    starts = np.append(np.flatnonzero(np.diff(owner, prepend=-2)), len(owner))
    for k in range(len(starts) - 1):
        atoms = np.arange(starts[k], starts[k + 1])
        both = np.arange(starts[k], starts[min(k + 2, len(starts) - 1)])
        distance = np.linalg.norm(position[atoms][:, None].astype(np.float64) - position[both][None], axis=2)
        is_bond = (distance < radius[atoms][:, None] + radius[both][None] + _SLACK) & (distance > _MINIMUM_BOND) & (both > atoms[:, None])
        is_bond &= owner[both] - owner[atoms[0]] <= 1
        a, b = np.nonzero(is_bond)
        bonds.append(np.stack([atoms[a], both[b]], axis=1))
    return np.concatenate([np.empty((0, 2), np.int64), *bonds]).astype(np.int32)
