"""Arrays that are not written to, as those of a mapped file are."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["read_only"]


def read_only(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The arrays, which nobody may write to any more: a kernel that was compiled ahead for such need not be compiled again for others."""
    for array in arrays:
        array.flags.writeable = False
    return arrays
