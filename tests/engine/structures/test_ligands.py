"""Ligands of a chain: found near it, with their bonds, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.structures.ligands import MAXIMUM_LIGANDS, ligand_atoms
from proteoscope.engine.structures.reading import read_structure

CHAIN = "".join(
    f"ATOM  {k + 1:>5d}  CA  ALA A{k + 1:>4d}    {3.8 * k:8.3f}{0.0:8.3f}{0.0:8.3f}  1.00 10.00           C  \n" for k in range(12)
)


def hetero(name: str, number: int, atoms: list[tuple[str, str, float, float, float]]) -> str:
    return "".join(
        f"HETATM{900 + i:>5d} {atom:<4s} {name:>3s} A{number:>4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00 10.00          {element:>2s}  \n"
        for i, (atom, element, x, y, z) in enumerate(atoms)
    )


BENZENE = [(f" C{i + 1}", "C", 12 + 1.39 * np.cos(i * np.pi / 3), 4 + 1.39 * np.sin(i * np.pi / 3), 0.0) for i in range(6)]
ZINC = hetero("ZN", 202, [("ZN", "ZN", 20.0, 5.0, 0.0)])
WATER = hetero("HOH", 301, [(" O", "O", 12.0, -4.0, 0.0)])
FAR = hetero("SO4", 203, [(" S", "S", 12.0, 60.0, 0.0), (" O1", "O", 13.4, 60.0, 0.0)])


def test_ligands_near_the_chain_are_found_with_their_bonds(tmp_path: Path) -> None:
    path = tmp_path / "x.pdb"
    path.write_text(CHAIN + "TER\n" + hetero("BNZ", 201, BENZENE) + ZINC + WATER + FAR + "END\n")
    chains = read_structure(path).chains
    atoms = ligand_atoms(path, chains)
    assert [name.split()[0] for name in atoms.name] == ["BNZ"] * 6 + ["ZN"]
    assert atoms.residue.tolist() == [0] * 6 + [1]
    assert sorted(map(tuple, atoms.bonds.tolist())) == [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)], "a ring, and an unbound ion"
    assert atoms.position[:6] == pytest.approx(np.array([atom[2:] for atom in BENZENE]), abs=1e-3)


def test_ligands_are_limited_in_number_and_report_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pdb"
    ions = "".join(hetero("NA", 200 + i, [("NA", "NA", 0.5 * i, 4.0, 1.0)]) for i in range(80))
    path.write_text(CHAIN + "TER\n" + ions + "END\n")
    chains = read_structure(path).chains
    assert len(ligand_atoms(path, chains).name) == MAXIMUM_LIGANDS
    path.write_text(CHAIN)
    assert len(ligand_atoms(path, chains).name) == 0
    path.unlink()
    with pytest.raises(InputError):
        ligand_atoms(path, chains)
