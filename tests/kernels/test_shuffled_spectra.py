"""Spectra of shuffled peptides against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from proteoscope.kernels.cpu.shuffled_spectra import MOVED_SERIES, ShuffledPeptides, move_peaks
from proteoscope.kernels.layouts import PeakArrays
from tests.shim.read_only import read_only

PROTON, WATER, ISOTOPE = 1.007276466621, 18.0105646863, 1.0033548378
OVER_B_AND_Y = {"c": 17.02654910112, "z": -16.01872406889}


def plain_moved(mz, charge, masses, shuffled, ends, width, series):
    """Move each peak by the shift of the nearest ion of some series that explains it."""
    total = sum(masses) + sum(ends) + WATER
    precursor = total / charge + PROTON
    ions = []
    for i in range(1, len(masses)):
        front, other = ends[0] + sum(masses[:i]), ends[0] + sum(shuffled[:i])
        for z in range(1, max(1, min(3, charge - 1)) + 1):
            for residue in series:
                ion, moved = (front, other - front) if residue in "bc" else (total - front, front - other)
                ions.append(((ion + OVER_B_AND_Y.get(residue, 0.0)) / z + PROTON, moved / z))
    out = []
    for value in mz:
        tolerance = width(value)
        stays = value < 300 or -2 * WATER / charge - tolerance <= value - precursor <= 2 * ISOTOPE / charge + tolerance
        distance, shift = min((abs(place - value), shift) for place, shift in ions)
        out.append(value if stays or distance > tolerance else value + shift)
    return out


@pytest.mark.parametrize("charge", [1, 2, 3, 5])
@pytest.mark.parametrize(("absolute", "relative"), [(0.5, 0.0), (0.0, 20e-6)])
@pytest.mark.parametrize("series", ["by", "cz", "bycz"])
def test_move_peaks_equals_plain_loops(charge, absolute, relative, series):
    random = np.random.default_rng(charge)
    lengths = np.array([2, 7, 15, 30])
    offsets = np.append(0, np.cumsum(lengths))
    masses = random.uniform(57, 186, offsets[-1])
    shuffled = np.concatenate([random.permutation(masses[a:b]) for a, b in itertools.pairwise(offsets)])
    ends = np.array([[0.0, 0.0], [42.0106, 0.0], [0.0, 0.9840], [229.163, 1.0]])
    spectra = []
    for row, (a, b) in enumerate(itertools.pairwise(offsets)):
        front = np.cumsum(masses[a:b])[:-1] + ends[row, 0]
        whole = masses[a:b].sum() + ends[row].sum() + WATER
        ions = np.concatenate(
            [(some / z + PROTON) for some in (front, whole - front, front + 17.02655, whole - front - 16.01872) for z in (1, 2)]
        )
        near = whole / charge + PROTON + np.array([-WATER, 0.0, ISOTOPE]) / charge
        spectra.append(np.sort(np.concatenate((ions * (1 + random.normal(0, 1e-5, len(ions))), near, random.uniform(100, 1500, 60)))))
    mz = np.concatenate(spectra)
    peak_offsets = np.append(0, np.cumsum([len(spectrum) for spectrum in spectra]))
    intensity = np.arange(len(mz), dtype=np.float32)
    read_only(mz, intensity)  # as in a search, for which the kernel is compiled
    peaks = PeakArrays(peak_offsets, mz, intensity)
    peptides = ShuffledPeptides(
        offsets, masses, shuffled, ends[:, 0].copy(), ends[:, 1].copy(), np.array([[name in series for name in MOVED_SERIES]] * 4)
    )
    out_mz, out_intensity = np.empty_like(mz), np.empty(len(mz), np.float32)
    move_peaks(peaks, np.full(4, charge), peptides, absolute, relative, 0, 4, out_mz, out_intensity)
    for row, original in enumerate(spectra):
        a, b = offsets[row : row + 2]
        some = slice(*peak_offsets[row : row + 2])
        moved = np.array(plain_moved(original, charge, masses[a:b], shuffled[a:b], ends[row], lambda x: absolute + relative * x, series))
        order = np.argsort(moved, kind="stable")
        np.testing.assert_allclose(out_mz[some], moved[order])
        assert out_intensity[some].tolist() == peaks.intensity[some][order].tolist()
        assert row == 0 or (moved != original).any()
