"""Copies of ranges of sequences, and reverse complements."""

from __future__ import annotations

from numba import njit

__all__ = ["copy_segments", "write_reverse_complements"]


@njit(nogil=True, cache=True, error_model="numpy")
def copy_segments(values, begins, offsets, out):
    """Copy segments: segment i of `values` starts at ``begins[i]`` and is written to ``out[offsets[i] : offsets[i + 1]]``."""
    for i in range(len(begins)):
        shift = begins[i] - offsets[i]
        for j in range(offsets[i], offsets[i + 1]):
            out[j] = values[j + shift]


@njit(nogil=True, cache=True, error_model="numpy")
def write_reverse_complements(codes, offsets, complement, out):
    """Write the reverse complement of each sequence to `out`, consecutively and in the same order."""
    shift = offsets[0]
    for i in range(len(offsets) - 1):
        total = offsets[i] + offsets[i + 1] - 1 - shift
        for j in range(offsets[i], offsets[i + 1]):
            out[total - j] = complement[codes[j]]
