"""Small structures for tests, computed from numbers: a helix, and files of it in each format."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.structures.descriptors import first_code
from proteoscope.kernels.structure_layouts import BITS, StructureArrays

NAMES = ("ALA", "GLY", "MSE", "TRP", "SER", "LYS", "ASP", "VAL")
RESIDUES = "AGMWSKDV"


def codes_of(arrays: StructureArrays, alphabet: str) -> NDArray[np.uint8]:
    """Return the codes of residues in an alphabet, shape (r,)."""
    return (arrays.state >> np.uint32(first_code(alphabet)) & np.uint32((1 << BITS) - 1)).astype(np.uint8)


def helix(n: int = 8, *, rise: float = 1.5, radius: float = 2.3, degrees: float = 100.0) -> NDArray[np.float64]:
    """Return the Cα positions of an α helix, shape (n, 3)."""
    turn = np.radians(degrees) * np.arange(n)
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), rise * np.arange(n)], axis=1)


def atoms_of(position: NDArray, chain: str = "A") -> list[tuple]:
    """Return (group, atom, alternative, residue, chain, number, insertion, x, y, z, occupancy, b) of each Cα with its N and C."""
    rows = []
    for i, place in enumerate(position):
        for name, shift in (("N", -0.9), ("CA", 0.0), ("C", 0.9)):
            x, y, z = place + shift
            residue = NAMES[i % len(NAMES)]
            rows.append(("HETATM" if residue == "MSE" else "ATOM", name, "", residue, chain, i + 1, "", x, y, z, 1.0, 20.0))
    return rows


def as_pdb(rows: list[tuple], head: str = "") -> bytes:
    lines = []
    for serial, (group, name, alternative, residue, chain, number, insertion, x, y, z, occupancy, b) in enumerate(rows, 1):
        lines.append(
            f"{group:<6}{serial:>5} {name:<4}".replace(f" {name:<4}", f"  {name:<3}")
            + f"{alternative or ' '}{residue:>3} {chain:1}{number:>4}{insertion or ' '}   {x:8.3f}{y:8.3f}{z:8.3f}{occupancy:6.2f}{b:6.2f}"
            + f"          {name[0]:>2}\n"
        )
    return (head + "".join(lines) + "TER\nEND\n").encode()


COLUMNS = (
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
    "auth_asym_id",
    "pdbx_PDB_model_num",
)


def cif_rows(rows: list[tuple], shift: int = 0) -> list[tuple]:
    """Return the values of `COLUMNS` for each atom; author numbers are `shift` above the file's own."""
    return [
        (
            group,
            serial,
            name[0],
            name,
            alternative or ".",
            residue,
            chain,
            "1",
            number,
            insertion or "?",
            x,
            y,
            z,
            occupancy,
            b,
            number + shift,
            chain,
            1,
        )
        for serial, (group, name, alternative, residue, chain, number, insertion, x, y, z, occupancy, b) in enumerate(rows, 1)
    ]


def as_mmcif(rows: list[tuple], shift: int = 0, more: str = "", columns: dict[str, Any] | None = None) -> bytes:
    """mmCIF of these atoms. `columns`: values of columns in all rows, or a function of the row; None leaves a column out."""
    head = "data_TEST\n" + more + "loop_\n_entity.id\n_entity.type\n_entity.pdbx_description\n1 polymer 'a helix'\nloop_\n"
    table = _table(rows, shift, columns or {})
    names = "".join(f"_atom_site.{name}\n" for name in table)
    lines = [
        " ".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in map(_plain, row))
        for row in zip(*table.values(), strict=True)
    ]
    return (head + names + "\n".join(lines) + "\n#\n").encode()


def _table(rows: list[tuple], shift: int, columns: dict[str, Any]) -> dict[str, list]:
    table = dict(zip(COLUMNS, map(list, zip(*cif_rows(rows, shift), strict=True)), strict=True))
    for name, value in columns.items():
        if value is None:
            del table[name]
        else:
            table[name] = [value(row) for row in rows] if callable(value) else [value] * len(rows)
    return table


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, np.floating) else value


def pack(value: Any) -> bytes:
    """Pack numbers, texts, bytes, lists and maps as MessagePack."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return struct.pack("b", value) if -32 <= value < 128 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, str):
        text = value.encode()
        return (struct.pack("B", 0xA0 | len(text)) if len(text) < 32 else b"\xda" + struct.pack(">H", len(text))) + text
    if isinstance(value, dict):
        return struct.pack("B", 0x80 | len(value)) + b"".join(pack(key) + pack(item) for key, item in value.items())
    return b"\xdc" + struct.pack(">H", len(value)) + b"".join(map(pack, value))


def _bytes_of(values: NDArray, kind: int) -> tuple[bytes, dict]:
    return values.tobytes(), {"kind": "ByteArray", "type": kind}


def _number_column(name: str, values: list) -> dict:
    if isinstance(values[0], int):
        # Differences are packed into bytes; larger ones are sums.
        differences = np.diff(np.array(values), prepend=values[0])
        packed: list[int] = []
        for difference in differences.tolist():
            while difference > 126:
                packed.append(127)
                difference -= 127
            while difference < -127:
                packed.append(-128)
                difference += 128
            packed.append(difference)
        data, last = _bytes_of(np.array(packed, "i1"), 1)
        encoding = [
            {"kind": "Delta", "origin": values[0], "srcType": 3},
            {"kind": "IntegerPacking", "byteCount": 1, "isUnsigned": False, "srcSize": len(values)},
            last,
        ]
    else:
        data, last = _bytes_of(np.round(np.array(values) * 1000).astype("<i4"), 3)
        encoding = [{"kind": "FixedPoint", "factor": 1000, "srcType": 32}, last]
    return {"name": name, "data": {"data": data, "encoding": encoding}, "mask": None}


def _text_column(name: str, values: list[str]) -> dict:
    texts = sorted(set(values))
    runs: list[int] = []
    for value in values:
        if runs and runs[-2] == texts.index(value):
            runs[-1] += 1
        else:
            runs += [texts.index(value), 1]
    offsets, offset_kind = _bytes_of(np.cumsum([0, *map(len, texts)]).astype("<i4"), 3)
    data, data_kind = _bytes_of(np.array(runs, "<i4"), 3)
    encoding = {
        "kind": "StringArray",
        "stringData": "".join(texts),
        "offsets": offsets,
        "offsetEncoding": [offset_kind],
        "dataEncoding": [{"kind": "RunLength", "srcType": 3, "srcSize": len(values)}, data_kind],
    }
    return {"name": name, "data": {"data": data, "encoding": [encoding]}, "mask": None}


def as_binary_cif(rows: list[tuple], shift: int = 0, changes: dict[str, Any] | None = None) -> bytes:
    columns = []
    for name, values in _table(rows, shift, changes or {}).items():
        plain = [_plain(value) for value in values]
        columns.append(_text_column(name, plain) if isinstance(plain[0], str) else _number_column(name, plain))
    category = {"name": "_atom_site", "rowCount": len(rows), "columns": columns}
    return pack({"version": "0.3.0", "encoder": "tests", "dataBlocks": [{"header": "TEST", "categories": [category]}]})
