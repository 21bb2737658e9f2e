"""Surfaces of molecules: closed, outward, correctly placed, with the volume of proteins, and bounded."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import gemmi
import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.structures import surfaces
from proteoscope.engine.structures.exposure import read_chain_atoms
from proteoscope.engine.structures.meshes import NO_MESH, Mesh
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.structures.surfaces import molecular_surface


def volume(mesh: Mesh) -> float:
    """Return the volume (Å³) by the divergence theorem."""
    a, b, c = (mesh.vertices[mesh.triangles[:, k].astype(int)].astype(np.float64) for k in range(3))
    return float((a * np.cross(b, c)).sum() / 6.0)


def is_closed(mesh: Mesh) -> bool:
    """Return True if each edge is used equally often in both directions."""
    ends = np.concatenate([mesh.triangles[:, [0, 1]], mesh.triangles[:, [1, 2]], mesh.triangles[:, [2, 0]]]).astype(np.int64)
    n = len(mesh.vertices)
    there, back = np.unique(ends[:, 0] * n + ends[:, 1], return_counts=True), np.unique(ends[:, 1] * n + ends[:, 0], return_counts=True)
    return all(np.array_equal(first, second) for first, second in zip(there, back, strict=True))


def test_molecular_surface_of_one_atom_is_a_sphere() -> None:
    mesh = molecular_surface(np.array([[5.0, -3.0, 40.0]]), np.array([3.0]), np.array([7]), 1 << 20)
    apart = mesh.vertices - np.array([5.0, -3.0, 40.0])
    assert np.abs(np.linalg.norm(apart, axis=1) - 3.0).max() < 0.08
    assert volume(mesh) == pytest.approx(4 / 3 * np.pi * 27, rel=0.03)
    assert is_closed(mesh) and (mesh.residue == 7).all()
    outward = (mesh.normals * apart / np.linalg.norm(apart, axis=1, keepdims=True)).sum(axis=1)
    assert outward.min() > 0.97
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_molecular_surface_vertices_belong_to_the_nearest_atom() -> None:
    position = np.array([[0.0, 0, 0], [2.5, 0, 0], [0.0, 3.0, 0], [20.0, 0, 0]])
    mesh = molecular_surface(position, np.full(4, 1.7), np.array([4, 9, 2, 5]), 1 << 20)
    apart = np.linalg.norm(mesh.vertices[:, None] - position[None], axis=2)
    nearest = np.array([4, 9, 2, 5])[np.argmin(apart, axis=1)]
    # If two atoms are equally near, either may be shown.
    is_clear = np.diff(np.sort(apart, axis=1)[:, :2], axis=1)[:, 0] > 0.3
    assert is_clear.mean() > 0.7 and (mesh.residue == nearest)[is_clear].all()
    assert is_closed(mesh)


@pytest.fixture(scope="module")
def albumin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("albumin") / "albumin.pdb"
    path.write_bytes(gzip.decompress(resources.path("samples", "albumin_domain_3.pdb.gz").read_bytes()))
    return path


def test_molecular_surface_volume_agrees_with_protein_mass(albumin: Path) -> None:
    (atoms,) = read_chain_atoms(albumin, [read_structure(albumin).chains.taken([0])])
    assert not isinstance(atoms, Exception)
    mesh = molecular_surface(atoms.position, atoms.radius, atoms.residue, 1 << 20)
    weight = sum(atom.element.weight for residue in gemmi.read_structure(str(albumin))[0][0] for atom in residue if not residue.is_water())
    # Partial specific volume of proteins: 0.73 cm³/g, which is 1.21 Å³ for each dalton (Harpaz, Gerstein & Chothia 1994); hydrogens, which
    # are not in the file, are 7 % of the mass.
    assert volume(mesh) == pytest.approx(1.21 * weight / 0.93, rel=0.15)
    assert is_closed(mesh) and set(np.unique(mesh.residue)) <= set(range(len(atoms.is_whole)))
    # No vertex is inside an atom or far from all atoms.
    rows = np.random.default_rng(1).choice(len(mesh.vertices), 500, replace=False)
    depth = (np.linalg.norm(mesh.vertices[rows][:, None] - atoms.position[None], axis=2) / atoms.radius).min(axis=1)
    assert depth.min() > 0.9 and depth.max() < 1.9


def test_molecular_surface_triangles_and_memory_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    position = random.uniform(-60, 60, (3000, 3))
    few = molecular_surface(position, np.full(3000, 1.8), np.arange(3000), 20_000)
    assert 2_000 < len(few.triangles) <= 20_000 and is_closed(few)
    sizes = []
    made = surfaces._field

    def noted(*given: Any) -> Any:
        mesh = made(*given)
        sizes.append(mesh[0].size)
        return mesh

    monkeypatch.setattr(surfaces, "_field", noted)
    molecular_surface(np.array([[-9e4, -9e4, -9e4], [9e4, 9e4, 9e4]]), np.full(2, 1.8), np.arange(2), 1000)
    assert sizes and max(sizes) < 1.5 * surfaces.MAXIMUM_CELLS


def test_molecular_surface_ignores_atoms_without_position() -> None:
    assert molecular_surface(np.full((3, 3), np.nan), np.ones(3), np.arange(3), 1000) is NO_MESH
    assert molecular_surface(np.empty((0, 3)), np.empty(0), np.empty(0, int), 1000) is NO_MESH
    mixed = np.array([[0.0, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0], [1e30, 0, 0]])
    assert len(molecular_surface(mixed, np.ones(4), np.arange(4), 10_000).triangles) > 20
