"""Synthetic peptides added to the MS1 spectra of real runs: isotope patterns, tailing elution profiles, noise, co-eluting neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from tests.engine.quantification.synthetic_runs import SPACING, Planted, SyntheticRun, averaged_pattern, random_peptides

__all__ = ["RealRun", "planted_mixtures", "planted_ratios", "planted_transfers"]

_RESOLUTION = 60_000
"""Two peaks of a MS1 spectrum that are nearer than half of a peak's width are one."""
_LIMIT, _SCATTER, _PPM = 900.0, 0.1, 2.0
"""Intensity below which the run shows nothing, noise of intensities (of the logarithm) and of m/z."""


@dataclass
class RealRun(SyntheticRun):
    """A real run with planted peptides in it."""

    real: Ms1Spectra | None = None
    tails: dict[str, float] = field(default_factory=dict)

    def ms1_spectra(self) -> tuple[NDArray[np.float64], list[tuple[NDArray[np.float64], NDArray[np.float64]]]]:
        """Return the times and peaks of the MS1 spectra, with planted peaks among the real ones."""
        assert self.real is not None
        rng, times, offsets = np.random.default_rng(self.seed), self.real.retention_time, self.real.offsets
        added: list[list[tuple[float, float]]] = [[] for _ in times]
        for peptide in self.planted:
            shape = profile(times - peptide.apex, peptide.deviation, self.tails.get(peptide.sequence, 0.0))
            pattern = averaged_pattern(peptide.sequence)
            for at in np.flatnonzero(shape > 1e-6).tolist():
                height = peptide.amount * shape[at] * rng.lognormal(0, _SCATTER, len(pattern)) * pattern
                mz = (peptide.mz + np.arange(len(pattern)) * SPACING / peptide.charge) * (1 + rng.normal(0, _PPM, len(pattern)) * 1e-6)
                added[at] += [pair for pair in zip(mz.tolist(), height.tolist(), strict=True) if pair[1] > _LIMIT]
        spectra = []
        for at, some in enumerate(added):
            rows, more = slice(offsets[at], offsets[at + 1]), np.array(some).reshape(-1, 2)
            mz = np.concatenate([self.real.mz[rows], more[:, 0]])
            intensity = np.concatenate([self.real.intensity[rows].astype(np.float64), more[:, 1]])
            order = np.argsort(mz)
            spectra.append(merged(mz[order], intensity[order]))
        return times, spectra


def profile(apart: NDArray[np.float64], deviation: float, tail: float) -> NDArray[np.float64]:
    """Return a Gaussian with an area of 1 and a later half that is wider by a factor of 1 + `tail`."""
    wide = np.where(apart > 0, deviation * (1 + tail), deviation)
    return np.exp(-0.5 * (apart / wide) ** 2) / (np.sqrt(2 * np.pi) * deviation * (1 + tail / 2))


def merged(mz: NDArray[np.float64], intensity: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Merge peaks that the instrument does not resolve, at their centre."""
    if not len(mz):
        return mz, intensity
    group = np.concatenate(([0], np.cumsum(np.diff(mz) > mz[1:] / _RESOLUTION / 2)))
    total = np.bincount(group, intensity)
    return np.bincount(group, mz * intensity) / total, total


def _random_planted(rng: np.random.Generator, real: Ms1Spectra, sequence: str, amount: float) -> Planted:
    """Return a peptide at a charge within the m/z range of the run, at a random time in its middle."""
    charge = next((z for z in (2, 3, 4) if Planted(sequence, z, 1.0, 0.0).mz < 780), 4)
    first, last = real.retention_time[[0, -1]]
    return Planted(sequence, charge, amount, float(rng.uniform(first + 60, last - 60)), float(rng.uniform(4, 9)))


def planted_ratios(real: list[Ms1Spectra], n: int, seed: int) -> tuple[dict[str, RealRun], dict[str, float]]:
    """Return two runs with n peptides in ratios from 1:1 to 1:50, either way, and the logarithm of each ratio.

    Each third peptide co-elutes with the peptide before it, and has an m/z less than a thomson away if one of its charges allows that.
    """
    rng = np.random.default_rng(seed)
    peptides = random_peptides(n, seed + 1000, (8, 14))
    runs = {name: RealRun(seed=seed + i, real=real_run) for i, (name, real_run) in enumerate(zip(("one", "two"), real, strict=True))}
    ratios: dict[str, float] = {}
    last: Planted | None = None
    for k, sequence in enumerate(peptides):
        # The apex of the smaller amount is about ten times the limit, so that it can be measured.
        low, log = rng.lognormal(np.log(2.5e5), 0.5), rng.uniform(0, np.log(50)) * rng.choice([-1, 1])
        peptide = _random_planted(rng, real[0], sequence, 1.0)
        if k % 3 == 2 and last is not None:
            near = [z for z in (2, 3, 4) if abs(replace(peptide, charge=z).mz - last.mz) < 1]
            peptide = replace(peptide, apex=last.apex + float(rng.uniform(-5, 5)), charge=near[0] if near else peptide.charge)
        amounts = {"one": low * max(1.0, np.exp(-log)), "two": low * max(1.0, np.exp(log))}
        tail = float(rng.uniform(0, 0.8))
        for name, run in runs.items():
            later = 0.0 if name == "one" else 8 + 4 * np.sin(peptide.apex / 120)
            mine = replace(peptide, amount=amounts[name], apex=peptide.apex + later)
            run.planted.append(mine)
            run.identified.append(replace(mine, apex=mine.apex + float(rng.uniform(-1, 1)) * mine.deviation))
            run.tails[sequence] = tail
        ratios[sequence], last = float(np.log(amounts["two"] / amounts["one"])), peptide
    return runs, ratios


def planted_transfers(real: list[Ms1Spectra], n: int, seed: int) -> tuple[dict[str, RealRun], set[tuple[str, str]]]:
    """Return runs with n peptides, each identified in one or more, and the pairs of absent peptide and run.

    A peptide is present in two of three runs in which it is not identified.
    """
    rng = np.random.default_rng(seed)
    peptides = random_peptides(n, seed + 2000, (8, 16))
    runs = {f"run{i}": RealRun(seed=seed + i, real=real_run) for i, real_run in enumerate(real)}
    gone = set()
    for sequence in peptides:
        peptide = _random_planted(rng, real[0], sequence, float(rng.lognormal(np.log(8e5), 0.9)))
        has = rng.random(len(runs)) < 0.6
        has[int(rng.integers(len(runs)))] = True
        for number, (name, run) in enumerate(runs.items()):
            later = number * (6 + 4 * np.sin(peptide.apex / 150)) + rng.normal(0, 1)
            mine = replace(peptide, amount=peptide.amount * rng.lognormal(0, 0.5), apex=peptide.apex + later)
            if has[number]:
                run.identified.append(mine)
            elif rng.random() < 1 / 3:
                gone.add((sequence, name))
                continue
            run.planted.append(mine)
    return runs, gone


def planted_mixtures(real: list[Ms1Spectra], logs: NDArray[np.float64], seed: int) -> dict[str, RealRun]:
    """Return runs with peptides in given amounts, each identified in nine of ten runs that have it.

    Parameters
    ----------
    real : list of Ms1Spectra
        MS1 spectra of real runs, which the new runs use in turn.
    logs : ndarray of float64, shape (peptides, runs)
        log2 of the areas.
    """
    rng = np.random.default_rng(seed)
    runs = {f"run{i}": RealRun(seed=seed + i, real=real[i % len(real)]) for i in range(logs.shape[1])}
    for sequence, of_runs in zip(random_peptides(len(logs), seed + 3000, (8, 16)), logs.tolist(), strict=True):
        peptide, tail = _random_planted(rng, real[0], sequence, 1.0), float(rng.uniform(0, 0.8))
        for number, (run, log) in enumerate(zip(runs.values(), of_runs, strict=True)):
            later = number * (3 + 2 * np.sin(peptide.apex / 150)) + rng.normal(0, 1)
            mine = replace(peptide, amount=2.0**log, apex=peptide.apex + later)
            run.planted.append(mine)
            run.tails[sequence] = tail
            if rng.random() < 0.9:
                run.identified.append(replace(mine, apex=mine.apex + float(rng.uniform(-1, 1)) * mine.deviation))
    return runs
