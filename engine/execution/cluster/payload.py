"""Plain data as bytes, for work that is done in other processes: msgpack, with each array as a ``.npy`` that holds no objects.

Nothing is pickled and nothing unpickled. Large arrays may be named in place of being there: whoever packs says which, and whoever unpacks
opens them (`proteoscope.engine.execution.cluster.columns`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

__all__ = ["pack", "unpack"]

_ARRAY, _TUPLE, _NAMED, _READ_ONLY = 1, 2, 3, 4


def pack(value: Any, named: Callable[[NDArray], Mapping[str, Any] | None] = lambda array: None) -> bytes:
    """Numbers, texts, bytes, arrays, and mappings and sequences of them as bytes.

    `named`: what stands for an array that is not to be there itself, None for one that is.

    Raises
    ------
    TypeError : something else is among them, or an array of objects.
    """

    def other(one: Any) -> Any:
        if isinstance(one, np.ndarray):
            place = named(one)
            if place is not None:
                return msgpack.ExtType(_NAMED, pack(dict(place)))
            if one.dtype.hasobject:
                raise TypeError("an array of objects cannot go to another process")
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asarray(one), version=(1, 0), allow_pickle=False)
            return msgpack.ExtType(_ARRAY if one.flags.writeable else _READ_ONLY, file.getvalue())
        if isinstance(one, np.generic):
            return one.item()
        if isinstance(one, tuple):
            return msgpack.ExtType(_TUPLE, pack(list(one), named))
        if isinstance(one, Mapping):
            return dict(one)
        raise TypeError(f"{type(one).__name__} cannot go to another process")

    packed: bytes = msgpack.packb(value, default=other, strict_types=True)
    return packed


def unpack(packed: bytes, opened: Callable[[Mapping[str, Any]], NDArray] | None = None) -> Any:
    """What `pack` packed, arrays read-only where they were; tuples of names come back as plain tuples.

    `opened`: opens an array that is named.

    Raises
    ------
    ValueError : the bytes hold something else.
    """

    def extension(code: int, data: bytes) -> Any:
        if code in (_ARRAY, _READ_ONLY):
            array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
            # A kernel is compiled for arrays that are written to, or for those that are not: what is compiled here serves there.
            array.flags.writeable = code == _ARRAY
            return array
        if code == _TUPLE:
            return tuple(unpack(data, opened))
        if code == _NAMED and opened is not None:
            return opened(unpack(data))
        raise ValueError(f"a part of kind {code} is not expected here")

    return msgpack.unpackb(packed, ext_hook=extension, strict_map_key=False)
