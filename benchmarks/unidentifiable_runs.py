"""Runs of which a part of the spectra are of peptides that no protein of the database holds, identified and quantified as any others.

The ions of these peptides are in all runs, so that a wrong identification of one is found in the others as well as a right one.
"""

from __future__ import annotations

import tempfile
from itertools import islice
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyteomics import mass

from proteoscope.engine.searches import run_search
from tests.engine.quantification.made_runs import MadeRun, Planted, random_peptides, table_of

__all__ = ["wrong_transfers"]

_RUNS, _PEPTIDES, _ABSENT, _OTHERS = 4, 900, 1500, 9000
_OF_PROTEIN, _SEEN = 20, 6
"""Peptides of a protein, and how many of them a protein of the sample shows."""
_STRAY = 120
_IDENTIFIED = 0.45
"""Part of the runs in which an ion has a spectrum."""


def wrong_transfers(seed: int, rules: Mapping[str, Mapping[str, float]]) -> list[tuple[str, dict]]:
    """Return, for each rule of donors (parameters by its name), how many ions are transferred, and how many of these are of wrong
    peptides.
    """
    rng = np.random.default_rng(seed)
    every = random_peptides(_PEPTIDES + _ABSENT + _OTHERS, seed + 5000)
    present, absent = every[:_PEPTIDES], every[_PEPTIDES : _PEPTIDES + _ABSENT]
    others = iter(every[_PEPTIDES + _ABSENT :])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fasta = folder / "proteins.fasta"
        groups = [[*present[i : i + _SEEN], *islice(others, _OF_PROTEIN - _SEEN)] for i in range(0, _PEPTIDES, _SEEN)]
        groups += iter(lambda: list(islice(others, _OF_PROTEIN)), [])
        fasta.write_text("".join(f">P{i}\n{''.join(one)}\n" for i, one in enumerate(groups)))
        files = [folder / f"run{i}.mzML" for i in range(_RUNS)]
        apex = {one: float(rng.uniform(60, 1140)) for one in present + absent}
        amount = {one: float(rng.lognormal(np.log(3e6), 0.6)) for one in present + absent}
        for number, path in enumerate(files):
            planted = [
                Planted(one, 2, amount[one] * float(rng.lognormal(0, 0.2)), apex[one] + 3 * number + float(rng.normal(0, 1)))
                for one in present + absent
            ]
            identified = [one for one in planted if rng.random() < _IDENTIFIED]
            fragments = {one.sequence: fragment_spectrum(one.sequence, rng) for one in identified}
            run = MadeRun(
                seconds=1200, seed=seed * 10 + number, planted=planted, identified=identified, fragments=fragments, noise_peaks=50
            )
            run.write(path)
        project = folder / "project"
        run_search("identify", {"spectra": files, "database": [fasta]}, project=project, device="cpu", threads=2, fragment_tolerance="20 ppm")
        return [(name, _transferred(project, set(present), settings)) for name, settings in rules.items()]


def _transferred(project: Path, present: set[str], settings: Mapping[str, float]) -> dict:
    summary = run_search("quantify", {"project": [project]}, device="cpu", threads=2, match_between_runs=True, **settings)
    rows = table_of(project, "ion_traces")
    n_files = {}
    for row in rows:
        if row["source"] == "identified":
            n_files[row["peptide"], row["charge"]] = n_files.get((row["peptide"], row["charge"]), 0) + 1
    moved = [(row["peptide"], row["charge"]) for row in rows if row["source"] == "transferred"]
    wrong = [one for one in moved if one[0] not in present]
    single = [one for one in moved if n_files.get(one) == 1]
    return {
        "peptides": summary.n_peptides, "reported": len(moved), "false": len(wrong), "single_donor": len(single),
        "false_single_donor": sum(one[0] not in present for one in single),
    }  # fmt: skip


def fragment_spectrum(sequence: str, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return m/z and intensities of a made spectrum: some of the b and y ions, from few to nearly all, and stray peaks."""
    share = rng.uniform(0.05, 0.6)
    ions = [mass.fast_mass(sequence[:i], ion_type="b", charge=1) for i in range(2, len(sequence))]
    ions += [mass.fast_mass(sequence[i:], ion_type="y", charge=1) for i in range(1, len(sequence))]
    seen = np.array(ions)[rng.random(len(ions)) < share]
    mz = np.concatenate([seen * (1 + rng.normal(0, 4e-6, len(seen))), rng.uniform(120, 1400, _STRAY)])
    intensity = np.concatenate([rng.lognormal(8, 1, len(seen)), rng.lognormal(7.5, 1.0, _STRAY)])
    order = np.argsort(mz)
    return mz[order], intensity[order]
