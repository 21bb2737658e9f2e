"""Projects with results for tests of views: tables made from random proteins, and spectra made with pyteomics' masses."""

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
    """m/z of a b or y ion of a row of the PSMs, from pyteomics' masses of the residues and the row's own masses of modifications."""
    sequence, length = row["sequence"], len(row["sequence"])
    kept = range(number) if series == "b" else range(length - number, length)
    neutral = sum(mass.std_aa_mass[sequence[i]] for i in kept)
    for position, delta in zip(row["modification_positions"], row["modification_masses"], strict=True):
        residue = min(max(position - 1, 0), length - 1)
        neutral += delta if residue in kept else 0.0
    if series == "y":
        neutral += mass.calculate_mass(formula="H2O")
    return neutral / charge + PROTON


def spectra_table(found: Identification, n_noise: int = 150, seed: int = 3) -> pa.Table:
    """A spectrum for each row number that the PSMs name: half of the b and y ions of its best peptide, and noise."""
    random = np.random.default_rng(seed)
    rows = {row["spectrum"]: row for row in reversed(found.psms.to_pylist())}
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
    """The stored table of spectra of one file, 20 seconds apart, each named by its row."""
    n = len(peaks)
    made = made_spectra(peaks, precursor_mz, charge_masks)
    names = [f"scan={row}" for row in range(n)]
    return stored_spectra(replace(made, files=("run.mzML",), identifier=names, scan=np.arange(n), retention_time=20.0 * np.arange(n)))


@cache
def _usual() -> tuple[Identification, pa.Table]:
    """What projects hold where a test does not say, and its spectra: made once for all tests of a process."""
    found = identification(n_spectra=120)
    return found, spectra_table(found)


def project_with_results(
    folder: Path, found: Identification | None = None, *, with_spectra: bool = True, log: tuple[str, ...] = ()
) -> tuple[Project, Identification]:
    """A project with one finished identification, and what it holds."""
    spectra = None if found else _usual()[1]
    found = found or _usual()[0]
    project = Project.create_or_open(folder)
    with project.run("identify", PARAMETERS) as run:
        for name in ("psms", "peptides", "proteins"):
            # As a search does: the best first.
            best_first = [("rank", "ascending"), ("score", "descending")] if name == "psms" else [(SCORE_OF[name], "descending")]
            run.write_table(name, getattr(found, name).sort_by(best_first))
        if with_spectra:
            run.write_table("spectra", spectra_table(found) if spectra is None else spectra)
        for text in log:
            run.log("info", text)
    return project, found


def rows_of(project: Project, table: str) -> list[dict[str, Any]]:
    """A table of the newest run that has it."""
    found: list[dict[str, Any]] = pq.read_table(project.table(table)).to_pylist()
    return found
