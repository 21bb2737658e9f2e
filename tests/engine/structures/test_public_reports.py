"""Structures that other programs misread according to public reports: small files of the same kind, against gemmi and Biopython.

The address of each report is in the docstring of its test.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import gemmi
import numpy as np
import pytest

from proteoscope.engine.structures.reading import read_structure

RESIDUES = ("ALA", "GLY", "SER", "VAL", "LEU", "LYS", "THR", "GLU")
COLUMNS = [
    "group_PDB",
    "id",
    "type_symbol",
    "label_atom_id",
    "label_alt_id",
    "label_comp_id",
    "label_asym_id",
    "label_entity_id",
    "label_seq_id",
    "pdbx_PDB_ins_code",
    "Cartn_x",
    "Cartn_y",
    "Cartn_z",
    "occupancy",
    "B_iso_or_equiv",
    "auth_seq_id",
    "auth_comp_id",
    "auth_asym_id",
    "auth_atom_id",
    "pdbx_PDB_model_num",
]
BACKBONE = (("N", 0.0, 0.0), ("CA", 1.45, 0.0), ("C", 2.0, 1.4), ("O", 1.3, 2.4))


def atoms(serial: int, row: int, *, alt: str = ".", insertion: str = "?", number: int = 0, occupancy: float = 1.0, x: float = 0.0) -> str:
    """Return the backbone of a residue as rows of _atom_site."""
    name = RESIDUES[row % len(RESIDUES)]
    return "".join(
        f"ATOM {serial + k} {atom[0]} {atom} {alt} {name} A 1 {row + 1} {insertion} {3.8 * row + x + dx:.3f} {dy:.3f} 0.0 {occupancy} 20.0 "
        f"{number or row + 1} {name} A {atom} 1\n"
        for k, (atom, dx, dy) in enumerate(BACKBONE)
    )


def mmcif(path: Path, *rows: str) -> Path:
    path.write_text("data_x\nloop_\n" + "".join(f"_atom_site.{name}\n" for name in COLUMNS) + "".join(rows))
    return path


def alpha_carbons(path: Path) -> list[tuple[str, int, str, list[float]]]:
    """Return residue, number, insertion code and Cα position by Biopython, for the alternative with the highest occupancy."""
    pdb = pytest.importorskip("Bio.PDB", reason="Biopython reads structures independently")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = pdb.MMCIFParser(QUIET=True) if path.suffix == ".cif" else pdb.PDBParser(QUIET=True)
        residues = list(reader.get_structure("x", str(path))[0].get_residues())
    return [(residue.resname, residue.id[1], residue.id[2].strip(), residue["CA"].coord.tolist()) for residue in residues]


def read(path: Path) -> list[tuple[str, int, str, list[float]]]:
    """Return the same values by the program."""
    file = read_structure(path)
    assert len(file.chain_names) == 1
    chains = file.chains
    names = [gemmi.expand_one_letter(residue, gemmi.ResidueKind.AA) for residue in chains.sequence(0)]
    codes = [chr(code) if code else "" for code in chains.insertion.tolist()]
    return list(zip(names, chains.author_number.tolist(), codes, chains.position.tolist(), strict=True))


def same(rows: list[tuple[str, int, str, list[float]]], expected: list[tuple[str, int, str, list[float]]]) -> bool:
    return [row[:3] for row in rows] == [row[:3] for row in expected] and np.allclose(
        [row[3] for row in rows], [row[3] for row in expected], atol=1e-3
    )


def test_mmcif_insertion_codes_equal_biopython(tmp_path: Path) -> None:
    """Check a report on Biopython.

    https://github.com/biopython/biopython/issues/481
    """
    places = ((1, "?"), (1, "A"), (1, "B"), (2, "?"), (3, "?"), (3, "A"), (4, "?"), (-1, "?"))
    path = mmcif(tmp_path / "a.cif", *(atoms(4 * i + 1, i, number=n, insertion=code) for i, (n, code) in enumerate(places)))
    assert same(read(path), alpha_carbons(path))


@pytest.mark.parametrize("names", [("1", "2"), ("A", "B"), ("B", "2")])
@pytest.mark.parametrize("occupancy", [0.3, 0.7])
def test_mmcif_alternative_locations_are_not_mixed(tmp_path: Path, names: tuple[str, str], occupancy: float) -> None:
    """Check a report on ProDy.

    https://github.com/prody/ProDy/pull/1792
    """
    first, second = names
    rows = [
        atoms(8 * i + 1, i, alt=first, occupancy=occupancy) + atoms(8 * i + 5, i, alt=second, occupancy=1 - occupancy, x=0.9)
        for i in range(8)
    ]
    path = mmcif(tmp_path / "a.cif", *rows)
    assert same(read(path), alpha_carbons(path))


def test_pdb_atoms_with_serials_above_five_digits_equal_gemmi(tmp_path: Path) -> None:
    """Check a report on pdb-tools.

    https://github.com/haddocking/pdb-tools/issues/121
    """
    structure = gemmi.read_structure(str(mmcif(tmp_path / "a.cif", *(atoms(4 * i + 1, i) for i in range(8)))))
    structure.setup_entities()
    for number, place in enumerate(structure[0].all()):
        place.atom.serial = 99_990 + number
    options = gemmi.PdbWriteOptions()
    options.preserve_serial = True
    (tmp_path / "a.pdb").write_text(structure.make_pdb_string(options))
    assert "A0000" in (tmp_path / "a.pdb").read_text()
    assert same(read(tmp_path / "a.pdb"), read(tmp_path / "a.cif")) and len(read(tmp_path / "a.pdb")) == 8
