"""Export the matches of a finished run of a project to the files that other programs read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.libraries.writing import LIBRARY_FORMATS
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.columns import READING_FRAMES
from proteoscope.engine.matches.exporting import ExportFormat, export
from proteoscope.engine.matches.library_exporting import export_library
from proteoscope.engine.matches.search_passes import engine_of_run, passes_of_run
from proteoscope.engine.matches.writers.tables import IdentificationTables
from proteoscope.engine.project import Project
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.version import VERSION

__all__ = ["export_run"]

_TABLES = ("psms", "peptides", "proteins")


def export_run(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write a run in one of the formats of `proteoscope.engine.matches.exporting`; the paths of what was written.

    Raises
    ------
    ParameterError : there is no such format, or something that is needed would be written over.
    InputError : the project has no such finished run. StorageError : the disk refused, or a table is damaged.
    Cancelled : the user asked to stop.
    """
    if request.format in LIBRARY_FORMATS:
        return export_library(project, request, progress)
    if request.format not in get_args(ExportFormat):
        raise ParameterError(
            f"there is no format '{request.format}'; expected one of {', '.join((*get_args(ExportFormat), *LIBRARY_FORMATS))}"
        )
    inputs = project.inputs(request.run_id)
    paths = [project.table(name, request.run_id) for name in _TABLES]
    if any(one.name == READING_FRAMES.name for one in project.results(request.run_id)):
        project.table(READING_FRAMES.name, request.run_id)  # it is what was written
    run = next(one for one in project.runs() if one.id == request.run_id)
    outputs = [request.target / f"{name}.tsv" for name in _TABLES] if request.format == "tsv" else [request.target]
    check_outputs(outputs, [one.path for one in inputs], project.folder)
    tables = replace(IdentificationTables.of_folder(paths[0].parent), marks=project.row_marks(request.run_id, "psms"))
    return export(
        tables, request.format, request.target, run.parameters, progress,
        spectra=[str(one.path) for one in inputs if one.kind == "spectra"],
        databases=[str(one.path) for one in inputs if one.kind == "database"],
        version=VERSION, passes=passes_of_run(project, request.run_id), spreadsheet_safe=request.spreadsheet_safe,
        accepted_only=request.accepted_only, engine=engine_of_run(project, request.run_id),
    )  # fmt: skip
