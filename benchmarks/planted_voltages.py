"""Quantities in synthetic FAIMS runs that cycle through compensation voltages; each voltage transmits other peptides."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import table_of, voltage_run, write_project

__all__ = ["quantified_ions"]


def quantified_ions(seed: int, n_voltages: int) -> dict:
    """Return the number of ions of a run with a quantity, and the median error of their areas against those of a run at one voltage."""
    run, peptides = voltage_run(seed, n_voltages)
    with tempfile.TemporaryDirectory() as folder:
        project = write_project(Path(folder) / "p", {"one": run}, {f"P{i}": [peptide] for i, peptide in enumerate(peptides)})
        run_search("quantify", {"project": [project]}, device="cpu", threads=2)
        areas = {row["peptide"]: row["area"] for row in table_of(project, "ion_traces") if row["area"] is not None}
    amounts = {planted_peptide.sequence: planted_peptide.amount for planted_peptide in run.planted}
    error = [abs(np.log2(area / amounts[peptide])) for peptide, area in areas.items()]
    return {"ions": len(peptides), "quantified": len(areas), "median_error": round(float(np.median(error)), 4) if error else None}
