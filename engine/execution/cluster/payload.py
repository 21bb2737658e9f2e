"""Conversion of plain data to bytes for other processes: msgpack, with each array as a ``.npy`` without objects.

Nothing is pickled or unpickled. A large array may be replaced by a reference (`proteoscope.engine.execution.cluster.columns`).
"""

import io
from collections.abc import Callable, Mapping
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

__all__ = ["pack", "unpack"]

_ARRAY, _TUPLE, _NAMED, _READ_ONLY = 1, 2, 3, 4


def pack(value: Any, named: Callable[[NDArray[Any]], Mapping[str, Any] | None] = lambda array: None) -> bytes:
    """Convert plain data to bytes.

    Parameters
    ----------
    value : object
        Numbers, strings, bytes, arrays, and mappings and sequences of these.
    named : callable
        Function that returns the reference of an array, or None for an array whose values are packed.

    Raises
    ------
    TypeError
        If a value has another type, or an array contains objects.
    """

    def other(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            position = named(item)
            if position is not None:
                return msgpack.ExtType(_NAMED, pack(dict(position)))
            if item.dtype.hasobject:
                raise TypeError("an array of objects cannot be sent to another process")
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asarray(item), version=(1, 0), allow_pickle=False)
            return msgpack.ExtType(_ARRAY if item.flags.writeable else _READ_ONLY, file.getvalue())
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, tuple):
            return msgpack.ExtType(_TUPLE, pack(list(item), named))
        if isinstance(item, Mapping):
            return dict(item)
        raise TypeError(f"{type(item).__name__} cannot be sent to another process")

    packed: bytes = msgpack.packb(value, default=other, strict_types=True)
    return packed


def unpack(packed: bytes, opened: Callable[[Mapping[str, Any]], NDArray[Any]] | None = None) -> Any:
    """Convert the result of `pack` back to data; read-only arrays remain read-only, and named tuples become plain tuples.

    Parameters
    ----------
    packed : bytes
        Result of `pack`.
    opened : callable, optional
        Function that opens an array, given its reference.

    Raises
    ------
    ValueError
        If the bytes are not a result of `pack`.
    """

    def extension(code: int, data: bytes) -> Any:
        if code in (_ARRAY, _READ_ONLY):
            array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
            # Kernels are compiled separately for writable and read-only arrays. Keep this property, so that both processes use the same
            # kernels.
            array.flags.writeable = code == _ARRAY
            return array
        if code == _TUPLE:
            return tuple(unpack(data, opened))
        if code == _NAMED and opened is not None:
            return opened(unpack(data))
        raise ValueError(f"data with the code {code} are not expected here")

    return msgpack.unpackb(packed, ext_hook=extension, strict_map_key=False)
