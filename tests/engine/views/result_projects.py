"""Projects with results for tests of views: tables of random proteins, and synthetic spectra with masses of pyteomics."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyteomics import mass

from proteoscope.engine.project import Project
from proteoscope.engine.spectra.tables import spectra_table as stored_spectra
from tests.engine.identification_tables import Identification, identification
from tests.engine.spectra.made import spectra as made_spectra

PROTON = 1.00727646688
PARAMETERS = {
    "fdr": 0.01,
    "fragment_tolerance": "20 ppm",
    "ion_series": "by",
    "maximum_fragment_charge": 2,
}


SCORE_OF = {"peptides": "best_score", "proteins": "score"}


def fragment_mz(row: dict[str, Any], series: str, number: int, charge: int) -> float:
    """Return the m/z of a b or y ion of a PSM, from pyteomics' residue masses and the PSM's modification masses."""
    sequence, length = row["sequence"], len(row["sequence"])
    residues = range(number) if series == "b" else range(length - number, length)
    neutral = sum(mass.std_aa_mass[sequence[i]] for i in residues)
    for position, delta in zip(row["modification_positions"], row["modification_masses"], strict=True):
        residue = min(max(position - 1, 0), length - 1)
        neutral += delta if residue in residues else 0.0
    if series == "y":
        neutral += mass.calculate_mass(formula="H2O")
    return neutral / charge + PROTON


def spectra_table(results: Identification, n_noise: int = 150, seed: int = 3) -> pa.Table:
    """Return a spectrum for each row number in the PSMs: random b and y ions of its best peptide, and noise."""
    random = np.random.default_rng(seed)
    rows = {row["spectrum"]: row for row in reversed(results.psms.to_pylist())}
    n_spectra = max(rows, default=-1) + 1
    peaks = []
    for spectrum in range(n_spectra):
        mz = random.uniform(100, 1500, n_noise)
        intensity = random.lognormal(2, 0.8, n_noise)
        row = rows.get(spectrum)
        if row is not None:
            ions = [fragment_mz(row, series, number, 1) for series in "by" for number in range(1, len(row["sequence"]))]
            ions = [ion * (1 + random.normal(0, 4e-6)) for ion in ions if random.random() < 0.7]
            mz = np.concatenate((mz, ions))
            intensity = np.concatenate((intensity, random.lognormal(5, 1, len(ions))))
        order = np.argsort(mz)
        peaks.append(list(zip(mz[order].tolist(), intensity[order].tolist(), strict=True)))
    best = [rows.get(spectrum, {"precursor_mz": 500.0, "charge": 2}) for spectrum in range(n_spectra)]
    return run_spectra(peaks, [row["precursor_mz"] for row in best], [1 << row["charge"] for row in best])


def run_spectra(peaks: list[list[tuple[float, float]]], precursor_mz: list[float], charge_masks: list[int]) -> pa.Table:
    """Return the stored spectrum table of one file, with 20 seconds between spectra, each named by its row."""
    n = len(peaks)
    synthetic = made_spectra(peaks, precursor_mz, charge_masks)
    names = [f"scan={row}" for row in range(n)]
    return stored_spectra(replace(synthetic, files=("run.mzML",), identifier=names, scan=np.arange(n), retention_time=20.0 * np.arange(n)))


@cache
def _default_results() -> tuple[Identification, pa.Table]:
    """Return the default results of projects and their spectra, computed once per process."""
    results = identification(n_spectra=120)
    return results, spectra_table(results)


def project_with_results(
    folder: Path, results: Identification | None = None, *, with_spectra: bool = True, log: tuple[str, ...] = ()
) -> tuple[Project, Identification]:
    """Return a project with one finished identification, and its results."""
    spectra = None if results else _default_results()[1]
    results = results or _default_results()[0]
    project = Project.create_or_open(folder)
    with project.run("identify", PARAMETERS) as run:
        for name in ("psms", "peptides", "proteins"):
            # As in a search, the best are first.
            best_first = [("rank", "ascending"), ("score", "descending")] if name == "psms" else [(SCORE_OF[name], "descending")]
            run.write_table(name, getattr(results, name).sort_by(best_first))
        if with_spectra:
            run.write_table("spectra", spectra_table(results) if spectra is None else spectra)
        for text in log:
            run.log("info", text)
    return project, results


def rows_of(project: Project, table: str) -> list[dict[str, Any]]:
    """Read a table of the newest run that has it."""
    rows: list[dict[str, Any]] = pq.read_table(project.table(table)).to_pylist()
    return rows
