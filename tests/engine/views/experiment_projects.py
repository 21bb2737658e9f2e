"""Projects with an experiment whose runs were identified."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from proteoscope.engine.experiments.table import add_rows, describe_files, write_experiment
from proteoscope.engine.jobs import Progress
from proteoscope.engine.project import Project, RunInput
from tests.engine.identification_tables import Identification, identification
from tests.engine.views.compared_projects import varied
from tests.engine.views.result_projects import PARAMETERS, spectra_table

__all__ = ["PATTERN", "project_with_experiment"]

PATTERN = r"(?P<condition>[a-z]+)_(?P<replicate>\d+)"


def project_with_experiment(
    folder: Path,
    names: Collection[str] = ("control_1", "control_2", "treated_1", "treated_2"),
    n_done: int = 3,
    n_spectra: int = 60,
    last_parameters: Mapping[str, Any] = PARAMETERS,
) -> tuple[Project, list[Identification]]:
    """Return a project with runs of files of these names, and the results of the first `n_done` runs, which are finished.

    The last finished run has `last_parameters`.
    """
    project = Project.create_or_open(folder)
    files = [folder.parent / f"{name}.mgf" for name in names]
    for file in files:
        file.write_text(f"BEGIN IONS\nTITLE={file.stem}\nPEPMASS=500\nCHARGE=2+\n100 1\nEND IONS\n")
    rows, _ = add_rows((), describe_files(files, PATTERN), project, Progress())
    write_experiment(project, rows)
    base = identification(n_spectra)
    identifications = [base, *(varied(base, seed) for seed in range(1, n_done))][:n_done]
    spectra: pa.Table = spectra_table(base, n_noise=20)
    for row, results in zip(rows, identifications, strict=False):
        parameters = last_parameters if results is identifications[-1] else PARAMETERS
        with project.run("identify", dict(parameters), inputs=[RunInput(Path(row.file), "spectra")], name=row.run) as run:
            for name in ("psms", "peptides", "proteins"):
                run.write_table(name, getattr(results, name))
            run.write_table("spectra", spectra)
    return project, identifications
