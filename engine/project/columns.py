"""Memory-mapped columns of an index on disk, validated when opened.

An index may be damaged, or altered together with its checksums, and computations use its values as memory indices without checks. Therefore
types, dimensions and lengths are validated here, and values by the code that knows their meaning.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from proteoscope.engine.arrays import read_only
from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import open_regular

__all__ = ["InvalidIndexError", "checked_offsets", "checked_texts", "open_column", "read_json", "read_numbers", "require"]

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '([<|][a-z][0-9])', 'fortran_order': False, 'shape': \(([0-9]{1,15}),\)(?:, )?\}\s*")
_MAXIMUM_JSON = 1 << 20
_ALIGNMENT = 16


class InvalidIndexError(StorageError):
    """Exception: an index differs from what the program writes; the message names the error. The caller rebuilds the index."""


def require(condition: object, what: str) -> None:
    """Raise `InvalidIndexError` with the message `what` if `condition` is false."""
    if not condition:
        raise InvalidIndexError(what)


def open_column(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Memory-map a one-dimensional array of type `dtype` from a ``.npy`` file.

    Raises
    ------
    InvalidIndexError
        If the file is missing, or does not hold such an array.
    """
    kind = np.dtype(dtype)
    try:
        with open_regular(path) as file:
            start = file.read(10)
            n_header = int.from_bytes(start[8:10], "little")
            header = _HEADER.fullmatch(file.read(n_header))
            n_bytes = file.seek(0, 2)
        require(start[:8] == _MAGIC and header is not None, f"{path.name} is not a column")
        assert header is not None
        require(header[1].decode() == kind.str, f"{path.name} holds {header[1].decode()} and not {kind.str}")
        length, offset = int(header[2]), len(start) + n_header
        require(offset % _ALIGNMENT == 0 and n_bytes == offset + length * kind.itemsize, f"{path.name} has another length than it says")
        # Empty files cannot be mapped. Read-only like mapped arrays, since kernels are compiled separately for writable ones.
        return np.memmap(path, kind, mode="r", offset=offset, shape=(length,)) if length else read_only(np.empty(0, kind))
    except (OSError, ValueError, MemoryError) as error:
        raise InvalidIndexError(f"{path.name} cannot be read ({error})") from error


def checked_offsets(offsets: NDArray[np.int64], end: int, what: str) -> None:
    """Raise InvalidIndexError unless the offsets ascend from 0 to `end`; `what` names them in the message."""
    require(len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == end, f"the offsets of {what} do not lead from its start to its end")
    # Comparison, not differences, which could overflow.
    require((offsets[1:] >= offsets[:-1]).all(), f"the offsets of {what} do not ascend")


def checked_texts(characters: NDArray[np.uint8], offsets: NDArray[np.int64], what: str) -> None:
    """Raise InvalidIndexError unless the offsets divide UTF-8 bytes into texts at character boundaries.

    Raises
    ------
    InvalidIndexError
        If the offsets are invalid or divide a character.
    """
    checked_offsets(offsets, len(characters), what)
    try:
        str(characters.data, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidIndexError(f"the {what} are not UTF-8") from error
    starts = offsets[:-1][offsets[:-1] < len(characters)]
    require(not (characters[starts] & 0xC0 == 0x80).any(), f"the offsets of {what} split characters")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of at most 1 MB.

    Raises
    ------
    InvalidIndexError
        If the file is missing, or not such a file.
    """
    try:
        with open_regular(path) as file:
            return json.loads(file.read(_MAXIMUM_JSON))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidIndexError(f"{path.name} cannot be read ({error})") from error


def read_numbers(path: Path, names: tuple[str, ...], texts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the non-negative numbers `names` and the strings `texts` of a JSON file, by name.

    Raises
    ------
    InvalidIndexError
        If the file is missing, or does not hold exactly these values.
    """
    result = read_json(path)
    require(isinstance(result, dict) and set(result) == {*names, *texts}, f"{path.name} holds other things than it should")
    for name in names:
        require(type(result[name]) is int and 0 <= result[name] < 1 << 62, f"{path.name} has no number {name}")
    for name in texts:
        require(isinstance(result[name], str), f"{path.name} has no text {name}")
    return dict(result)
