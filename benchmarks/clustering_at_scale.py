"""Time to cluster many millions of spectra, from columns to a project's tables, on GPUs or the CPU.

    python -m benchmarks.clustering_at_scale --data FOLDER [--copies 640] [--device auto] [--tables]

Each spectrum of MassBank is copied `--copies` times. Every copy has perturbed intensities (factors of 2^N(0, 0.4)), a tenth of its peaks
removed, and errors of 3 ppm in m/z and 2 ppm in the precursor (standard deviations). The copies are created as columns before the clock
starts. One JSON line: numbers of spectra and peaks; seconds of making vectors, grouping, describing clusters and writing the tables (with
``--tables``), and their total; number of clusters, their agreement with the labels, and peak resident memory.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit

from benchmarks.clustering import labelled
from benchmarks.figures import emit
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.clustering.quality import cluster_quality
from proteoscope.engine.clustering.results import described_clusters, write_clusters
from proteoscope.engine.clustering.search import compute_clusters, plan_groups, score_groups
from proteoscope.engine.execution.device_lookup import open_gpus
from proteoscope.engine.execution.devices import resolve_device
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import spectrum_vectors

_SHARE_OF_PEAKS, _FACTOR, _PPM, _PRECURSOR_PPM = 0.9, 0.4, 3.0, 2.0


@njit(nogil=True, cache=True)
def _copied(offsets, mz, intensity, random, copies, seed, out_offsets, out_mz, out_intensity):
    """Fill the peaks of all copies and return their number."""
    at, n, state = 0, len(offsets) - 1, np.uint64(seed)
    factor, more, most = np.uint64(6364136223846793005), np.uint64(1442695040888963407), np.uint64(len(random) - 1)
    for copy in range(copies):
        for s in range(n):
            begin = at
            for i in range(offsets[s], offsets[s + 1]):
                state = state * factor + more  # Knuth's MMIX; its high bits are random
                if copy == 0 or (state >> np.uint64(40)) < _SHARE_OF_PEAKS * (1 << 24):
                    state = state * factor + more
                    a, b = random[(state >> np.uint64(20)) & most], random[(state >> np.uint64(44)) & most]
                    out_mz[at] = mz[i] * (1.0 + (1e-6 * _PPM * a if copy else 0.0))
                    out_intensity[at] = intensity[i] * (2.0 ** (_FACTOR * b) if copy else 1.0)
                    at += 1
            for i in range(begin + 1, at):  # two near peaks may have changed places
                for k in range(i, begin, -1):
                    if out_mz[k] >= out_mz[k - 1]:
                        break
                    out_mz[k], out_mz[k - 1] = out_mz[k - 1], out_mz[k]
                    out_intensity[k], out_intensity[k - 1] = out_intensity[k - 1], out_intensity[k]
            out_offsets[copy * n + s + 1] = at
    return at


def repeated(spectra: Spectra, copies: int, seed: int = 1) -> Spectra:
    """Return `copies` copies of each spectrum; the first is unchanged."""
    random, n = np.random.default_rng(seed), len(spectra)
    offsets = np.zeros(copies * n + 1, np.int64)
    mz, intensity = np.empty(copies * len(spectra.mz)), np.empty(copies * len(spectra.mz), np.float32)
    n_peaks = _copied(spectra.offsets, spectra.mz, spectra.intensity, random.normal(size=1 << 16), copies, seed, offsets, mz, intensity)
    precursor = np.tile(spectra.precursor_mz, copies)
    precursor[n:] *= 1.0 + 1e-6 * _PRECURSOR_PPM * random.normal(size=len(precursor) - n)
    every = {name: np.tile(getattr(spectra, name), copies) for name in ("file", "scan", "index", "retention_time", "charge_mask")}
    return replace(
        spectra,
        **every,
        identifier=spectra.identifier * copies,
        precursor_mz=precursor,
        precursor_intensity=np.tile(spectra.precursor_intensity, copies),
        offsets=offsets,
        mz=mz[:n_peaks],
        intensity=intensity[:n_peaks],
    )


def main() -> None:
    """Print the line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the unpacked test data")
    parser.add_argument("--copies", type=int, default=640)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--maximum-distance", type=float, default=0.3)
    options = parser.parse_args()
    original, labels, _ = labelled(options.data / "clustering", "massbank_esi_ms2", "inchikey")
    parameters = ClusteringParameters().changed(maximum_distance=options.maximum_distance)
    device = resolve_device(options.device)
    progress = Progress()
    resources = Resources(gpus=open_gpus(device, progress), with_processor=device.with_processor, progress=progress)
    small = repeated(original, 2)
    compute_clusters(small, parameters, resources)  # compiled before
    spectra = repeated(original, options.copies)
    print(f"{len(spectra):,} spectra are made", file=sys.stderr, flush=True)
    seconds, began = {}, time.perf_counter()

    def lap(name: str) -> None:
        seconds[name] = round(time.perf_counter() - began - sum(seconds.values()), 2)
        print(f"{name}: {seconds[name]} s", file=sys.stderr, flush=True)

    vectors = spectrum_vectors(spectra, parameters, resources)
    lap("vectors")
    scores = score_groups(plan_groups(vectors, parameters, resources), parameters, resources)
    lap("grouping")
    clusters = described_clusters(vectors, scores, spectra, parameters, resources)
    lap("describing")
    if options.tables:
        with tempfile.TemporaryDirectory() as name, Project.create_or_open(Path(name) / "p").run("cluster", {}, version="") as run:
            write_clusters(run, clusters, spectra, None, None, parameters, resources, lambda work: partial(work, progress))
        lap("tables")
    total = time.perf_counter() - began
    quality = cluster_quality(clusters.cluster, np.tile(labels, options.copies))
    emit(
        {"what": "clustering at scale", "spectra": len(spectra), "peaks": len(spectra.mz), "device": resources.used},
        threads=resources.threads,
        seconds=seconds,
        total=round(total, 2),
        clusters=len(clusters.groups),
        clustered=round(quality.clustered, 4),
        incorrect=round(quality.incorrect, 4),
        completeness=round(quality.completeness, 4),
        memory_gb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 1),
    )


if __name__ == "__main__":
    main()
