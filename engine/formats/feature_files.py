"""Writer and reader of the features of proteins as columns of an index."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts
from proteoscope.engine.formats.features import FEATURE_KINDS, Features
from proteoscope.engine.project.columns import checked_offsets, checked_texts, open_column, read_numbers, require

__all__ = ["open_features", "write_features"]

_FEATURE_COLUMNS = {
    "offsets": np.int64,
    "kind": np.uint8,
    "first": np.int32,
    "last": np.int32,
    "text_bytes": np.uint8,
    "text_offsets": np.int64,
}
_FEATURE_KINDS, _KINDS = "feature_kinds.json", ", ".join(kind.name for kind in FEATURE_KINDS)


def write_features(folder: Path, features: Features) -> None:
    """Write the features of proteins into a folder, one file for each column."""
    columns = (features.offsets, features.kind, features.first, features.last, features.texts.characters, features.texts.offsets)
    for name, column in zip(_FEATURE_COLUMNS, columns, strict=True):
        np.save(folder / f"feature_{name}.npy", np.asarray(column))
    (folder / _FEATURE_KINDS).write_text(json.dumps({"kinds": _KINDS}), encoding="utf-8")


def open_features(folder: Path, offsets: NDArray[np.int64]) -> Features | None:
    """Open the memory-mapped features of n proteins, written by `write_features`, after validation.

    Parameters
    ----------
    folder : Path
        Folder of the index.
    offsets : ndarray of int64, shape (n + 1,)
        Residues of protein i are ``offsets[i]:offsets[i + 1]``.

    Returns
    -------
    Features or None
        Features; None if the folder contains none.

    Raises
    ------
    InvalidIndexError
        If the columns are damaged, or were written by a version with other feature kinds.
    """
    if not (folder / _FEATURE_KINDS).exists():
        return None
    # Kinds are stored as indices in a list, which differs between versions.
    require(read_numbers(folder / _FEATURE_KINDS, (), ("kinds",))["kinds"] == _KINDS, f"{folder}: features are of other kinds")
    of_protein, kind, first, last, symbols, ends = (
        open_column(folder / f"feature_{name}.npy", dtype) for name, dtype in _FEATURE_COLUMNS.items()
    )
    n = len(kind)
    is_as_long = len(of_protein) == len(offsets) and len(first) == len(last) == len(ends) - 1 == n
    require(is_as_long, f"{folder}: columns of the features have different lengths")
    checked_offsets(of_protein, n, f"{folder}: features")
    checked_texts(symbols, ends, f"{folder}: features")
    length = np.repeat(np.diff(offsets), np.diff(of_protein))
    is_inside = (kind < len(FEATURE_KINDS)).all() and (first >= 1).all() and (first <= last).all() and (last <= length).all()
    require(bool(is_inside), f"{folder}: a feature lies outside its protein")
    return Features(of_protein, kind, first, last, Texts(symbols, ends))
