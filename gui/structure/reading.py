"""What the view in three dimensions reads besides the chains of a hit: other chains of their files, and atoms of side chains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from proteoscope.engine.errors import InputError
from proteoscope.engine.row_numbers import ChainRow, row_range
from proteoscope.engine.structure_search.hit_chains import FoundChain
from proteoscope.engine.structures.exposure import read_chain_atoms
from proteoscope.engine.structures.ligands import ligand_atoms
from proteoscope.engine.structures.meshes import Mesh
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.structures.residue_atoms import Atoms, residue_atoms
from proteoscope.engine.structures.surfaces import molecular_surface
from proteoscope.engine.views.traces import Trace, moved

__all__ = ["chains_beside", "ligands", "side_chain", "surface"]

_MAXIMUM_CHAINS, _MAXIMUM_RESIDUES = 60, 20_000
"""Of the other chains of a file: more are a crowd that hides the fold."""
_RESIDUE_RADIUS = 3.2
"""Å, of a ball with the volume of a residue of 110 dalton."""


def chains_beside(trace: Trace) -> tuple[Trace, ...]:
    """The other protein chains of a chain's file, moved as it was.

    Raises
    ------
    InputError : the file is gone, or is another one now.
    """
    file = read_structure(trace.path)
    own = {tuple(place) for place in trace.chains.position.tolist()}
    beside: list[Trace] = []
    is_found, n_residues = False, 0
    for i, name in zip(row_range(ChainRow, len(file.chains)), file.chains.names, strict=True):
        rows = file.chains.rows(i)
        if not is_found and own <= {tuple(place) for place in file.chains.position[rows].tolist()}:
            is_found = True
            continue
        n_residues += rows.stop - rows.start
        if len(beside) < _MAXIMUM_CHAINS and n_residues <= _MAXIMUM_RESIDUES:
            alone = file.chains.taken([i])
            beside.append(Trace(name, moved(alone.position, trace.rotation, trace.translation), FoundChain(alone, trace.path)))
    if not is_found:
        raise InputError(trace.path, f"no longer holds {trace.name} as it was searched", remedy="Search again")
    return tuple(beside)


def ligands(trace: Trace) -> Atoms:
    """The atoms of what is bound to a chain, in the query's frame.

    Raises
    ------
    InputError : the file is gone or damaged.
    """
    atoms = ligand_atoms(trace.path, trace.chains)
    return replace(atoms, position=moved(atoms.position, trace.rotation, trace.translation))


def surface(trace: Trace, maximum_triangles: int) -> Mesh:
    """The surface of a chain's heavy atoms, in the query's frame.

    Raises
    ------
    InputError : the file is gone, or is another one now.
    """
    (atoms,) = read_chain_atoms(trace.path, [trace.chains])
    if isinstance(atoms, InputError):
        raise atoms
    # Of a file with Cα alone each stands for its residue, whose middle is as far from its border.
    radius = atoms.radius if atoms.is_whole.any() else np.full(len(atoms.radius), _RESIDUE_RADIUS)
    found = molecular_surface(atoms.position, radius, atoms.residue, maximum_triangles)
    return found.moved(trace.rotation, trace.translation)


def side_chain(trace: Trace, row: int) -> Atoms:
    """The atoms of a residue's side chain, from Cα on, in the query's frame.

    Raises
    ------
    InputError : the file is gone, is another one now, or holds Cα alone.
    """
    atoms = residue_atoms(trace.path, trace.chains, np.array([row]))
    return replace(atoms, position=moved(atoms.position, trace.rotation, trace.translation))
