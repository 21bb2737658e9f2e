"""Small synthetic spectra as columns."""

from __future__ import annotations

import numpy as np

from proteoscope.engine.spectra.columns import Spectra

Peaks = list[tuple[float, float]]


def spectra(peaks: list[Peaks], precursor_mz: list[float], charge_masks: list[int]) -> Spectra:
    n = len(peaks)
    flat = [peak for spectrum in peaks for peak in spectrum]
    return Spectra(
        ("x.mgf",),
        np.zeros(n, np.int32),
        [f"index={i}" for i in range(n)],
        np.full(n, -1),
        np.arange(n),
        np.full(n, np.nan),
        np.array(precursor_mz, np.float64),
        np.zeros(n, np.float32),
        np.array(charge_masks, np.uint32),
        np.cumsum([0, *map(len, peaks)]).astype(np.int64),
        np.array([peak[0] for peak in flat], np.float64),
        np.array([peak[1] for peak in flat], np.float32),
    )
