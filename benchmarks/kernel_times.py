"""Seconds of each spectrum kernel on a GPU with synthetic inputs, for comparing two versions of the program.

    for tree in BEFORE AFTER; do (cd $tree && PYTHONPATH=. python AFTER/benchmarks/kernel_times.py); done

One JSON line for each workload: for each kernel the median time of the runs by the device's clock (concurrent batches slow each other
down), and a digest of all results, which is equal only for bit-identical results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from proteoscope.kernels.cuda.scoring import SpectrumSearch
from proteoscope.kernels.score_kinds import HYPERSCORE, KSDP, SDP, XCORR
from tests.shim.fragment_inputs import on_gpu, random_fragment_search
from tests.shim.search_inputs import empty_hits, random_search

_NAMES = {SDP: "dot product", KSDP: "kernel dot product", HYPERSCORE: "hyperscore", XCORR: "cross-correlation"}


def digest(*arrays: np.ndarray) -> str:
    """Return a digest of all bytes of arrays."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def spectra(gpu: Any, inputs: tuple[Any, ...]) -> str:
    """Search all spectra, and return a digest of the hits."""
    n = len(inputs[1].mass)
    hits = empty_hits(n)
    for _ in SpectrumSearch(gpu, *inputs[2:]).search_queries(*inputs[:2], hits, 0, n):
        pass
    return digest(*hits[:-1])


def fragments(gpu: Any, work: Any) -> str:
    """Build the fragment-ion index, search it, and return a digest of the answer."""
    answer, _ = on_gpu(gpu, work, 0.5)
    return digest(*answer.best, answer.histogram, answer.n_candidates)


def main() -> int:
    """Run all workloads."""
    from proteoscope.kernels.cuda.timing import TimedGpu

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--size", type=float, default=1.0, help="of the workloads")
    arguments = parser.parse_args()
    n, gpu = arguments.size, TimedGpu(0)
    workloads: list[tuple[str, Callable[[Any, Any], str], Any]] = []
    for score, name in _NAMES.items():
        made = random_search(score, score, n_queries=int(10_000 * n), n_peptides=int(300_000 * n), most=2)
        workloads.append((f"sparse, {name}", spectra, made))
    for score in (SDP, HYPERSCORE):
        made = random_search(
            10 + score,
            score,
            fragment=(0.5, 0.0),
            precursor=(3.0, 0.0),
            n_queries=int(8000 * n),
            n_peptides=int(60_000 * n),
            which=(0, 1),
            most=2,
        )
        workloads.append((f"dense, {_NAMES[score]}", spectra, made))
    made = random_fragment_search(20, HYPERSCORE, precursor=(500.0, 0.0), n_queries=int(3000 * n), n_peptides=int(300_000 * n), most=1)
    workloads.append(("index of fragments", fragments, made))
    for name, run, inputs in workloads:
        answer = run(gpu, inputs)  # compiles
        gpu.kernel_seconds()
        seconds: dict[str, list[float]] = {}
        for _ in range(arguments.repeats):
            assert run(gpu, inputs) == answer
            for kernel, kernel_seconds in gpu.kernel_seconds().items():
                seconds.setdefault(kernel, []).append(kernel_seconds)
        print(
            json.dumps(
                {"workload": name, "answer": answer, "seconds": {kernel: round(median(all_), 6) for kernel, all_ in seconds.items()}}
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
