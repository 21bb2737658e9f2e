"""Reader of BinaryCIF: mmCIF with encoded columns in MessagePack (Sehnal et al., PLOS Computational Biology 16, 2020, e1008247).

The result has the mmCIF blocks that gemmi reads from text, so that both formats are processed alike. Sizes stated in the file are not
trusted: a file with more rows than its bytes can contain, or with columns of another length than stated, is rejected.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.structures.chain_copies import models_note
from proteoscope.engine.structures.molecules import MOLECULE_CATEGORIES
from proteoscope.engine.unfolding import CIF_CHARACTERS, CIF_ROWS, CIF_VALUES, Unfolding

if TYPE_CHECKING:
    import gemmi

__all__ = ["read_binary_cif"]

_LONGEST_LIST = 100_000
_MAXIMUM_ENCODINGS = 16  # successive encodings of a column; writers use up to four
_TYPES = {1: "<i1", 2: "<i2", 3: "<i4", 4: "<u1", 5: "<u2", 6: "<u4", 32: "<f4", 33: "<f8"}
_REMEDY = "Copy or download it again, or use mmCIF instead"

_WANTED = {
    "_atom_site": (
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
    ),
    "_entity": ("id", "type", "pdbx_description"),
    **MOLECULE_CATEGORIES,
    "_entity_poly": ("entity_id", "type"),
    "_struct_asym": ("id", "entity_id"),
    "_struct": ("title",),
    "_exptl": ("method",),
    "_software": ("name",),
    "_ma_qa_metric": ("id", "mode"),
    "_ma_qa_metric_local": ("label_asym_id", "label_seq_id", "metric_id", "metric_value"),
    "_ma_model_list": ("model_name",),
    "_pdbx_struct_mod_residue": (
        "label_asym_id",
        "label_comp_id",
        "label_seq_id",
        "auth_asym_id",
        "auth_comp_id",
        "auth_seq_id",
        "PDB_ins_code",
        "parent_comp_id",
    ),
}
"""Categories and columns that are needed to read structures."""
_DECIMALS = {"Cartn_x": 3, "Cartn_y": 3, "Cartn_z": 3, "occupancy": 2, "B_iso_or_equiv": 2}


def read_binary_cif(path: Path, data: bytes, *, all_models: bool = True) -> tuple[gemmi.cif.Document, list[str]]:
    """Read the categories and columns of a BinaryCIF file that describe structures.

    Parameters
    ----------
    path : Path
        File, for messages and its size.
    data : bytes
        Decompressed content of the file.
    all_models : bool
        False to decode only the atoms of the first model of each block.

    Returns
    -------
    document : gemmi.cif.Document
        Blocks as gemmi reads them from mmCIF.
    notes : list of str
        Message about the models that were omitted in the first block with several models; empty if none were omitted.

    Raises
    ------
    InputError
        If the file is damaged or has an encoding that the format does not define.
    """
    import gemmi  # slow to import: only structures need it

    try:
        root = _unpacked(data)
        document, notes = gemmi.cif.Document(), list[str]()
        # gzip compresses encoded columns by a factor of at most two.
        unfolding = Unfolding(path, min(len(data), 2 * path.stat().st_size))
        for block in _require_list(root, "dataBlocks"):
            made = document.add_new_block(_require_text(block, "header") or "unnamed")
            for category in _require_list(block, "categories"):
                name = _require_text(category, "name")
                if name in _WANTED:
                    notes += _add_category(made, name, category, unfolding, all_models)
        return document, notes[:1]
    except (_WrongError, ValueError, KeyError, TypeError, IndexError, OverflowError, UnicodeDecodeError) as error:
        reason = shortened(str(error), 200)
        raise InputError(path, f"is not a valid BinaryCIF file ({reason})", remedy=_REMEDY) from None


class _WrongError(Exception):
    """Exception: the content of the file is not valid."""


def _require_list(value: Any, key: str) -> list[Any]:
    result = value.get(key) if isinstance(value, dict) else None
    if not isinstance(result, list):
        raise _WrongError(f"it has no list {key}")
    return result


def _require_text(value: Any, key: str) -> str:
    result = value.get(key) if isinstance(value, dict) else None
    if not isinstance(result, str):
        raise _WrongError(f"it has no text {key}")
    return result


def _unpacked(data: bytes) -> Any:
    """Return the MessagePack value at the start of `data`; list lengths are limited, since lists are allocated before they are read."""
    import msgpack  # only BinaryCIF needs it

    unpacker = msgpack.Unpacker(max_buffer_size=len(data), max_array_len=_LONGEST_LIST, max_map_len=_LONGEST_LIST)
    unpacker.feed(data)
    try:
        return unpacker.unpack()
    except msgpack.OutOfData:
        raise _WrongError("it is cut off") from None
    except (msgpack.FormatError, msgpack.StackError):
        raise _WrongError("it contains data that MessagePack does not define, or lists nested too deeply") from None


def _add_category(block: gemmi.cif.Block, name: str, category: Any, unfolding: Unfolding, all_models: bool) -> list[str]:
    """Add a category to a block; return messages about omitted models."""
    n_rows = category.get("rowCount")
    if not isinstance(n_rows, int) or n_rows < 0:
        raise _WrongError(f"{name} does not give its number of rows")
    unfolding.check(CIF_ROWS, n_rows, place=name)
    columns = {_require_text(column, "name"): column for column in _require_list(category, "columns")}
    tags = [tag for tag in _WANTED[name] if tag in columns]
    if not tags or not n_rows:
        return []
    unfolding.add(CIF_VALUES, n_rows * len(tags), place=name)
    rows, notes = np.arange(n_rows), list[str]()
    if name == "_atom_site" and "pdbx_PDB_model_num" in tags and not all_models:
        rows, notes = _first_model(columns["pdbx_PDB_model_num"], n_rows, unfolding)
    values = [_values(columns[tag], tag, n_rows, rows, unfolding) for tag in tags]
    block.init_loop(f"{name}.", tags).set_all_values(values)
    return notes


def _first_model(column: Any, n_rows: int, unfolding: Unfolding) -> tuple[NDArray[np.int64], list[str]]:
    """Return the rows of the first model, and messages about other models; if the model of any row is unknown, return all rows."""
    rows = np.arange(n_rows)
    models = _decoded(column.get("data"), n_rows, unfolding)
    if column.get("mask") is not None and np.any(np.asarray(_decoded(column["mask"], n_rows, unfolding)) != 0):
        return rows, []
    _, model = np.unique(np.asarray(models), return_inverse=True)
    first = np.flatnonzero(model == model[0])
    n_models = int(model.max()) + 1
    return first, [models_note(n_models, n_rows - len(first))] if n_models > 1 else []


def _values(column: Any, tag: str, n_rows: int, rows: NDArray[np.int64], unfolding: Unfolding) -> list[str]:
    """Return the values of a column in the given rows as texts, written as in an mmCIF file."""
    import gemmi  # slow to import: only structures need it

    result = _decoded(column.get("data"), n_rows, unfolding)
    if isinstance(result, list):
        unfolding.add(CIF_CHARACTERS, sum(map(len, result)), place=tag)
        quoted: dict[str, str] = {}
        values = []
        for row in rows.tolist():
            text = result[row]
            if text not in quoted:
                quoted[text] = gemmi.cif.quote(text)
            values.append(quoted[text])
    elif result.dtype.kind == "f":
        decimals = _DECIMALS.get(tag, 6)
        values = [f"{value:.{decimals}f}" for value in result[rows].tolist()]
    else:
        values = list(map(str, result[rows].tolist()))
    if column.get("mask") is not None:
        mask = _decoded(column["mask"], n_rows, unfolding)
        if isinstance(mask, list):
            raise _WrongError(f"the mask of {tag} is not numeric")
        chosen = mask[rows]
        for row in np.flatnonzero(chosen != 0).tolist():
            values[row] = "." if chosen[row] == 1 else "?"
    return values


def _decoded(data: Any, n_rows: int, unfolding: Unfolding) -> NDArray[Any] | list[str]:
    """Decode a column of numbers or texts."""
    value: Any = data.get("data")
    for encoding in _last_first(_require_list(data, "encoding")):
        kind = _require_text(encoding, "kind")
        if kind == "StringArray":
            value = _texts(value, encoding, n_rows, unfolding)
        elif kind == "ByteArray":
            value = np.frombuffer(_bytes(value), _TYPES[encoding["type"]])
        else:
            value = _DECODERS[kind](_numbers(value), encoding, unfolding)
    if len(value) != n_rows or isinstance(value, bytes):
        raise _WrongError(f"a column has {len(value)} rows instead of {n_rows}")
    return value if isinstance(value, list) else np.asarray(value)


def _last_first(encodings: list[Any]) -> list[Any]:
    """Return the encodings of a column in the order of decoding, last encoding first.

    Columns with too many encodings are rejected, since each one processes the whole column.
    """
    if len(encodings) > _MAXIMUM_ENCODINGS:
        raise _WrongError(f"a column is encoded {len(encodings):,} times, more than {_MAXIMUM_ENCODINGS}")
    return encodings[::-1]


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise _WrongError("a column holds no bytes")
    return value


def _numbers(value: Any) -> NDArray[Any]:
    if not isinstance(value, np.ndarray):
        raise _WrongError("a column is encoded in the wrong order")
    return value


def _texts(value: Any, encoding: Any, n_rows: int, unfolding: Unfolding) -> list[str]:
    text = _require_text(encoding, "stringData")
    offsets = _decode_all(_bytes(encoding.get("offsets")), encoding.get("offsetEncoding"), unfolding).astype(np.int64)
    unfolding.add(CIF_VALUES, len(offsets), place="texts of a column")
    indices = _decode_all(_bytes(value), encoding.get("dataEncoding"), unfolding).astype(np.int64)
    if len(offsets) and (offsets[0] < 0 or offsets[-1] > len(text) or (offsets[1:] < offsets[:-1]).any()):
        raise _WrongError("the offsets of texts do not ascend")
    n_texts = max(0, len(offsets) - 1)
    if len(indices) != n_rows or (len(indices) and (indices.min() < -1 or indices.max() >= n_texts)):
        raise _WrongError("a column refers to texts that do not exist")
    texts = [text[start:stop] for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
    return [texts[index] if index >= 0 else "" for index in indices.tolist()]


def _decode_all(value: bytes, encodings: Any, unfolding: Unfolding) -> NDArray[Any]:
    if not isinstance(encodings, list):
        raise _WrongError("a column does not state its encoding")
    result: Any = value
    for encoding in _last_first(encodings):
        kind = _require_text(encoding, "kind")
        if kind == "ByteArray":
            result = np.frombuffer(_bytes(result), _TYPES[encoding["type"]])
        else:
            result = _DECODERS[kind](_numbers(result), encoding, unfolding)
    return _numbers(result)


def _fixed_point(value: NDArray[Any], encoding: Any, unfolding: Unfolding) -> NDArray[Any]:
    del unfolding
    factor = float(encoding["factor"])
    if not factor > 0.0:
        raise _WrongError("a factor is not positive")
    return value.astype(np.float64) / factor


def _interval(value: NDArray[Any], encoding: Any, unfolding: Unfolding) -> NDArray[Any]:
    del unfolding
    least, most, n = float(encoding["min"]), float(encoding["max"]), int(encoding["numSteps"])
    if n < 2 or not np.isfinite([least, most]).all():
        raise _WrongError("an interval has no steps")
    return least + value.astype(np.float64) * ((most - least) / (n - 1))


def _run_length(value: NDArray[Any], encoding: Any, unfolding: Unfolding) -> NDArray[Any]:
    del encoding
    if len(value) % 2 or value.dtype.kind not in "iu":
        raise _WrongError("the lengths of runs are missing")
    counts, maximum_rows = value[1::2].astype(np.int64), CIF_ROWS.most(unfolding.n_bytes)
    if len(counts) and (counts.min() < 0 or counts.max() > maximum_rows or counts.sum() > maximum_rows):
        raise _WrongError("runs are longer than the file can hold")
    return np.repeat(value[::2], counts)


def _delta(value: NDArray[Any], encoding: Any, unfolding: Unfolding) -> NDArray[Any]:
    del unfolding
    if value.dtype.kind not in "iu":
        raise _WrongError("differences are not whole numbers")
    origin = encoding["origin"]
    if not isinstance(origin, int) or abs(origin) >= 1 << 31:
        raise _WrongError("an origin is not a number")
    return np.cumsum(value.astype(np.int64)) + origin


def _integer_packing(value: NDArray[Any], encoding: Any, unfolding: Unfolding) -> NDArray[Any]:
    del unfolding
    if value.dtype.kind not in "iu" or value.dtype.itemsize > 2:
        raise _WrongError("packed numbers have a wrong type")
    limits = np.iinfo(value.dtype)
    is_whole = value != limits.max
    if not encoding.get("isUnsigned"):
        is_whole &= value != limits.min
    # A number ends with the first item that is not the maximum (or minimum) of the type.
    ends = np.flatnonzero(is_whole)
    if (len(value) and not len(ends)) or (len(ends) and ends[-1] != len(value) - 1):
        raise _WrongError("a packed number does not end")
    total = np.cumsum(value.astype(np.int64))[ends] if len(ends) else np.empty(0, np.int64)
    return np.diff(total, prepend=0)


_DECODERS = {
    "FixedPoint": _fixed_point,
    "IntervalQuantization": _interval,
    "RunLength": _run_length,
    "Delta": _delta,
    "IntegerPacking": _integer_packing,
}
