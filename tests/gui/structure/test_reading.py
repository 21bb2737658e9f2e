"""Tests of data read in addition to the chains of a hit from real files: other chains, side chains, B-factors, and exports."""

from __future__ import annotations

from pathlib import Path

import gemmi
import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs import Progress
from proteoscope.engine.structure_search.hit_chains import ChainInFile
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.structures.superposition import superpose_many
from proteoscope.engine.views.traces import Trace, create_query_trace, superpose_hit
from proteoscope.gui.structure.reading import other_chains, side_chain
from proteoscope.gui.structure.scene import Scene
from proteoscope.gui.structure.scene_export import SceneFilesTask
from tests.engine.views.trace_examples import hit_row
from tests.gui.structure.examples import scene_of


def chain_of(path: Path, number: int = 0) -> ChainInFile:
    return ChainInFile(read_structure(path).chains.taken([number]), path)


@pytest.fixture(scope="module")
def globins(shared_data: Path) -> tuple[Trace, Trace]:
    """Return a globin, and another superposed onto it."""
    query, target = (chain_of(shared_data / "structures" / "globins" / name) for name in ("d1b0ba_", "d1cg5a_"))
    offsets, none = np.array([0, len(target.chains.position)]), np.array([0, 0])
    superpositions = superpose_many(query.chains.position, target.chains.position, offsets, np.empty((0, 2), np.int32), none, threads=1)
    rotation, translation = superpositions.rotation[0].ravel(), superpositions.translation[0]
    numbers = {"rotation": ",".join(map(str, rotation)), "translation": ",".join(map(str, translation))}
    row = hit_row(query, target, superpositions.pairs, **numbers)
    return create_query_trace(query), superpose_hit(row, query, target)


def test_side_chain_atoms_are_read_at_the_residue(globins: tuple[Trace, Trace]) -> None:
    for trace in globins:
        row = trace.residues.index("F")
        atoms = side_chain(trace, row)
        assert atoms.name == ("CA", "CB", "CG", "CD1", "CD2", "CE1", "CE2", "CZ") and len(atoms.bonds) == 8
        assert atoms.position[0] == pytest.approx(trace.position[row], abs=1e-3)
        bonded = atoms.position[atoms.bonds]
        lengths = np.linalg.norm(bonded[:, 0] - bonded[:, 1], axis=1)
        assert (lengths > 1.2).all() and (lengths < 1.7).all()


def test_other_chains_of_a_file_are_superposed_with_the_hit(tmp_path: Path, globins: tuple[Trace, Trace]) -> None:
    _, hit = globins
    structure = gemmi.read_structure(str(hit.path), format=gemmi.CoorFormat.Pdb)
    chain = structure[0][0]
    other = chain.clone()
    other.name = "Z"
    for residue in other:
        for atom in residue:
            atom.pos += gemmi.Position(50, 0, 0)
    structure[0].add_chain(other)
    path = tmp_path / "two.pdb"
    structure.write_pdb(str(path))
    chains = chain_of(path)
    trace = Trace("two", hit.position, chains, hit.pairs, hit.rotation, hit.translation, hit.hit)
    (other_chain,) = other_chains(trace)
    assert other_chain.name == "two:Z" and len(other_chain) == len(trace)
    assert other_chain.position - trace.position == pytest.approx(np.tile(50 * hit.rotation[:, 0], (len(trace), 1)), abs=1e-3)
    path.write_bytes(globins[0].path.read_bytes())
    with pytest.raises(InputError, match="no longer contains"):
        other_chains(trace)


def test_missing_structure_file_of_a_scene_is_reported(globins: tuple[Trace, Trace]) -> None:
    scene = scene_of(1)
    for trace in scene.traces:
        with pytest.raises(InputError):
            side_chain(trace, 0)
        with pytest.raises(InputError):
            other_chains(trace)


def test_exported_scene_has_superposed_coordinates_and_colours(globins: tuple[Trace, Trace], tmp_path: Path) -> None:
    from PySide6.QtGui import QColor

    scene = Scene()
    scene.show(*globins)
    scene.scheme = "identity"
    task = SceneFilesTask.from_scene(scene, QColor("black"), tmp_path / "saved")
    assert task is not None and task.run(Progress()) == tmp_path / "saved"
    written = gemmi.read_structure(str(tmp_path / "saved" / "hit_1.cif"))
    alphas = [atom.pos.tolist() for residue in written[0][0] for atom in residue if atom.name == "CA"]
    assert np.array(alphas) == pytest.approx(globins[1].position, abs=2e-3)
    assert len(list(written[0].all())) > 5 * len(alphas)
    script = (tmp_path / "saved" / "picture.pml").read_text()
    tones = {tuple(tone) for colour in scene.coloured().colours for tone in colour.tolist()}
    assert len(tones) > 2 and all(f"{r:02x}{g:02x}{b:02x}" in script.lower() for r, g, b in tones)
    assert SceneFilesTask.from_scene(Scene(), QColor("black"), tmp_path) is None
