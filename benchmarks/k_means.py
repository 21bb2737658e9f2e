"""k-means on the CPU compared with scikit-learn: one JSON line for each figure.

    python -m benchmarks.k_means --data FOLDER [--spectra 38252] [--centroids 3226] [--rounds 100] [--pairs 3] [--threads N]

FOLDER is the unpacked test data. The vectors are the spectra of FOLDER/clustering/massbank_esi_ms2.mgf: square roots of intensities in
10,800 bins from 50 to 2,000 thomson, scaled to the length 1,024 and rounded; if there are too few spectra, they are repeated. Both programs
start with the same spectra as centroids, selected at random. scikit-learn gets the same integers as CSR in float64, `algorithm="lloyd"`,
and no tolerance. Both compute the same number of rounds, or stop when no label changes. Then uniform random points of 2, 8 and 34
dimensions are clustered.

`seconds` is the median of the pairs of runs, in which the programs take turns; `inertia` is relative to that of scikit-learn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import emit, existing
from proteoscope.engine.clustering.k_means import Clusters, Points, Vectors, k_means
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.formats.reading import read_spectra
from proteoscope.kernels.clustering_layouts import UNIT_LENGTH, VectorArrays, VectorSums
from tests.engine.clustering.inertia import dense, inertia

__all__ = ["BINS", "seeded", "spectrum_vectors"]

BINS = 10_800
_FIRST_MZ, _LAST_MZ = 50.0, 2000.0


def spectrum_vectors(folder: Path, n: int) -> VectorArrays:
    """Return vectors of n spectra of the test data."""
    spectra = read_spectra([existing(folder / "clustering" / "massbank_esi_ms2.mgf")])
    rows = np.repeat(np.arange(len(spectra)), np.diff(spectra.offsets))
    bins = ((spectra.mz - _FIRST_MZ) / (_LAST_MZ - _FIRST_MZ) * BINS).astype(np.int64)
    is_in = (spectra.mz >= _FIRST_MZ) & (bins < BINS)
    keys, places = np.unique(rows[is_in] * BINS + bins[is_in], return_inverse=True)
    heights = np.bincount(places, np.sqrt(spectra.intensity[is_in].astype(np.float64)))
    lengths = np.sqrt(np.bincount(keys // BINS, heights * heights, minlength=len(spectra)))
    weights = np.rint(heights / lengths[keys // BINS] * UNIT_LENGTH).astype(np.int16)
    keys, weights = keys[weights > 0], weights[weights > 0]
    counts = np.bincount(keys // BINS, minlength=len(spectra))
    starts = np.concatenate(([0], np.cumsum(counts)))
    chosen = np.flatnonzero(counts)[np.arange(n) % np.count_nonzero(counts)]
    offsets = np.concatenate(([0], np.cumsum(counts[chosen])))
    elements = np.arange(offsets[-1]) + np.repeat(starts[chosen] - offsets[:-1], counts[chosen])
    return VectorArrays(offsets, (keys[elements] % BINS).astype(np.int32), weights[elements])


def seeded(data: Vectors, k: int) -> Any:
    """Return k random, distinct vectors as centroids."""
    offsets, bins = data.vectors.offsets, data.vectors.bins
    first: dict[bytes, int] = {}
    for item, (begin, end) in enumerate(pairwise(offsets.tolist())):
        first.setdefault(bins[begin:end].tobytes() + data.vectors.weights[begin:end].tobytes(), item)
    return data.centroids_at(np.random.default_rng(0).choice(list(first.values()), k, replace=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--spectra", type=int, default=38_252)
    parser.add_argument("--centroids", type=int, default=3_226)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=available_threads())
    options = parser.parse_args()
    about = {"date": date.today().isoformat(), "machine": processor().description, "threads": options.threads}
    executor = Executor(Resources(options.threads))

    vectors = Vectors(spectrum_vectors(options.data, options.spectra), BINS)
    given = seeded(vectors, options.centroids)
    matrix, centroids = sparse(vectors, given)
    size = {"items": "spectra", "n": len(vectors), "elements": len(vectors.vectors.bins), "bins": BINS, "k": options.centroids}
    k_means(executor, vectors, given, rounds=1)  # compiled before it is measured
    compare(
        about | size | {"rounds": options.rounds},
        options.pairs,
        lambda: k_means(executor, vectors, given, rounds=options.rounds),
        matrix,
        centroids,
    )
    for d, k in ((2, 100), (8, 400), (34, 32)):
        values = np.random.default_rng(d).random((options.points, d), np.float32)
        points = Points(values)
        k_means(executor, points, values[:k], rounds=1)
        size = {"items": "points", "n": len(points), "d": d, "k": k, "rounds": 20}
        compare(
            about | size,
            options.pairs,
            lambda points=points, first=values[:k]: k_means(executor, points, first, rounds=20),  # type: ignore[misc]
            values,
            values[:k],
        )


def sparse(data: Vectors, given: Any) -> tuple[Any, NDArray[np.float64]]:
    """Return vectors and centroids for scikit-learn."""
    from scipy.sparse import csr_matrix

    vectors, k = data.vectors, len(given.counts)
    centroids = np.zeros((BINS, k))
    centroids.reshape(-1)[given.keys] = given.sums
    return csr_matrix((vectors.weights.astype(np.float64), vectors.bins, vectors.offsets), (len(data), BINS)), centroids.T.copy()


def compare(about: dict[str, Any], pairs: int, ours: Any, values: Any, centroids: NDArray) -> None:
    """Run both programs in turn, and print their figures."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    mine, its = list[float](), list[float]()
    clusters: Clusters | None = None
    for _ in range(pairs):
        began = time.perf_counter()
        clusters = ours()
        mine.append(time.perf_counter() - began)
        began = time.perf_counter()
        with warnings.catch_warnings(), threadpool_limits(about["threads"]):
            warnings.simplefilter("ignore")
            theirs = KMeans(len(centroids), init=centroids, n_init=1, max_iter=about["rounds"], tol=0.0, algorithm="lloyd").fit(values)
        its.append(time.perf_counter() - began)
    assert clusters is not None
    means = dense(clusters.centroids, BINS) if isinstance(clusters.centroids, VectorSums) else clusters.centroids
    figures = {"pairs": pairs, "inertia": round(inertia(values, clusters.labels, means) / theirs.inertia_, 6)}
    emit(about, program="proteoscope", seconds=round(float(np.median(mine)), 2), rounds_done=clusters.rounds, **figures)
    emit(about, program="scikit-learn", seconds=round(float(np.median(its)), 2), rounds_done=int(theirs.n_iter_), pairs=pairs)


if __name__ == "__main__":
    main()
