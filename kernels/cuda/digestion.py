"""Counting of the peptides of a digest on a GPU; counterpart of `proteoscope.kernels.cpu.digestion`, with the kernel of digestion.cu.

`proteoscope.kernels.counts.digest_count` gives the number of operations.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cuda.modules import Gpu
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.digestion_layouts import DigestionRules

__all__ = ["count_peptides"]

_FILE = "digestion.cu"
_THREADS = 256
_RESIDUES_OF_ROUND = 1 << 26

_LIMITS = np.dtype(
    [
        ("residue_mass", np.int64, 26),
        *[
            (name, np.int64)
            for name in (
                "terminal_mass",
                "minimum_mass",
                "maximum_mass",
                "bucket_width",
                "required_ends",
                "maximum_missed",
                "minimum_length",
                "maximum_length",
                "clip_methionine",
                "n_proteins",
                "n_shares",
                "n_buckets",
            )
        ],
    ]
)
"""Layout of the struct Limits in digestion.cu."""


def count_peptides(
    device: Gpu,
    residues: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    bounds: NDArray[np.int64],
    rules: DigestionRules,
    counts: NDArray[np.int64],
) -> Generator[int, None, None]:
    """Count the peptides of a digest on a GPU.

    Parameters are those of `proteoscope.kernels.cpu.digestion.count_peptides`. Yields the number of processed residues after each batch. A
    range of proteins may have at most 2^32 - 1 peptides in a bucket.

    Raises
    ------
    DeviceError
        If the GPU fails or lacks memory for proteins and counts; `counts` is unchanged.
    """
    first, last = int(offsets[bounds[0]]), int(offsets[bounds[-1]])
    limits = np.zeros(1, _LIMITS)
    sizes = {"n_proteins": len(offsets) - 1, "n_shares": len(counts), "n_buckets": counts.shape[1]}
    for name, value in (rules._asdict() | sizes).items():
        if name != "cleaves":
            limits[name] = value
    gpu, stream = device, device.stream()
    result = np.zeros(counts.shape, np.uint32)
    device_counts = gpu.buffer(result.nbytes)
    host = {"limits": limits, "residues": residues, "offsets": offsets, "bounds": bounds, "cleaves": rules.cleaves.astype(np.uint8)}
    inputs = sent(gpu, host, stream)
    gpu.clear(device_counts, result.nbytes, stream)
    for begin in range(first, last, _RESIDUES_OF_ROUND):
        end = min(last, begin + _RESIDUES_OF_ROUND)
        arguments = (*inputs.values(), np.int64(begin), np.int64(end), device_counts)
        gpu.launch(_FILE, "count_peptides", -(-(end - begin) // _THREADS), _THREADS, arguments, stream)
        gpu.wait(stream)
        yield end - first
    gpu.download(result, device_counts, stream)
    gpu.wait(stream)
    counts += result
