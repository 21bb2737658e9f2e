"""Peak arrays of mzML and mzXML: base64, zlib and MS-Numpress undone for all spectra of a block at once."""

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
from proteoscope.engine.formats.spectrum_blocks import MAXIMUM_PEAKS, FaultCode

__all__ = ["LINEAR", "MAXIMUM_NUMBERS", "PIC", "PLAIN", "SLOF", "UNSUPPORTED", "Arrays", "decode_arrays", "room_for"]

# Compressions that may lie under zlib.
PLAIN, LINEAR, PIC, SLOF = range(4)
UNSUPPORTED = 9

MAXIMUM_NUMBERS = 4 * MAXIMUM_PEAKS
"""Of one block, two for each peak: a megabyte of text of arrays that are packed well unpacks to a tenth of it."""
_LARGE = MAXIMUM_NUMBERS // 8
_MAXIMUM_NUMBERS_OF_BYTE = 1032  # zlib packs no better, and numpress puts two numbers into a byte


@dataclass
class Arrays:
    """One array for each of n spectra, as the file has it.

    Attributes
    ----------
    start, stop : (n,) int64, the bytes of the block where its base64 text is; start -1: there is no such array.
    dtype : n NumPy dtypes as text (``<f4``), empty where the file does not say.
    compression : (n,) int64, one of the constants above; is_zlib : (n,) bool, whether zlib comes on top.
    length : (n,) int64, the number of peaks it should have, -1: unknown.
    per_peak : numbers in the array for each peak: 2 where m/z and intensity come in turn.
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
        """How many numbers there may be to unpack: what the file says, as far as its bytes can hold so many."""
        most = (self.stop - self.start) * np.where(self.is_zlib, _MAXIMUM_NUMBERS_OF_BYTE, 2)
        counts = np.where((self.length > 0) & (self.length <= MAXIMUM_PEAKS), self.length * self.per_peak, 0)
        return int(np.minimum(counts, most).sum())

    def of(self, rows: NDArray[np.int64]) -> Arrays:
        """The arrays of some spectra."""
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
def room_for(n_numbers: int) -> Iterator[None]:
    """Unpack so many numbers: more than some hundred thousand in one thread at a time, since in all of them they would fill the memory."""
    if n_numbers > _LARGE:
        with _ONE_AT_A_TIME:
            yield
    else:
        yield


_ONE_AT_A_TIME = threading.Lock()


def decode_arrays(text: NDArray[np.uint8], arrays: Arrays) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Decode one array for each of n spectra.

    Parameters
    ----------
    text : (bytes,) uint8, the block.
    arrays : where the arrays are and what they are.

    Returns
    -------
    values : float64, end to end; offsets : (n + 1,) int64; a broken array has none. faults : (n,) int64, `FaultCode`.
    """
    n = len(arrays.start)
    faults = np.zeros(n, dtype=np.int64)
    absent = arrays.start < 0
    faults[absent & (arrays.length != 0)] = FaultCode.NO_ARRAY
    is_known = (arrays.compression != UNSUPPORTED) & ((arrays.dtype != "") | (arrays.compression != PLAIN))
    faults[~absent & ~is_known] = FaultCode.UNSUPPORTED
    faults[(faults == 0) & (arrays.length < 0)] = FaultCode.LENGTHS
    faults[(faults == 0) & (arrays.length > MAXIMUM_PEAKS)] = FaultCode.PEAKS
    skipped = absent | (faults != 0)
    starts, stops = np.where(skipped, 0, arrays.start), np.where(skipped, 0, arrays.stop)
    counts = np.where(skipped, 0, arrays.length) * arrays.per_peak

    data = np.empty(int(((stops - starts) * 3 // 4 + 3).sum()), dtype=np.uint8)
    ends = np.empty(n + 1, dtype=np.int64)
    sound = kernels.cpu.text.decode_base64(text, starts, stops, data, ends)
    faults[~sound] = FaultCode.BASE64
    width = np.array([4 if name.endswith("4") else 8 for name in arrays.dtype.tolist()], dtype=np.int64)
    if arrays.is_zlib.any():
        # Numpress takes at most five bytes for a number and sixteen at the start; so no array may unpack to more than it should have.
        most = np.where(arrays.compression == PLAIN, width * counts, 5 * counts + 32)
        data, ends, sound = _inflate(data, ends, arrays.is_zlib, most)
        faults[~sound & (faults == 0)] = FaultCode.ZLIB
    n_bytes = np.diff(ends)
    fits = np.where(arrays.compression == PLAIN, n_bytes == width * counts, counts <= 2 * n_bytes)
    faults[~fits & (faults == 0)] = FaultCode.LENGTHS
    counts[faults != 0] = 0
    offsets = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    values = np.empty(offsets[-1])
    for run in _runs(arrays, faults, n_bytes):
        _unpack_run(data, ends, arrays, run, values[offsets[run.start] : offsets[run.stop]], offsets, faults)
    if (counts[faults != 0] > 0).any():
        # An array of numpress showed itself broken while it was unpacked.
        owner = np.repeat(np.arange(n), counts)
        values = values[faults[owner] == 0]
        counts[faults != 0] = 0
        np.cumsum(counts, out=offsets[1:])
    return values, offsets, faults


def _runs(arrays: Arrays, faults: NDArray[np.int64], n_bytes: NDArray[np.int64]) -> list[slice]:
    """Runs of spectra whose arrays can be unpacked at once: plain ones of one type end to end; each other array is a run."""
    n = len(faults)
    if not n:
        return []
    is_plain = (arrays.compression == PLAIN) & ((faults == 0) | (n_bytes == 0))
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
    faults: NDArray[np.int64],
) -> None:
    """Unpack the arrays of a run into `out`."""
    if not len(out):
        return
    first, last = int(ends[run.start]), int(ends[run.stop])
    compression = arrays.compression[run.start]
    if compression == PLAIN:
        with np.errstate(invalid="ignore"):  # bytes of all sorts are taken for numbers
            out[:] = np.frombuffer(data[first:last], dtype=str(arrays.dtype[run.start]))
        return
    if not _unpack_numpress(data[first:last], int(compression), out):
        faults[run.start] = FaultCode.NUMPRESS


def _unpack_numpress(data: NDArray[np.uint8], compression: int, out: NDArray[np.float64]) -> bool:
    """Undo MS-Numpress; whether the bytes hold exactly the numbers for `out`."""
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
        # Each number is told by how far it lies from the line through the two before: sum the steps, then the numbers.
        fixed[2] += fixed[1] - fixed[0]
        steps = np.cumsum(fixed[2:])
        fixed[2:] = fixed[1] + np.cumsum(steps)
    elif len(data) != 8 + 4 * n_whole:
        return False
    with np.errstate(over="ignore"):
        out[:] = fixed / scale
    return True


def _inflate(
    data: NDArray[np.uint8], ends: NDArray[np.int64], is_zlib: NDArray[np.bool_], most: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """Unpack the zlib arrays among those that lie end to end in `data`; more than `most` bytes of one (and one) are never made.

    zlib releases the interpreter lock, so that the threads of the reader unpack side by side.
    """
    view = data.data
    bounds = ends.tolist()
    intact = np.ones(len(most), dtype=np.bool_)
    pieces: list[bytes | memoryview] = []
    for i, (is_packed, limit) in enumerate(zip(is_zlib.tolist(), most.tolist(), strict=True)):
        piece: bytes | memoryview = view[bounds[i] : bounds[i + 1]]
        if is_packed and len(piece):
            unpacker = zlib.decompressobj()
            try:
                piece = unpacker.decompress(piece, limit + 1)
                intact[i] = unpacker.eof or len(piece) > limit
            except zlib.error:
                intact[i], piece = False, b""
        pieces.append(piece)
    inflated_ends = np.zeros(len(ends), dtype=np.int64)
    np.cumsum([len(piece) for piece in pieces], out=inflated_ends[1:])
    return np.frombuffer(bytearray().join(pieces), dtype=np.uint8), inflated_ends, intact
