"""Decoding of the peak arrays of mzML and mzXML (base64, zlib, MS-Numpress) for all spectra of a block together."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.formats.spectrum_blocks import MAXIMUM_PEAKS, IssueCode

__all__ = ["LINEAR", "MAXIMUM_NUMBERS", "PIC", "PLAIN", "SLOF", "UNSUPPORTED", "Arrays", "decode_arrays", "limit_unpacking"]

# Encodings of numbers, each with or without zlib.
PLAIN, LINEAR, PIC, SLOF = range(4)
UNSUPPORTED = 9

MAXIMUM_NUMBERS = 4 * MAXIMUM_PEAKS
"""Maximum number of values in a block (two per peak), ten times the number in a megabyte of well-compressed arrays."""
_LARGE = MAXIMUM_NUMBERS // 8
_MAXIMUM_NUMBERS_OF_BYTE = 1032  # the maximum compression ratio of zlib; numpress stores at most two numbers in a byte


@dataclass
class Arrays:
    """Array of one type (such as m/z) for each of n spectra: its position in a block of text, and its encoding.

    Attributes
    ----------
    start, stop : ndarray of int64, shape (n,)
        Range of bytes of the base64 text in the block; `start` is -1 if a spectrum has no such array.
    dtype : ndarray of str, shape (n,)
        NumPy dtypes (``<f4``), '' if unknown.
    compression : ndarray of int64, shape (n,)
        `PLAIN`, `LINEAR`, `PIC`, `SLOF` or `UNSUPPORTED`.
    is_zlib : ndarray of bool, shape (n,)
        True if the encoded numbers are compressed with zlib.
    length : ndarray of int64, shape (n,)
        Declared number of peaks, -1 if unknown.
    per_peak : int
        Numbers per peak: 2 if m/z and intensity alternate, else 1.
    """

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    dtype: NDArray[np.str_]
    compression: NDArray[np.int64]
    is_zlib: NDArray[np.bool_]
    length: NDArray[np.int64]
    per_peak: int = 1

    @property
    def n_numbers(self) -> int:
        """Number of values to unpack: the declared number, but no more than the bytes can contain."""
        most = (self.stop - self.start) * np.where(self.is_zlib, _MAXIMUM_NUMBERS_OF_BYTE, 2)
        counts = np.where((self.length > 0) & (self.length <= MAXIMUM_PEAKS), self.length * self.per_peak, 0)
        return int(np.minimum(counts, most).sum())

    def take(self, rows: NDArray[np.int64]) -> Arrays:
        """Return the arrays of the spectra `rows`, shape (m,)."""
        return Arrays(
            self.start[rows],
            self.stop[rows],
            self.dtype[rows],
            self.compression[rows],
            self.is_zlib[rows],
            self.length[rows],
            self.per_peak,
        )


@contextmanager
def limit_unpacking(n_numbers: int) -> Iterator[None]:
    """Hold a lock during the ``with`` block if many values are unpacked in it, since several large blocks would exhaust the memory.

    Parameters
    ----------
    n_numbers : int
        Number of values to unpack.
    """
    if n_numbers > _LARGE:
        with _UNPACKING_LOCK:
            yield
    else:
        yield


_UNPACKING_LOCK = threading.Lock()


def decode_arrays(text: NDArray[np.uint8], arrays: Arrays) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Decode one array for each of n spectra.

    Parameters
    ----------
    text : ndarray of uint8, shape (bytes,)
        Bytes of the block.
    arrays : Arrays
        Positions and encodings of the arrays.

    Returns
    -------
    values : ndarray of float64, shape (total,)
        Values of all arrays in order; an invalid array has none.
    offsets : ndarray of int64, shape (n + 1,)
        Values of array i are ``values[offsets[i]:offsets[i + 1]]``.
    issues : ndarray of int64, shape (n,)
        `IssueCode` of each array, 0 if it is valid.
    """
    n = len(arrays.start)
    issues = np.zeros(n, dtype=np.int64)
    absent = arrays.start < 0
    issues[absent & (arrays.length != 0)] = IssueCode.NO_ARRAY
    is_known = (arrays.compression != UNSUPPORTED) & ((arrays.dtype != "") | (arrays.compression != PLAIN))
    issues[~absent & ~is_known] = IssueCode.UNSUPPORTED
    issues[(issues == 0) & (arrays.length < 0)] = IssueCode.LENGTHS
    issues[(issues == 0) & (arrays.length > MAXIMUM_PEAKS)] = IssueCode.PEAKS
    skipped = absent | (issues != 0)
    starts, stops = np.where(skipped, 0, arrays.start), np.where(skipped, 0, arrays.stop)
    counts = np.where(skipped, 0, arrays.length) * arrays.per_peak

    data = np.empty(int(((stops - starts) * 3 // 4 + 3).sum()), dtype=np.uint8)
    ends = np.empty(n + 1, dtype=np.int64)
    is_valid = kernels.cpu.text.decode_base64(text, starts, stops, data, ends)
    issues[~is_valid] = IssueCode.BASE64
    width = np.array([4 if name.endswith("4") else 8 for name in arrays.dtype.tolist()], dtype=np.int64)
    if arrays.is_zlib.any():
        # Numpress takes at most five bytes for a number and sixteen at the start; no array is unpacked beyond its declared length.
        limits = np.where(arrays.compression == PLAIN, width * counts, 5 * counts + 32)
        data, ends, is_valid = _inflate(data, ends, arrays.is_zlib, limits)
        issues[~is_valid & (issues == 0)] = IssueCode.ZLIB
    n_bytes = np.diff(ends)
    fits = np.where(arrays.compression == PLAIN, n_bytes == width * counts, counts <= 2 * n_bytes)
    issues[~fits & (issues == 0)] = IssueCode.LENGTHS
    counts[issues != 0] = 0
    offsets = segment_offsets(counts)
    values = np.empty(offsets[-1])
    for run in _runs(arrays, issues, n_bytes):
        _unpack_run(data, ends, arrays, run, values[offsets[run.start] : offsets[run.stop]], offsets, issues)
    if (counts[issues != 0] > 0).any():
        # Unpacking may have shown that a numpress array is broken.
        owner = np.repeat(np.arange(n), counts)
        values = values[issues[owner] == 0]
        counts[issues != 0] = 0
        offsets = segment_offsets(counts)
    return values, offsets, issues


def _runs(arrays: Arrays, issues: NDArray[np.int64], n_bytes: NDArray[np.int64]) -> list[slice]:
    """Divide the spectra into segments that are unpacked together, and return these.

    A segment is a series of plain arrays of one dtype, or a single array with another encoding.
    """
    n = len(issues)
    if not n:
        return []
    is_plain = (arrays.compression == PLAIN) & ((issues == 0) | (n_bytes == 0))
    joins = is_plain[1:] & is_plain[:-1] & (arrays.dtype[1:] == arrays.dtype[:-1])
    borders = [0, *(np.flatnonzero(~joins) + 1).tolist(), n]
    return [slice(a, b) for a, b in pairwise(borders)]


def _unpack_run(
    data: NDArray[np.uint8],
    ends: NDArray[np.int64],
    arrays: Arrays,
    run: slice,
    out: NDArray[np.float64],
    offsets: NDArray[np.int64],
    issues: NDArray[np.int64],
) -> None:
    """Unpack the arrays of a segment into `out`, and set the issue of an invalid array."""
    if not len(out):
        return
    first, last = int(ends[run.start]), int(ends[run.stop])
    compression = arrays.compression[run.start]
    if compression == PLAIN:
        with np.errstate(invalid="ignore"):  # arbitrary bytes may form invalid numbers
            out[:] = np.frombuffer(data[first:last], dtype=str(arrays.dtype[run.start]))
        return
    if not _unpack_numpress(data[first:last], int(compression), out):
        issues[run.start] = IssueCode.NUMPRESS


def _unpack_numpress(data: NDArray[np.uint8], compression: int, out: NDArray[np.float64]) -> bool:
    """Decode MS-Numpress into `out`; return True if the bytes contain exactly ``len(out)`` numbers."""
    if compression == PIC:
        counts = np.empty(len(out), dtype=np.int64)
        if kernels.cpu.peaks.unpack_integers(data, 0, len(data), counts) != len(out):
            return False
        out[:] = counts
        return True
    if len(data) < 8:
        return False
    scale = float(np.frombuffer(data[:8], dtype=">f8")[0])
    if not scale > 0:
        return False
    if compression == SLOF:
        if len(data) != 8 + 2 * len(out):
            return False
        with np.errstate(over="ignore"):
            out[:] = np.exp(np.frombuffer(data[8:], dtype="<u2") / scale) - 1.0
        return True
    fixed = np.empty(len(out), dtype=np.int64)
    n_whole = min(2, len(out))
    if len(data) < 8 + 4 * n_whole:
        return False
    fixed[:n_whole] = np.frombuffer(data[8 : 8 + 4 * n_whole], dtype="<u4")
    if len(out) > 2:
        if kernels.cpu.peaks.unpack_integers(data, 16, len(data), fixed[2:]) != len(out) - 2:
            return False
        # Each number is stored as its difference from the line through the two previous numbers: sum twice.
        fixed[2] += fixed[1] - fixed[0]
        steps = np.cumsum(fixed[2:])
        fixed[2:] = fixed[1] + np.cumsum(steps)
    elif len(data) != 8 + 4 * n_whole:
        return False
    with np.errstate(over="ignore"):
        out[:] = fixed / scale
    return True


def _inflate(
    data: NDArray[np.uint8], ends: NDArray[np.int64], is_zlib: NDArray[np.bool_], limits: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """Unpack the arrays in `data` that are compressed with zlib.

    Returned are the bytes of all arrays, their boundaries in these bytes, and True for each array without an error. Unpacking an array
    stops one byte after its limit. zlib releases the GIL, so that the reader's threads unpack in parallel.
    """
    view = data.data
    bounds = ends.tolist()
    intact = np.ones(len(limits), dtype=np.bool_)
    arrays: list[bytes | memoryview] = []
    for i, (is_packed, limit) in enumerate(zip(is_zlib.tolist(), limits.tolist(), strict=True)):
        array: bytes | memoryview = view[bounds[i] : bounds[i + 1]]
        if is_packed and len(array):
            unpacker = zlib.decompressobj()
            try:
                array = unpacker.decompress(array, limit + 1)
                intact[i] = unpacker.eof or len(array) > limit
            except zlib.error:
                intact[i], array = False, b""
        arrays.append(array)
    inflated_ends = segment_offsets(np.array([len(array) for array in arrays], np.int64))
    return np.frombuffer(bytearray().join(arrays), dtype=np.uint8), inflated_ends, intact
