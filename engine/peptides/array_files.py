"""Writer of the columns of an index in several parts."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrayFile"]

_HEADER_BYTES = 128


class ArrayFile:
    """Writer of a .npy file with a one-dimensional array whose length is not known in advance.

    Parameters
    ----------
    path : Path
        File to write; complete after the end of the `with` block.
    dtype : type
        Type of the values.

    Attributes
    ----------
    length : int
        Number of values written.
    """

    def __init__(self, path: Path, dtype: type) -> None:
        self._file = path.open("wb")
        self._dtype = np.dtype(dtype)
        self._file.write(bytes(_HEADER_BYTES))
        self.length = 0

    def append(self, values: NDArray[np.generic]) -> None:
        """Append values to the array in the file."""
        np.ascontiguousarray(values, self._dtype).tofile(self._file)
        self.length += len(values)

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        text = repr({"descr": self._dtype.str, "fortran_order": False, "shape": (self.length,)})
        header = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little") + text.ljust(_HEADER_BYTES - 11).encode() + b"\n"
        with self._file:
            self._file.seek(0)
            self._file.write(header)
