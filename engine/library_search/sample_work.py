"""Made-up spectra and references, by which the speed of devices is measured."""

from __future__ import annotations

import numpy as np

from proteoscope.engine.execution.work import Sample, Work
from proteoscope.engine.library_search.scoring import KIND
from proteoscope.kernels.library_layouts import COSINE_LENGTH, UNITS, Matching, PeakLists, Pools

__all__ = ["sample_spectra"]

_QUERIES, _REFERENCES, _OF_QUERY, _PEAKS = 4000, 50_000, 500, 60
_DRAWN = 5000  # lists at random, which then come again


def sample_spectra(size: float, seed: int) -> Sample:
    """Queries against references next to each other in mass."""
    rng = np.random.Generator(np.random.PCG64(seed))
    n, m = max(8, round(_QUERIES * size)), max(2 * _OF_QUERY, round(_REFERENCES * size**0.25))
    queries, references = _lists(rng, n), _lists(rng, m)
    low = np.sort(rng.integers(0, m - _OF_QUERY, (n, 1)), axis=0)
    mass = [np.sort(rng.integers(400 * UNITS, 3000 * UNITS, one)).astype(np.int32) for one in (n, m)]
    sources = {
        "queries": {**queries._asdict(), "mass": mass[0]}, "references": {**references._asdict(), "mass": mass[1]},
        "pools": Pools(low, low + _OF_QUERY)._asdict(),
    }  # fmt: skip
    return Sample(Work(KIND, sources, Matching(0, 20_000, 3, False, False, -1)._asdict()), [None])


def _lists(rng: np.random.Generator, n: int) -> PeakLists:
    """Lists of peaks a thomson and more apart."""
    places = np.sort(rng.random((min(n, _DRAWN), _PEAKS)), axis=1) * 1800.0 + np.arange(_PEAKS) + 100.0
    weight = np.full(n * _PEAKS, round(COSINE_LENGTH / _PEAKS**0.5), np.uint16)
    return PeakLists(np.arange(n + 1) * _PEAKS, np.resize(np.rint(places.ravel() * UNITS).astype(np.int32), n * _PEAKS), weight)
