"""Counting of digested peptides on CPU threads; counterpart of `proteoscope.kernels.cuda.digestion`.

The enumeration, and functions that only the CPU has, are in `proteoscope.kernels.cpu.peptides`.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cpu.peptides import digest_proteins
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Partition, StopFlag
from proteoscope.kernels.digestion_layouts import DigestionRules, PeptideEntries

__all__ = ["count_peptides"]

_RESIDUES_BETWEEN_CHECKS = 1 << 16  # residues per thread between two checks for a cancel (some 10 ms in a non-specific digest)


def count_peptides(
    device: Processor,
    residues: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    bounds: NDArray[np.int64],
    rules: DigestionRules,
    counts: NDArray[np.int64],
) -> Generator[int, None, None]:
    """Add the number of peptides in each mass bucket to `counts`, for each range of proteins (pre-calculation of Li 2014).

    Parameters
    ----------
    bounds : (ranges + 1,) int64
        First protein of each range, followed by the end of the last range.
    counts : (ranges, buckets) int64
        Output; changed only when everything is counted.
    residues, offsets
        Residues and offsets of the proteins, see `proteoscope.kernels.cpu.peptides.digest_proteins`.

    Yields
    ------
    int
        Number of digested residues, a few times a second. Closing the generator stops the work and leaves `counts` unchanged.

    Raises
    ------
    DeviceError
        If the device fails or lacks memory for proteins and counts; `counts` is unchanged.
    """
    result = np.zeros_like(counts)
    every_bucket = np.arange(counts.shape[1])
    nothing = PeptideEntries.empty(0)

    def count(first: int, last: int, stop: StopFlag) -> None:
        for number in range(first, last):
            begun, end = int(bounds[number]), int(bounds[number + 1])
            while begun < end and not stop[0]:
                some = max(begun + 1, int(np.searchsorted(offsets, offsets[begun] + _RESIDUES_BETWEEN_CHECKS, side="right")) - 1)
                digest_proteins(residues, offsets, begun, min(some, end), rules, every_bucket, result[number], False, nothing)
                begun = some

    for number in device.run(count, [Partition(number, number + 1, 1.0) for number in range(len(counts))], 0):
        yield int(offsets[bounds[number]] - offsets[bounds[0]])
    counts += result
