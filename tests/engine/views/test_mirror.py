"""Mirrored spectra: shared peaks, compared with brute force, and the kinds of peaks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.views.annotation import annotate_match
from proteoscope.engine.views.mirror import Half, MirroredSpectra, shared_peaks
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.shown_peaks import SHARED, UNMATCHED
from tests.engine.views.test_annotation import ROW, SETTINGS, synthetic_peaks

MZ = st.lists(st.integers(1000, 1400).map(lambda tenth: tenth / 10), max_size=30, unique=True).map(sorted)


@given(MZ, MZ, st.sampled_from([Tolerance(0.5, "Da"), Tolerance(0.05, "Da"), Tolerance(2000, "ppm")]))
def test_shared_peaks_are_mutually_nearest_within_tolerance(first: list[float], second: list[float], tolerance: Tolerance) -> None:
    pairs = shared_peaks(np.array(first, float), np.array(second, float), tolerance).tolist()

    def nearest(mz: float, among: list[float]) -> int:
        return min(range(len(among)), key=lambda i: (abs(mz - among[i]), i))

    expected = [
        [i, j]
        for i, mz in enumerate(first)
        for j in ([nearest(mz, second)] if second else [])
        if nearest(second[j], first) == i and abs(second[j] - mz) <= tolerance.width(mz)
    ]
    assert pairs == expected


def test_mirror_shared_peaks_have_same_kind_in_both_spectra() -> None:
    with_ions = annotate_match(ROW, synthetic_peaks(n_noise=20), SETTINGS)
    bare = Peaks(with_ions.peaks.mz[::2].copy(), with_ions.peaks.intensity[::2].copy())
    mirrored = MirroredSpectra("", Half("above", bare), Half("below", with_ions.peaks, with_ions), Tolerance(0.001, "Da"))
    upper, lower = mirrored.shown
    kind_of = dict(zip(with_ions.matches.peak.tolist(), with_ions.kinds, strict=True))
    for above, below in mirrored.shared.tolist():
        assert upper.kinds[above] == lower.kinds[below] == kind_of.get(below, SHARED)
    assert len(mirrored.shared) >= len(bare.mz) - 2 and {"b", "y"} <= set(upper.kinds.tolist())
    assert set(lower.kinds[np.setdiff1d(np.arange(len(with_ions.peaks.mz)), mirrored.shared[:, 1])]) <= {*with_ions.kinds, UNMATCHED}
    assert (upper.side, lower.side) == (1, -1) and upper.height.max() == lower.height.max() == 100 and not len(upper.named)
