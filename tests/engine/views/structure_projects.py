"""Made-up structures for tests of views: bundles of ideal helices and strands, relatives of them, and a search among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.project import Project
from proteoscope.engine.structures.building import build_database
from tests.engine.structures.examples import as_mmcif, as_pdb, atoms_of, helix

AUTHORS_SHIFT = 40
"""What the authors of the query add to the numbers of residues."""


def bundle(seed: int, n_elements: int = 5) -> NDArray[np.float64]:
    """(n, 3) Cα of helices and strands beside each other, up and down in turn, joined by straight runs."""
    random = np.random.default_rng(seed)
    parts: list[NDArray[np.float64]] = []
    for k in range(n_elements):
        is_helix = random.random() < 0.6
        n = int(random.integers(11, 17)) if is_helix else int(random.integers(6, 10))
        one = helix(n) if is_helix else helix(n, rise=3.3, radius=0.9, degrees=180.0)
        one = one if k % 2 == 0 else one[::-1] * [1, -1, 1]
        one = one + np.array([10.0 * (k % 3) + random.normal(), 10.0 * (k // 3) + random.normal(), random.normal()])
        if parts:
            gap = one[0] - parts[-1][-1]
            steps = max(2, round(float(np.linalg.norm(gap)) / 3.8))
            parts.append(parts[-1][-1] + gap * (np.arange(1, steps) / steps)[:, None])
        parts.append(one)
    return np.concatenate(parts)


def write_structures(folder: Path, n_strangers: int = 8) -> tuple[Path, Path]:
    """A query as mmCIF with numbers of its authors', and a folder with relatives of it (more and less alike) and strangers, as PDB."""
    searched = folder / "searched"
    searched.mkdir(parents=True)
    random = np.random.default_rng(5)
    query = bundle(1)
    for k, noise in enumerate((0.3, 0.6, 1.0)):
        kept = np.delete(query, slice(20 + 3 * k, 24 + 3 * k), axis=0)
        (searched / f"relative{k}.pdb").write_bytes(as_pdb(atoms_of(kept + random.normal(0, noise, kept.shape))))
    for k in range(n_strangers):
        (searched / f"stranger{k}.pdb").write_bytes(as_pdb(atoms_of(bundle(100 + k))))
    path = folder / "query.cif"
    path.write_bytes(as_mmcif(atoms_of(query), shift=AUTHORS_SHIFT))
    return path, searched


def project_with_structures(folder: Path) -> Project:
    """A project with one finished search of two queries in a structure database that lies beside it."""
    from proteoscope.engine.structure_search.parameters import StructureSearchParameters
    from tests.searching import find_structures

    files = folder.parent / f"{folder.name} files"
    query, searched = write_structures(files)
    other = files / "other.pdb"
    other.write_bytes((searched / "stranger2.pdb").read_bytes())
    build_database([searched], files / "database", processes=1)
    parameters = StructureSearchParameters().changed(qualification_threshold=0)
    find_structures([query, other], [files / "database"], None, parameters, project_folder=folder, device="cpu")
    return Project.open(folder)
