"""Spectrum files derived from one run: exact and noisy copies, which imitate replicates, and samples, which imitate short runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.spectra.columns import Spectra

__all__ = ["COPIES", "exact_copies", "noisy_copies", "sample"]

COPIES = 5

MASS_NOISE = 0.1  # share of the tolerance: the standard deviation of mass errors is a tenth of it
INTENSITY_NOISE = 0.3  # standard deviation of the logarithm
DROPPED, ADDED = 0.15, 0.15  # of the peaks


def exact_copies(spectra: Sequence[Path], folder: Path) -> list[Path]:
    """Return the files and their copies, `COPIES` of each in total, one set of files after the other, so that spectra repeat in order."""
    made = list(spectra)
    for number in range(2, COPIES + 1):
        for path in spectra:
            made.append(folder / f"{path.stem}-{number}{path.suffix}")
            shutil.copyfile(path, made[-1])
    return made


def noisy_copies(
    spectra: Sequence[Path], read: Spectra, precursor: tuple[float, str], fragment: tuple[float, str], folder: Path, seed: int
) -> list[Path]:
    """Return the files, and copies of all their spectra in MGF, `COPIES` in all.

    In a copy, each precursor and peak has its own mass error, intensities vary, some peaks are missing, and some weak peaks are added.

    Parameters
    ----------
    read : the spectra of the files. precursor, fragment : the tolerances of the search, ``ppm`` or ``Da``.
    """
    made = list(spectra)
    for number in range(2, COPIES + 1):
        generator = np.random.default_rng((seed, number))
        made.append(folder / f"noisy-{seed}-{number}.mgf")
        with made[-1].open("w") as file:
            for i in range(len(read)):
                file.write(_noisy(read, i, precursor, fragment, generator))
    return made


def _noisy(read: Spectra, i: int, precursor: tuple[float, str], fragment: tuple[float, str], generator: np.random.Generator) -> str:
    """Return one spectrum with noise, in MGF."""
    mz, intensity = read.peaks(i)
    is_retained = generator.random(len(mz)) >= DROPPED
    n_added = round(ADDED * len(mz))
    if n_added:
        added = generator.uniform(mz[0], mz[-1], n_added)
        weak = np.sort(intensity)[: max(1, len(intensity) // 2)]
        mz, intensity = np.concatenate((mz[is_retained], added)), np.concatenate((intensity[is_retained], generator.choice(weak, n_added)))
    mz = mz + generator.normal(0.0, 1.0, len(mz)) * _error(mz, fragment)
    intensity = intensity * np.exp(generator.normal(0.0, INTENSITY_NOISE, len(mz)))
    order = np.argsort(mz)
    precursor_mz = read.precursor_mz[i] + generator.normal() * _error(read.precursor_mz[i], precursor)
    return _written(read, i, precursor_mz, mz[order], intensity[order])


def sample(read: Spectra, rows: NDArray[np.int64], path: Path) -> Path:
    """Return some spectra of a run in MGF."""
    path.write_text("".join(_written(read, i, float(read.precursor_mz[i]), *read.peaks(i)) for i in rows.tolist()))
    return path


def _written(read: Spectra, i: int, precursor_mz: float, mz: NDArray[np.float64], intensity: NDArray[np.float64]) -> str:
    """Return one spectrum in MGF; its title is its number in the run."""
    charges = [charge for charge in range(1, 32) if int(read.charge_mask[i]) >> charge & 1]
    lines = ["BEGIN IONS", f"TITLE={i}", f"PEPMASS={precursor_mz:.8f}"]
    if charges:
        lines.append("CHARGE=" + " and ".join(f"{charge}+" for charge in charges))
    if np.isfinite(read.retention_time[i]):
        lines.append(f"RTINSECONDS={read.retention_time[i]:.4f}")
    lines.extend(f"{m:.6f} {value:.6g}" for m, value in zip(mz.tolist(), intensity.tolist(), strict=True))
    return "\n".join([*lines, "END IONS", "", ""])


def _error(mz, tolerance: tuple[float, str]):  # type: ignore[no-untyped-def]
    """Return the standard deviation of the noise at an m/z, thomson."""
    value, unit = tolerance
    return MASS_NOISE * value * (mz * 1e-6 if unit == "ppm" else np.ones_like(mz))
