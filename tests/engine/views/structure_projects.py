"""Projects with a search of synthetic structures: bundles of ideal helices and strands, and relatives of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.project import Project
from proteoscope.engine.structures.building import build_database
from tests.engine.structures.examples import as_mmcif, as_pdb, atoms_of, helix

AUTHORS_SHIFT = 40
"""Offset of author numbers from the positions of residues in the query."""


def bundle(seed: int, n_elements: int = 5) -> NDArray[np.float64]:
    """Return the Cα (n, 3) of antiparallel helices and strands, joined by straight segments."""
    random = np.random.default_rng(seed)
    parts: list[NDArray[np.float64]] = []
    for k in range(n_elements):
        is_helix = random.random() < 0.6
        n = int(random.integers(11, 17)) if is_helix else int(random.integers(6, 10))
        element = helix(n) if is_helix else helix(n, rise=3.3, radius=0.9, degrees=180.0)
        element = element if k % 2 == 0 else element[::-1] * [1, -1, 1]
        element = element + np.array([10.0 * (k % 3) + random.normal(), 10.0 * (k // 3) + random.normal(), random.normal()])
        if parts:
            gap = element[0] - parts[-1][-1]
            steps = max(2, round(float(np.linalg.norm(gap)) / 3.8))
            parts.append(parts[-1][-1] + gap * (np.arange(1, steps) / steps)[:, None])
        parts.append(element)
    return np.concatenate(parts)


def write_structures(folder: Path, n_unrelated: int = 8) -> tuple[Path, Path]:
    """Write a query with author numbers as mmCIF, and a folder with relatives of it and unrelated structures as PDB."""
    searched = folder / "searched"
    searched.mkdir(parents=True)
    random = np.random.default_rng(5)
    query = bundle(1)
    for k, noise in enumerate((0.3, 0.6, 1.0)):
        remaining = np.delete(query, slice(20 + 3 * k, 24 + 3 * k), axis=0)
        (searched / f"relative{k}.pdb").write_bytes(as_pdb(atoms_of(remaining + random.normal(0, noise, remaining.shape))))
    for k in range(n_unrelated):
        (searched / f"unrelated{k}.pdb").write_bytes(as_pdb(atoms_of(bundle(100 + k))))
    path = folder / "query.cif"
    path.write_bytes(as_mmcif(atoms_of(query), shift=AUTHORS_SHIFT))
    return path, searched


def project_with_structures(folder: Path) -> Project:
    """Return a project with one finished search of two queries in a structure database, which is next to the project."""
    from proteoscope.engine.structure_search.parameters import StructureSearchParameters
    from tests.searching import find_structures

    files = folder.parent / f"{folder.name} files"
    query, searched = write_structures(files)
    other = files / "other.pdb"
    other.write_bytes((searched / "unrelated2.pdb").read_bytes())
    build_database([searched], files / "database", processes=1)
    parameters = StructureSearchParameters().changed(qualification_threshold=0)
    find_structures([query, other], [files / "database"], None, parameters, project_folder=folder, device="cpu")
    return Project.open(folder)


def project_of_all_chains(folder: Path) -> Project:
    """Return a project with one finished search of all chains of a folder, which is next to the project, against each other."""
    from proteoscope.engine.structure_search.parameters import StructureSearchParameters
    from tests.searching import find_structures

    _, searched = write_structures(folder.parent / f"{folder.name} files", n_unrelated=4)
    parameters = StructureSearchParameters().changed(hits_per_query=2)
    find_structures([], [searched], None, parameters, project_folder=folder, device="cpu", all=True)
    return Project.open(folder)
