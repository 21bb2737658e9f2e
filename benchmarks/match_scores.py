"""Speed of match scores on the CPU by implementation: one JSON line for each figure.

    python -m benchmarks.match_scores [--threads 2] [--shapes published spectra peptides] [--queries N] [--candidates N] [--repeats 3]

Shapes (`--queries` and `--candidates` replace their numbers):

* published: 500 queries and 1,000 candidates of 200 random residues, masses in whole daltons, a shift of 10 to 50 Da planted at a random
  place of each (Carroll's thesis, section 6.5); all scores.
* spectra: the same lists, 10,000 queries and 1,000,000 candidates; the best candidate of each query, whatever the shift.
* peptides: 10,000 queries of 75 peaks, each with its complement, and 10,000,000 candidates of 10 to 30 residues, in units of 0.01 Da; the
  best 20 within +-500 Da.

`lists` and `vector` are the methods of the thesis on one thread. They are measured with as many queries as take a second; `seconds` is
scaled to all queries. `index` is `MatchScores` on all threads, `building_s` the time to build the index, and `bytes` its size. `best` is
the sum of the best scores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import emit
from proteoscope.engine.matches.synthetic_workload import RESIDUE_MASSES
from proteoscope.kernels.cpu.match_score_variants import score_by_lists, score_by_vector
from proteoscope.kernels.cpu.match_scores import MatchScores
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import stop_flag
from proteoscope.kernels.match_score_layouts import MassLists, candidate_ranges

__all__ = ["SHAPES", "Shape", "peptide_lists", "residue_lists"]

_WATER = 18.01056
_PEPTIDES_AT_ONCE = 1_000_000


class Shape(NamedTuple):
    """Lists that are searched. `window` in units; `top` candidates of each query, 0: all scores."""

    queries: MassLists
    candidates: MassLists
    window: tuple[int, int]
    top: int


def residue_lists(rng: np.random.Generator, n: int, length: int = 200) -> MassLists:
    """Return prefix masses of random residues in whole daltons, with a shift planted in each; in order of precursor."""
    steps = np.rint(RESIDUE_MASSES).astype(np.int32)[rng.integers(0, 20, (n, length + 1), np.int8)]
    steps[np.arange(n), rng.integers(0, length, n)] += rng.integers(10, 51, n).astype(np.int32)
    masses = np.cumsum(steps, axis=1, dtype=np.int32)
    masses = masses[np.argsort(masses[:, -1], kind="stable")]
    return MassLists(np.arange(n + 1, dtype=np.int64) * length, masses[:, :-1].ravel(), masses[:, -1].copy())


def peptide_lists(rng: np.random.Generator, n: int, units: float = 100.0) -> MassLists:
    """Return prefix masses of peptides of 10 to 30 random residues in units of 1 / `units` Da; in order of precursor."""
    parts = [_some_peptides(rng, min(_PEPTIDES_AT_ONCE, n - begin), units) for begin in range(0, n, _PEPTIDES_AT_ONCE)]
    masses, precursors = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
    lengths = np.concatenate([part[2] for part in parts])
    starts, order = np.cumsum(lengths) - lengths, np.argsort(precursors, kind="stable")
    ends = np.concatenate(([0], np.cumsum(lengths[order])))
    ordered = np.empty_like(masses)
    for begin in range(0, n, _PEPTIDES_AT_ONCE):
        some = order[begin : begin + _PEPTIDES_AT_ONCE]
        first, last = ends[begin], ends[begin + len(some)]
        ordered[first:last] = masses[np.repeat(starts[some] - ends[begin : begin + len(some)], lengths[some]) + np.arange(first, last)]
    return MassLists(ends, ordered, precursors[order])


def _some_peptides(rng: np.random.Generator, n: int, units: float) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return masses, precursors, and the number of masses of each, unordered."""
    lengths = rng.integers(10, 31, n)
    ends = np.cumsum(lengths)
    total = np.concatenate(([0.0], np.cumsum(RESIDUE_MASSES[rng.integers(0, 20, ends[-1], np.int8)])))
    before = total[ends - lengths]
    precursors = np.rint((total[ends] - before + _WATER) * units).astype(np.int32)
    masses = np.rint((total[1:] - np.repeat(before, lengths)) * units).astype(np.int32)
    return np.delete(masses, ends - 1), precursors, lengths - 1  # all but the whole peptide


def _peak_lists(rng: np.random.Generator, candidates: MassLists, n: int, peaks: int = 75) -> MassLists:
    """Return spectra of candidates with a shift of up to 500 Da at a place: two of three ions, and noise; each peak with its complement."""
    lists, precursors = [], []
    for j in rng.integers(0, len(candidates.precursors), n).tolist():
        masses = candidates.masses[candidates.offsets[j] : candidates.offsets[j + 1]].astype(np.int64)
        shift = int(rng.integers(-10_000, 50_000))
        masses[rng.integers(0, len(masses)) :] += shift
        precursor = max(1000, int(candidates.precursors[j]) + shift)
        ions = masses[rng.random(len(masses)) < 0.67]
        ions = np.concatenate((ions, rng.integers(1, precursor, max(0, peaks - len(ions)))))
        both = np.unique(np.concatenate((ions, precursor - ions)))
        lists.append(both[(both > 0) & (both < precursor)].astype(np.int32))
        precursors.append(precursor)
    return MassLists(
        np.concatenate(([0], np.cumsum([len(masses) for masses in lists]))), np.concatenate(lists), np.array(precursors, np.int32)
    )


def _published(n_queries: int, n: int) -> Shape:
    rng = np.random.default_rng(1)
    return Shape(residue_lists(rng, n_queries), residue_lists(rng, n), (-(1 << 30), 1 << 30), 0)


def _peptides(n_queries: int, n: int) -> Shape:
    rng = np.random.default_rng(2)
    candidates = peptide_lists(rng, n)
    return Shape(_peak_lists(rng, candidates, n_queries), candidates, (-50_000, 50_000), 20)


SHAPES: dict[str, tuple[Callable[[int, int], Shape], int, int]] = {
    "published": (_published, 500, 1000),
    "spectra": (lambda q, n: _published(q, n)._replace(top=1), 10_000, 1_000_000),
    "peptides": (_peptides, 10_000, 10_000_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--candidates", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for name in options.shapes:
        make, n_queries, n = SHAPES[name]
        shape = make(options.queries or n_queries, options.candidates or n)
        about = {
            "date": date.today().isoformat(),
            "shape": name,
            "queries": len(shape.queries.precursors),
            "top": shape.top,
            "candidates": len(shape.candidates.precursors),
            "masses": len(shape.candidates.masses),
        }
        single(about, shape)
        whole(about | {"threads": options.threads}, shape, options.repeats)


def single(about: dict[str, Any], shape: Shape) -> None:
    """Measure the forms without an index, one query after the other."""
    n, stop = len(shape.queries.precursors), stop_flag()
    windows = candidate_ranges(shape.candidates, shape.queries, shape.window)
    scores = np.zeros(len(shape.candidates.precursors), np.int32)
    for name, form in (("lists", score_by_lists), ("vector", score_by_vector)):
        form(shape.queries, 0, shape.candidates, 0, 1, scores, stop)
        began, done = time.perf_counter(), 0
        while done < n and time.perf_counter() < began + 1.0:
            low, high = windows[done]
            form(shape.queries, done, shape.candidates, low, high, scores, stop)
            done += 1
        emit(about, form=name, threads=1, measured=done, seconds=round((time.perf_counter() - began) * n / done, 3))


def whole(about: dict[str, Any], shape: Shape, repeats: int) -> None:
    """Measure the class: building, then searching."""
    n, device = len(shape.queries.precursors), Processor(about["threads"])
    building, seconds = list[float](), list[float]()
    answer = np.zeros((n, max(1, shape.top)), np.int64), np.zeros((n, max(1, shape.top)), np.int32)
    scores = np.zeros((n, len(shape.candidates.precursors)), np.uint16) if not shape.top else np.zeros((0, 0), np.uint16)
    for repeat in range(repeats + 1):
        search = MatchScores(device, shape.candidates)
        began = time.perf_counter()
        list(search._build(0))
        built = time.perf_counter()
        list(search.search(shape.queries, shape.window, shape.top, *answer) if shape.top else search.score(shape.queries, scores))
        if repeat:
            building.append(built - began)
            seconds.append(time.perf_counter() - built)
    index = search._index
    assert index is not None
    emit(
        about,
        form="index",
        building_s=round(min(building), 3),
        seconds=round(min(seconds), 3),
        bytes=index.start.nbytes + index.posting.nbytes,
        rows=index.start.shape[1] - 2,
        best=int(answer[1][:, 0].sum()),
    )


if __name__ == "__main__":
    main()
