"""Projects with runs to compare: an identification, and others that partly agree with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from proteoscope.engine.project import Project
from tests.engine.identification_tables import PEPTIDE_TYPES, PSM_TYPES, Identification, identification
from tests.engine.views.result_projects import PARAMETERS, spectra_table

ANSWER = (
    *("peptide", "sequence", "proteins", "modification_positions", "modification_names", "modification_masses", "modification_unimod"),
    *("protein_starts", "residues_before", "residues_after", "is_decoy", "calculated_mass"),
)
"""Columns of a PSM that describe its peptide."""


def varied(base: Identification, seed: int) -> Identification:
    """Return results of another search of the same spectra: partly the same, partly different, partly missing."""
    random = np.random.default_rng(seed)
    original = base.psms.to_pylist()
    rows: list[dict[str, Any]] = []
    for psm in original:
        row = dict(psm)
        if random.random() < 0.15:
            continue
        if random.random() < 0.2:
            donor = original[int(random.integers(len(original)))]
            row |= {name: donor[name] for name in ANSWER}
        if random.random() < 0.2:
            # Isoleucine and leucine have the same mass.
            row["sequence"] = row["sequence"].replace("I", "L")
        if row["modification_masses"] and random.random() < 0.2:
            # Another program writes fewer decimals.
            row["modification_masses"] = [round(mass, 3) for mass in row["modification_masses"]]
        if "M" in row["sequence"] and row["modification_positions"] and random.random() < 0.2:
            shifted = [min(position + 1, len(row["sequence"])) for position in row["modification_positions"]]
            row["modification_positions"] = shifted
        row["q_value"] = float(10 ** random.uniform(-4, -1))
        row["peptide_q_value"] = float(10 ** random.uniform(-4, -1))
        row["score"] = row["score"] * 3 + float(random.normal())
        row["psm_id"] = len(rows)
        rows.append(row)
    best: dict[tuple[str, bool], dict[str, Any]] = {}
    for row in rows:
        if row["rank"] == 1:
            best.setdefault((row["peptide"], row["is_decoy"]), row)
    peptides = [
        {
            **{
                name: row[name]
                for name in ("peptide", "sequence", "proteins", "is_decoy", "calculated_mass", "posterior_error_probability")
            },
            "q_value": row["peptide_q_value"],
            "n_psms": 1,
            "best_score": row["score"],
            "best_psm": row["psm_id"],
        }
        for row in best.values()
    ]
    proteins = base.proteins.filter(pa.array(random.random(len(base.proteins)) < 0.8))
    q_value = pa.array(10 ** random.uniform(-4, -1, len(proteins)))
    proteins = proteins.set_column(proteins.schema.get_field_index("q_value"), "q_value", q_value)
    tables = (pa.Table.from_pylist(rows, PSM_TYPES), pa.Table.from_pylist(peptides, PEPTIDE_TYPES), proteins)
    return Identification(*tables, base.database, base.spectra)


def add_run(project: Project, results: Identification, spectra: pa.Table | None = None) -> str:
    """Store an identification as a run, in the order of its rows and with spectra if given, and return the run's id."""
    with project.run("identify", PARAMETERS) as run:
        for name in ("psms", "peptides", "proteins"):
            run.write_table(name, getattr(results, name))
        if spectra is not None:
            run.write_table("spectra", spectra)
    return run.id


def project_with_runs(folder: Path, n_runs: int = 3, n_spectra: int = 120) -> tuple[Project, list[Identification]]:
    """Return a project whose runs identify the same spectra, and their results."""
    base = identification(n_spectra)
    project = Project.create_or_open(folder)
    identifications = [base, *(varied(base, seed) for seed in range(1, n_runs))]
    spectra = spectra_table(base)
    for results in identifications:
        add_run(project, results, spectra)
    return project, identifications
