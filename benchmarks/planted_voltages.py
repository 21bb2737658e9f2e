"""Runs of FAIMS that cycle through compensation voltages, with peptides that come through at one or at two neighbours of these."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from proteoscope.engine.searches import run_search
from tests.engine.quantification.made_runs import MadeRun, Planted, mzml_text, random_peptides, spectrum_text, table_of, write_project

__all__ = ["VoltageRun", "quantified_ions", "voltage_run"]

_FIRST, _STEP = -35, -10


@dataclass
class VoltageRun(MadeRun):
    """A run whose survey spectra are at one of `n_voltages` in turn; a peptide comes through at the voltage of its place among the planted."""

    n_voltages: int = 1

    def write(self, path: Path) -> list[tuple[int, Planted]]:
        """Write it as mzML; scan numbers of the spectra of those that are identified."""
        own = {one: number % self.n_voltages for number, one in enumerate(self.planted)}
        parts = []
        for number in range(self.n_voltages):
            planted = [one for one in self.planted if own[one] == number]
            times, peaks = MadeRun(**self._shared(planted, number)).surveys()
            parts.append(peaks)
        behind: dict[int, list[Planted]] = {}
        for one in self.identified:
            at = np.flatnonzero(np.arange(len(times)) % self.n_voltages == own[one])
            behind.setdefault(int(at[np.argmin(np.abs(times[at] - one.apex))]), []).append(one)
        texts, scans = [], []
        for number, time in enumerate(times.tolist()):
            voltage = number % self.n_voltages
            text = spectrum_text(len(texts), 1, time, *parts[voltage][number])
            term = f'<cvParam accession="MS:1001581" name="FAIMS compensation voltage" value="{_FIRST + _STEP * voltage}"/>'
            texts.append(text.replace("<scanList", term + "<scanList", 1) if self.n_voltages > 1 else text)
            for one in behind.get(number, ()):
                scans.append((len(texts) + 1, one))
                texts.append(spectrum_text(len(texts), 2, time + 0.1, np.array([150.1, 250.2]), np.array([5.0, 7.0]), one))
        path.write_text(mzml_text(texts), encoding="utf-8")
        return scans

    def _shared(self, planted: list[Planted], seed: int) -> dict:
        return {"seconds": self.seconds, "cycle": self.cycle, "noise_peaks": self.noise_peaks, "planted": planted, "seed": self.seed + seed}


def voltage_run(seed: int, n_voltages: int, n: int = 60) -> tuple[VoltageRun, list[str]]:
    """Return a run with n peptides, all identified once, and their sequences."""
    rng, peptides = np.random.default_rng(seed), random_peptides(n, seed + 4000)
    planted = [Planted(one, 2, float(4e6 * rng.lognormal(0, 0.5)), float(rng.uniform(60, 540)), 8.0) for one in peptides]
    return VoltageRun(cycle=1.0, seed=seed, planted=planted, identified=planted, n_voltages=n_voltages), peptides


def quantified_ions(seed: int, n_voltages: int) -> dict:
    """Return how many ions of a run have a quantity, and the median error of their areas against those of a run at one voltage."""
    run, peptides = voltage_run(seed, n_voltages)
    with tempfile.TemporaryDirectory() as folder:
        project = write_project(Path(folder) / "p", {"one": run}, {f"P{i}": [one] for i, one in enumerate(peptides)})
        run_search("quantify", {"project": [project]}, device="cpu", threads=2)
        areas = {row["peptide"]: row["area"] for row in table_of(project, "ion_traces") if row["area"] is not None}
    amounts = {one.sequence: one.amount for one in run.planted}
    error = [abs(np.log2(area / amounts[peptide])) for peptide, area in areas.items()]
    return {"ions": len(peptides), "quantified": len(areas), "median_error": round(float(np.median(error)), 4) if error else None}
