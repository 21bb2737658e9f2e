"""Read-only arrays, like those of a mapped file."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["read_only"]


def read_only(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Make arrays read-only, so that kernels compiled ahead for read-only arrays are not compiled again."""
    for array in arrays:
        array.flags.writeable = False
    return arrays
