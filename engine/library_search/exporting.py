"""Export a finished search of libraries to the files that other programs read."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.tables import MATCHES
from proteoscope.engine.matches.run_exporting import export_run
from proteoscope.engine.project import Project
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.results.separated import ROUNDED, report_rated, write_separated

__all__ = ["export_library_matches"]


def export_library_matches(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write a run in one of the formats of `proteoscope.engine.matches.exporting`; as tables, all library matches with the others. The
    paths.

    Raises
    ------
    ParameterError : there is no such format, or something that is needed would be written over.
    InputError : the project has no such finished run. StorageError : the disk refused, or a table is damaged.
    Cancelled : the user asked to stop.
    """
    written = export_run(project, request, progress)
    if request.format != "tsv":
        return written
    out = request.target / f"{MATCHES.name}.tsv"
    check_outputs([out], [one.path for one in project.inputs(request.run_id)], project.folder)
    found = read_stored(project, request.run_id, MATCHES, MATCHES.saved)
    write_separated(out, found, MATCHES.saved_columns, progress, ROUNDED, spreadsheet_safe=request.spreadsheet_safe)
    run = next(one for one in project.runs() if one.id == request.run_id)
    report_rated(progress, out, found["q_value"], float(run.parameters["fdr"]))
    return [*written, out]
