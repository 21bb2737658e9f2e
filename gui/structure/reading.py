"""Functions that read further data for the 3D view: other chains, ligands, surfaces and side chains."""

from dataclasses import replace

import numpy as np

from proteoscope.engine.arrays import ChainRow, row_range
from proteoscope.engine.errors import InputError
from proteoscope.engine.structure_search.hit_chains import ChainInFile
from proteoscope.engine.structures.exposure import read_chain_atoms
from proteoscope.engine.structures.ligands import ligand_atoms
from proteoscope.engine.structures.meshes import Mesh
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.structures.residue_atoms import Atoms, residue_atoms
from proteoscope.engine.structures.surfaces import molecular_surface
from proteoscope.engine.views.traces import Trace, moved

_MAXIMUM_CHAINS, _MAXIMUM_RESIDUES = 60, 20_000
"""Maximum numbers of other chains of a file and of their residues: more would hide the superposed chains."""
_RESIDUE_RADIUS = 3.2
"""Radius (Å) of a sphere with the volume of a residue of 110 Da."""


def other_chains(trace: Trace) -> tuple[Trace, ...]:
    """Return the other protein chains of the file of a chain, in the query's frame.

    Raises
    ------
    InputError
        If the file is missing or has changed.
    """
    file = read_structure(trace.path)
    positions = {tuple(position) for position in trace.chains.position.tolist()}
    others: list[Trace] = []
    is_found, n_residues = False, 0
    for i, name in zip(row_range(ChainRow, len(file.chains)), file.chains.names, strict=True):
        rows = file.chains.rows(i)
        if not is_found and positions <= {tuple(position) for position in file.chains.position[rows].tolist()}:
            is_found = True
            continue
        n_residues += rows.stop - rows.start
        if len(others) < _MAXIMUM_CHAINS and n_residues <= _MAXIMUM_RESIDUES:
            alone = file.chains.taken([i])
            others.append(Trace(name, moved(alone.position, trace.rotation, trace.translation), ChainInFile(alone, trace.path)))
    if not is_found:
        raise InputError(trace.path, f"no longer contains {trace.name} as searched", remedy="Search again")
    return tuple(others)


def ligands(trace: Trace) -> Atoms:
    """Return the atoms of the ligands of a chain, in the query's frame.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    atoms = ligand_atoms(trace.path, trace.chains)
    return replace(atoms, position=moved(atoms.position, trace.rotation, trace.translation))


def surface(trace: Trace, maximum_triangles: int) -> Mesh:
    """Return the molecular surface of a chain's heavy atoms with at most `maximum_triangles` triangles, in the query's frame.

    Raises
    ------
    InputError
        If the file is missing or has changed.
    """
    (atoms,) = read_chain_atoms(trace.path, [trace.chains])
    if isinstance(atoms, InputError):
        raise atoms
    # In a file with only Cα, each Cα gets the radius of a whole residue.
    radius = atoms.radius if atoms.is_whole.any() else np.full(len(atoms.radius), _RESIDUE_RADIUS)
    result = molecular_surface(atoms.position, radius, atoms.residue, maximum_triangles)
    return result.moved(trace.rotation, trace.translation)


def side_chain(trace: Trace, row: int) -> Atoms:
    """Return the atoms of the side chain, including Cα, of the residue `row` of a chain, in the query's frame.

    Raises
    ------
    InputError
        If the file is missing, has changed, or contains only Cα.
    """
    atoms = residue_atoms(trace.path, trace.chains, np.array([row]))
    return replace(atoms, position=moved(atoms.position, trace.rotation, trace.translation))
