"""Speed of clustering vectors on a GPU and on the CPU, by size and by stage, and whether their clusters are identical.

    python -m benchmarks.vector_clustering_gpu [--spectra FILE.npz] [--copies 1 25 640] [--device 0] [--part 100000]

The vectors are spectra, each copied `--copies` times with other intensities, fewer peaks, and a precursor error of some ppm. `--spectra` is
a file with their columns: `pm` precursor m/z, `ch` charge, `off` offsets, `mz` and `it` peaks; without it, 40,000 random spectra are
created. Intensities are square roots in bins of 0.05, windows 20 ppm wide.

One JSON line for each size and linkage: vectors, window pairs, islands; seconds of the first run and of the second; seconds of a third run,
which waits for the GPU after each call, by kernel, transfer, and work of the host; seconds of the CPU for about `--part` vectors, and
whether the labels of these vectors are the same.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.engine.execution.resources import available_threads
from proteoscope.kernels.clustering_layouts import AVERAGE, COMPLETE, SINGLE, UNIT_LENGTH, Linkage, VectorArrays, islands, window_pairs
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.vector_clustering import VectorClustering as OnProcessor
from proteoscope.kernels.cuda.modules import open_gpu
from proteoscope.kernels.cuda.vector_clustering import VectorClustering as OnGpu

_WIDTH, _MINIMUM_MZ, _MAXIMUM_MZ = 0.05, 50.0, 2000.0
_PPM, _JITTER_PPM = 20.0, 2.0
_LINKAGES = {
    "single": Linkage(SINGLE, 0.6),
    "dbscan": Linkage(SINGLE, 0.6, 5),
    "complete": Linkage(COMPLETE, 0.6),
    "average": Linkage(AVERAGE, 0.6),
}


class TimedGpu:
    """GPU that is synchronised after each call, and sums the seconds of each kind of call."""

    def __init__(self, gpu: Any) -> None:
        self._gpu, self.seconds = gpu, defaultdict[str, float](float)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gpu, name)

    def _timed(self, stage: str, stream: Any, call: Any, *arguments: Any, **options: Any) -> None:
        began = time.perf_counter()
        call(*arguments, **options)
        self._gpu.wait(stream)
        self.seconds[stage] += time.perf_counter() - began

    def launch(self, file: str, kernel: str, blocks: int, threads: int, arguments: Any, stream: Any, **options: Any) -> None:
        self._timed(kernel, stream, self._gpu.launch, file, kernel, blocks, threads, arguments, stream, **options)

    def upload(self, buffer: Any, values: NDArray, stream: Any, *, offset: int = 0) -> None:
        self._timed("upload", stream, self._gpu.upload, buffer, values, stream, offset=offset)

    def download(self, values: NDArray, buffer: Any, stream: Any, *, offset: int = 0) -> None:
        self._timed("download", stream, self._gpu.download, values, buffer, stream, offset=offset)

    def clear(self, buffer: Any, n_bytes: int, stream: Any) -> None:
        self._timed("clear", stream, self._gpu.clear, buffer, n_bytes, stream)


def random_spectra(n: int) -> tuple[NDArray[np.float64], VectorArrays]:
    """Return positions in the order of m/z, and vectors of compounds with several spectra each."""
    rng = np.random.default_rng(0)
    compounds, elements = n // 5, 27
    mass = rng.integers(100, 1200, compounds) * 1.0005 + rng.normal(0, 0.03, compounds)
    bins = rng.integers(0, int(_MAXIMUM_MZ / _WIDTH), (compounds, elements))
    of = np.sort(rng.integers(0, compounds, n))
    of = of[np.argsort(mass[of], kind="stable")]
    rows = np.sort(bins[of], axis=1)
    is_first = np.diff(rows, axis=1, prepend=-1) > 0
    weights = np.clip(rng.exponential(150.0, rows.shape), 1, UNIT_LENGTH).astype(np.int16)
    offsets = np.concatenate(([0], np.cumsum(is_first.sum(axis=1)))).astype(np.int64)
    return mass[of], VectorArrays(offsets, rows[is_first].astype(np.int32), weights[is_first])


def read_spectra(path: Path) -> tuple[NDArray[np.float64], VectorArrays]:
    """Return positions (ordered by the sign of the charge, then by m/z), and vectors of the square roots of intensities."""
    with np.load(path) as columns:
        pm, charge, off, mz, intensity = (columns[name] for name in ("pm", "ch", "off", "mz", "it"))
    places = np.sign(charge) * 1e5 + pm
    order = np.argsort(places, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    row = np.repeat(rank, np.diff(off))
    is_selected = (mz >= _MINIMUM_MZ) & (mz < _MAXIMUM_MZ) & (intensity > 0)
    keys, where = np.unique(row[is_selected] << 32 | (mz[is_selected] / _WIDTH).astype(np.int64), return_inverse=True)
    roots = np.sqrt(np.bincount(where, intensity[is_selected]))
    of = keys >> 32
    weights = np.floor(roots / np.sqrt(np.bincount(of, roots**2, minlength=len(order)))[of] * UNIT_LENGTH + 0.5).astype(np.int16)
    has_weight = weights > 0
    offsets = np.concatenate(([0], np.cumsum(np.bincount(of[has_weight], minlength=len(order))))).astype(np.int64)
    return places[order], VectorArrays(offsets, (keys & 0xFFFFFFFF)[has_weight].astype(np.int32), weights[has_weight])


@njit
def _perturbed(rng, offsets, bins, weights, sources, new_offsets, new_bins, new_weights):
    """Write copies of vectors without some elements, and with other elements stronger or weaker."""
    end = 0
    for k in range(len(sources)):
        begin, spread, square = end, 0.5 * rng.random(), 0.0
        for e in range(offsets[sources[k]], offsets[sources[k] + 1]):
            if rng.random() < 0.1:
                continue
            weight = weights[e] * np.exp(spread * rng.normal())
            square += weight * weight
            new_bins[end], new_weights[end] = bins[e], min(weight, 30_000.0)
            end += 1
        for e in range(begin, end):
            new_weights[e] = max(1, int(min(1.0, new_weights[e] / np.sqrt(square)) * UNIT_LENGTH + 0.5))
        new_offsets[k + 1] = end
    return end


def copied(places: NDArray[np.float64], vectors: VectorArrays, copies: int) -> tuple[VectorArrays, NDArray[np.int64]]:
    """Return `copies` copies of each vector in the order of position, and the end of the window of each."""
    rng, n = np.random.default_rng(2), len(places)
    masses = places - np.where(places > 5e4, 1e5, np.where(places < -5e4, -1e5, 0.0))
    everywhere = np.concatenate([places + masses * rng.normal(0, _JITTER_PPM * 1e-6, n) for _ in range(copies)])
    order = np.argsort(everywhere)
    everywhere, width = everywhere[order], (_PPM * 1e-6 * np.tile(masses, copies))[order]
    ends = np.maximum.accumulate(np.searchsorted(everywhere, everywhere + width, side="right"))
    sources, space = order % n, copies * len(vectors.bins)
    offsets, bins, weights = np.zeros(copies * n + 1, np.int64), np.empty(space, np.int32), np.empty(space, np.int16)
    end = _perturbed(rng, *vectors, sources, offsets, bins, weights)
    return VectorArrays(offsets, bins[:end], weights[:end]), np.maximum(ends, np.arange(1, len(ends) + 1)).astype(np.int64)


def seconds_of(search: Any, linkage: Linkage, labels: NDArray[np.int64], last: int | None = None) -> float:
    began = time.perf_counter()
    for _ in search.cluster(linkage, labels, 0, last):
        pass
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spectra", type=Path, metavar="FILE.npz")
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 25, 640])
    parser.add_argument("--linkages", nargs="+", choices=list(_LINKAGES), default=list(_LINKAGES))
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--part", type=int, default=100_000)
    options = parser.parse_args()
    places, vectors = read_spectra(options.spectra) if options.spectra else random_spectra(40_000)
    processor = Processor(available_threads())
    for copies in options.copies:
        many, ends = copied(places, vectors, copies)
        cuts, pairs = islands(ends), window_pairs(ends)
        last = int(cuts[np.searchsorted(cuts, min(options.part, len(ends)))])
        for name in options.linkages:
            linkage, labels, again, part = _LINKAGES[name], *(np.full(len(ends), -1) for _ in range(3))
            seconds = [seconds_of(OnGpu(open_gpu(options.device), many, ends), linkage, labels) for _ in range(2)]
            timed = TimedGpu(open_gpu(options.device))
            whole = seconds_of(OnGpu(timed, many, ends), linkage, again)  # type: ignore[arg-type]
            stages = {stage: round(seconds, 4) for stage, seconds in sorted(timed.seconds.items(), key=lambda item: -item[1])}
            on_processor = seconds_of(OnProcessor(processor, many, ends), linkage, part, last)
            sizes = np.bincount(labels)
            print(
                json.dumps(
                    {
                        "linkage": name,
                        "copies": copies,
                        "vectors": len(ends),
                        "elements": len(many.bins),
                        "pairs": int(pairs.sum()),
                        "islands": len(cuts) - 1,
                        "largest_island": int(np.diff(cuts).max()),
                        "clusters": int((sizes > 0).sum()),
                        "largest_cluster": int(sizes.max()),
                        "first_s": round(seconds[0], 3),
                        "second_s": round(seconds[1], 3),
                        "stages_s": {**stages, "host": round(whole - sum(timed.seconds.values()), 4)},
                        "part": last,
                        "part_pairs": int(pairs[:last].sum()),
                        "processor_s": round(on_processor, 3),
                        "threads": processor.threads,
                        "same_again": bool(np.array_equal(labels, again)),
                        "same_as_processor": bool(np.array_equal(labels[:last], part[:last])),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
