"""Missing columns of mmCIF and BinaryCIF are completed from others; molecules and models of one name are read as requested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.structures.reading import StructureFile, read_structure
from tests.engine.structures.examples import COLUMNS, RESIDUES, as_binary_cif, as_mmcif, atoms_of, helix

ROWS = atoms_of(helix(8)) + atoms_of(helix(8) + 30.0, "B")
WRITERS = {
    "mmcif": lambda rows, columns: as_mmcif(rows, columns=columns),
    "binary": lambda rows, columns: as_binary_cif(rows, changes=columns),
}
AUTHORS = {"auth_atom_id": lambda row: row[1], "auth_comp_id": lambda row: row[3]}


def read(folder: Path, content: bytes, **settings: Any) -> StructureFile:
    path = folder / "x.cif"
    path.write_bytes(content)
    return read_structure(path, **settings)


def lengths(structures: StructureFile) -> dict[str, int]:
    return dict(zip(structures.chain_names, structures.chains.lengths.tolist(), strict=True))


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("name", [name for name in COLUMNS if not name.startswith("Cartn")])
def test_read_structure_accepts_mmcif_that_lacks_one_column(tmp_path: Path, write, name: str) -> None:
    structures = read(tmp_path, write(ROWS, {**AUTHORS, name: None}))
    assert lengths(structures) == {"A": 8, "B": 8}
    assert structures.chains.sequence(1) == RESIDUES
    assert np.allclose(structures.chains.position[:8], helix(8), atol=6e-4)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize(
    "names",
    [
        ("id", "label_alt_id", "label_asym_id", "type_symbol", "label_atom_id"),
        ("label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id", "label_entity_id", "label_seq_id"),
        ("auth_seq_id", "auth_asym_id", "group_PDB", "occupancy", "B_iso_or_equiv"),
    ],
)
def test_read_structure_accepts_mmcif_with_few_columns(tmp_path: Path, write, names: tuple[str, ...]) -> None:
    structures = read(tmp_path, write(ROWS, {**AUTHORS, **dict.fromkeys(names)}))
    assert lengths(structures) == {"A": 8, "B": 8} and structures.chains.sequence(0) == RESIDUES


@pytest.mark.parametrize("name", ["label_asym_id", "auth_asym_id", "type_symbol", "label_atom_id", "label_alt_id", "id"])
@pytest.mark.parametrize("null", ["?", "."])
def test_read_structure_completes_empty_mmcif_columns(tmp_path: Path, name: str, null: str) -> None:
    assert lengths(read(tmp_path, as_mmcif(ROWS, columns={**AUTHORS, name: null}))) == {"A": 8, "B": 8}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_read_structure_error_names_missing_mmcif_column(tmp_path: Path, write) -> None:
    with pytest.raises(InputError, match=r"lacks the column _atom_site\.Cartn_y"):
        read(tmp_path, write(ROWS, {"Cartn_y": None}))


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("columns", [{"auth_asym_id": "A"}, {"auth_asym_id": "A", "label_asym_id": "A"}])
def test_second_mmcif_molecule_of_equal_name_is_renamed(tmp_path: Path, write, columns: dict[str, str]) -> None:
    structures = read(tmp_path, write(ROWS, columns))
    assert lengths(structures) == {"A": 8, "A_2": 8}
    assert np.allclose(structures.chains.position[8:], helix(8) + 30.0, atol=6e-4)
    assert "chain A holds 2 molecules" in structures.messages[0]


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_read_structure_reads_or_counts_further_mmcif_models(tmp_path: Path, write) -> None:
    rows = ROWS + atoms_of(helix(8) + 60.0) + atoms_of(helix(8) - 60.0, "C")
    content = write(rows, {"pdbx_PDB_model_num": lambda row: 1 if rows.index(row) < len(ROWS) else 2})
    structures = read(tmp_path, content)
    assert lengths(structures) == {"A": 8, "B": 8}
    assert "only the first of 2 models is read (48 atoms of the other models left out)" in structures.messages[0]
    structures = read(tmp_path, content, models="all")
    assert lengths(structures) == {"A": 8, "B": 8, "A_2": 8, "C": 8} and not structures.messages
    assert np.allclose(structures.chains.position[16:24], helix(8) + 60.0, atol=6e-4)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("name", ["HSD", "HISE", "HID"])
def test_read_structure_accepts_residue_names_of_simulations(tmp_path: Path, write, name: str) -> None:
    rows = [(*row[:3], name, *row[4:]) if row[5] == 4 else row for row in ROWS]
    assert read(tmp_path, write(rows, {})).chains.sequence(0) == "AGMHSKDV"


def test_read_structure_counts_further_mmcif_data_blocks(tmp_path: Path) -> None:
    structures = read(tmp_path, as_mmcif(ROWS) + as_mmcif(ROWS).replace(b"data_TEST", b"data_OTHER"))
    assert "only the first of 2 blocks" in structures.messages[0]


@pytest.mark.parametrize("name", ["authonly", "full", "no_id", "no_label_alt_id", "no_type_symbol"])
def test_read_structure_accepts_mmcif_files_with_missing_columns(shared_cases: Path, name: str) -> None:
    assert lengths(read_structure(shared_cases / "mmcif_missing_columns" / f"{name}.cif")) == {"A": 141, "B": 141}


PASSING = {
    "altnum.pdb": {"A": 141},
    "ca.pdb": {"A": 141},
    "dna5.cif": {"A": 141, "B": 141},
    "het.pdb": {"A": 141},
    "ins.pdb": {"A": 141},
    "longchain.cif": {"HeavychainA": 141, "HeavychainB": 141},
    "microhet_inter.pdb": {"A": 141},
    "modres.pdb": {"A": 141},
    "mods.pdb": {"A": 141},
    "neg.pdb": {"A": 141},
    "no_group_PDB.cif": {"A": 141, "B": 141},
    "no_pdbx_PDB_ins_code.cif": {"A": 141, "B": 141},
    "pymol.cif": {"A": 141, "B": 141},
    "short54_crlf.pdb": {"": 141},
}


@pytest.mark.parametrize("name", PASSING)
def test_read_structure_accepts_valid_files_without_warnings(shared_cases: Path, name: str) -> None:
    structures = read_structure(shared_cases / "pass_structures" / name)
    assert lengths(structures) == PASSING[name] and not structures.messages


@pytest.mark.parametrize("name", ["auth_seq_id", "label_seq_id", "id"])
def test_read_structure_counts_non_numeric_mmcif_values(tmp_path: Path, name: str) -> None:
    structures = read(tmp_path, as_mmcif(ROWS, columns={**AUTHORS, name: lambda row: "x1" if row is ROWS[-1] else row[5]}))
    assert lengths(structures)["A"] == 8 and lengths(structures)["B"] in (7, 8)
    if name == "auth_seq_id":
        assert structures.messages[0].startswith(
            f"_atom_site.{name} contains 1 value other than whole numbers, treated as unknown, the first 'x1' in row 48"
        )


def cut_rows(content: bytes, cut: Callable[[list[bytes]], list[bytes]]) -> bytes:
    """Return a file with changed atom lines and the lines after them."""
    lines = content.splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if line.startswith(b"ATOM"))
    return b"".join([*lines[:first], *cut(lines[first:])])


@pytest.mark.parametrize("n_bytes", [3, 12, 25])
def test_read_structure_reads_complete_rows_of_truncated_mmcif(tmp_path: Path, n_bytes: int) -> None:
    whole = as_mmcif(ROWS)
    n_rows = len(ROWS) - 6  # This is within the second-last residue of chain B.
    content = cut_rows(whole, lambda lines: [*lines[:n_rows], lines[n_rows][:n_bytes]])
    structures = read(tmp_path, content)
    expected = read(tmp_path, cut_rows(whole, lambda lines: [*lines[:n_rows], b"#\n"]))
    assert lengths(structures) == lengths(expected) and np.array_equal(structures.chains.position, expected.chains.position)
    (message,) = [text for text in structures.messages if "left out" in text and "table of atoms" in text]
    line = content.count(b"\n") + 1
    assert message.startswith("1 row of the table of atoms left out") and f"in line {line:,}, which has" in message
    assert "are missing. The file ends there" in message


def test_read_structure_counts_mmcif_rows_with_missing_values(tmp_path: Path) -> None:
    short = [4, 5, 9]

    def cut(lines: list[bytes]) -> list[bytes]:
        return [line.rsplit(None, 1)[0] + b"\n" if i in short else line for i, line in enumerate(lines)]

    content = cut_rows(as_mmcif(ROWS), cut)
    structures = read(tmp_path, content)
    assert sum(lengths(structures).values()) == 16 - sum(ROWS[i][1] == "CA" for i in short)
    first = content[: content.index(b"ATOM")].count(b"\n") + 1 + short[0]
    assert any(text.startswith(f"3 rows of the table of atoms left out, the first in line {first:,}") for text in structures.messages)


def test_read_structure_rejects_mmcif_truncated_in_wrapped_rows(tmp_path: Path) -> None:
    wrapped = cut_rows(as_mmcif(ROWS), lambda lines: [b"\n".join(line.split(None, 4)).rstrip() + b"\n" for line in lines])
    with pytest.raises(InputError, match="not a valid mmCIF file"):
        read(tmp_path, wrapped[: wrapped.rindex(b"CA")])
