"""Solvent-accessible areas of residues, and positions of ligands, from all atoms of a file.

Atomic radii are from DSSP (Kabsch & Sander, Biopolymers 22, 1983, 2577-2637); maximum residue areas are the theoretical areas of Tien et
al. (PLoS ONE 8, 2013, e80635).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.reading import gemmi_structure, read_atom_columns

if TYPE_CHECKING:
    import gemmi

__all__ = ["GREATEST_AREA", "PROBE_RADIUS", "ChainAtoms", "Ligands", "read_chain_atoms", "residue_areas"]

PROBE_RADIUS = 1.4
"""Radius of a water molecule in Å."""
_POINTS = 480  # points on the sphere of each atom; areas are accurate to about 1 %
_GREATEST = {
    "A": 129,
    "R": 274,
    "N": 195,
    "D": 193,
    "C": 167,
    "Q": 225,
    "E": 223,
    "G": 104,
    "H": 224,
    "I": 197,
    "L": 201,
    "K": 236,
    "M": 224,
    "F": 240,
    "P": 159,
    "S": 155,
    "T": 172,
    "W": 285,
    "Y": 263,
    "V": 174,
}
GREATEST_AREA: NDArray[np.float64] = np.array([_GREATEST.get(symbol, np.nan) for symbol in SYMBOLS])
"""Maximum solvent-accessible area of each residue code, Å²; NaN for codes that are not one of the twenty amino acids."""
_BACKBONE_RADIUS = {"N": 1.65, "CA": 1.87, "C": 1.76, "O": 1.40}
_SIDE_CHAIN_RADIUS = 1.80
_NON_POLYMER, _BRANCHED = 2, 3  # gemmi's types of entities
_HYDROGENS = (1, 119)  # gemmi's numbers of H and D
_MAXIMUM_LIGAND_ATOMS = 1 << 16
_MAXIMUM_PLACE = 1e5  # Å; maximum absolute value of valid coordinates
_FEWEST_ATOMS = 4  # minimum number of atoms of a residue that is not reduced to its trace


@dataclass(frozen=True)
class Ligands:
    """Ligand atoms (n) of a file: neither protein, nucleic acid nor water.

    Attributes
    ----------
    position : ndarray of float64, shape (n, 3)
        Coordinates in Å.
    ligand : ndarray of int64, shape (n,)
        Index of the ligand of each atom in `names`.
    names : tuple of str
        Name, chain and residue number of each ligand.
    """

    position: NDArray[np.float64]
    ligand: NDArray[np.int64]
    names: tuple[str, ...]


@dataclass(frozen=True)
class ChainAtoms:
    """Heavy atoms (a) of a chain with r residues.

    Attributes
    ----------
    position : ndarray of float64, shape (a, 3)
        Coordinates in Å, as in the file.
    radius : ndarray of float64, shape (a,)
        Atomic radii in Å.
    residue : ndarray of int64, shape (a,)
        Index of the residue of each atom in the chain.
    is_whole : ndarray of bool, shape (r,)
        True for residues with more atoms than their backbone.
    ligands : Ligands
        All ligands of the file, whatever their distance from the chain.
    """

    position: NDArray[np.float64]
    radius: NDArray[np.float64]
    residue: NDArray[np.int64]
    is_whole: NDArray[np.bool_]
    ligands: Ligands


def read_chain_atoms(path: Path, chains: Sequence[Chains]) -> list[ChainAtoms | InputError]:
    """Read the heavy atoms of chains from a file, in which the chains are found by their Cα coordinates.

    Parameters
    ----------
    path : Path
        Structure file.
    chains : sequence of Chains
        Objects with one chain each.

    Returns
    -------
    list of ChainAtoms or InputError
        Atoms of each chain; an exception for a chain that the file no longer contains.

    Raises
    ------
    InputError
        If the file does not exist or cannot be read.
    """
    structure = gemmi_structure(path)
    while len(structure) > 1:
        del structure[len(structure) - 1]
    ligands = _ligands(structure)
    atoms = read_atom_columns(structure)
    sizes = np.array([len(residue) for part in structure[0] for residue in part], np.int64)
    of_residue = np.repeat(np.arange(len(sizes)), sizes)
    symbols: NDArray[np.generic] = np.ascontiguousarray(atoms.atom_names)
    table, numbers = np.unique(symbols.view("S8").reshape(-1), return_inverse=True)
    names = [name.decode("latin-1") for name in table.tolist()]
    is_alpha = np.array([name == "CA" for name in names])[numbers]
    radius = np.array([_BACKBONE_RADIUS.get(name, _SIDE_CHAIN_RADIUS) for name in names])[numbers]
    position = np.ascontiguousarray(atoms.pos, np.float64)
    # Files may contain atoms without finite coordinates; only the coordinates of Cα atoms were checked before.
    is_heavy = ~np.isin(atoms.elements, _HYDROGENS) & (np.abs(position) <= _MAXIMUM_PLACE).all(axis=1)
    alternative = np.ascontiguousarray(atoms.altlocs)
    alphas = np.flatnonzero(is_alpha)
    place_of = _as_keys(position[alphas].astype(np.float32))
    order = np.argsort(place_of, kind="stable")
    result: list[ChainAtoms | InputError] = []
    for chain in chains:
        wanted = _as_keys(np.ascontiguousarray(chain.position))
        index = np.minimum(np.searchsorted(place_of[order], wanted), max(0, len(order) - 1))
        if not len(order) or (place_of[order][index] != wanted).any():
            result.append(InputError(path, "has changed", remedy="Put the file back as it was, or build the database again"))
            continue
        alpha = alphas[order][index]
        row_of = np.full(len(sizes), -1, np.int64)
        row_of[of_residue[alpha]] = np.arange(len(alpha))
        label = np.zeros(len(sizes), alternative.dtype)
        label[of_residue[alpha]] = alternative[alpha]
        is_own = (row_of[of_residue] >= 0) & is_heavy & ((alternative == 0) | (alternative == label[of_residue]))
        rows = row_of[of_residue[is_own]]
        is_whole = np.bincount(rows, minlength=len(alpha)) >= _FEWEST_ATOMS
        result.append(ChainAtoms(position[is_own], radius[is_own], rows, is_whole, ligands))
    return result


def _as_keys(position: NDArray[np.float32]) -> NDArray[np.void]:
    """Return coordinates as values that can be sorted and compared."""
    return np.ascontiguousarray(position + np.float32(0)).view([("x", "<u4"), ("y", "<u4"), ("z", "<u4")]).reshape(-1)


def _ligands(structure: gemmi.Structure) -> Ligands:
    positions: list[tuple[float, float, float]] = []
    owner: list[int] = []
    names: list[str] = []
    for part in structure[0]:
        for residue in part:
            if residue.entity_type.value in (_NON_POLYMER, _BRANCHED) and not residue.is_water():
                for atom in residue:
                    if len(positions) < _MAXIMUM_LIGAND_ATOMS and not atom.element.is_hydrogen:
                        positions.append((atom.pos.x, atom.pos.y, atom.pos.z))
                        owner.append(len(names))
                names.append(f"{residue.name[:8]} {part.name[:8]}{residue.seqid.num}")
    return Ligands(np.array(positions, np.float64).reshape(-1, 3), np.array(owner, np.int64), tuple(names))


def residue_areas(atoms: Sequence[ChainAtoms], n_residues: Sequence[int]) -> list[NDArray[np.float64]]:
    """Return the solvent-accessible area of each residue; chains are treated as isolated.

    Parameters
    ----------
    atoms : sequence of ChainAtoms
        Atoms of each chain.
    n_residues : sequence of int
        Number of residues of each chain.

    Returns
    -------
    list of ndarray of float64, shape (r,)
        Areas of the r residues of each chain, Å²; NaN for residues with only their backbone.
    """
    if not atoms:
        return []
    position = np.concatenate([atom.position for atom in atoms])
    radius = np.concatenate([atom.radius for atom in atoms])
    offsets = segment_offsets(np.array([len(atom.radius) for atom in atoms], np.int64))
    areas = np.zeros(len(radius))
    kernels.cpu.solvent_area.solvent_areas(position, radius, offsets, _sphere(_POINTS), PROBE_RADIUS, 0, len(atoms), areas)
    result = []
    for k, (atom, n) in enumerate(zip(atoms, n_residues, strict=True)):
        area = np.bincount(atom.residue, areas[offsets[k] : offsets[k + 1]], n)
        result.append(np.where(atom.is_whole, area, np.nan))
    return result


def _sphere(n: int) -> NDArray[np.float64]:
    """Return n evenly distributed points on the unit sphere, (n, 3): a spiral with steps of the golden angle."""
    height = 1.0 - (2.0 * np.arange(n) + 1.0) / n
    turn = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(n)
    wide = np.sqrt(1.0 - height**2)
    return np.stack([wide * np.cos(turn), wide * np.sin(turn), height], axis=1)
