"""Export a finished search for modified peptides of a project to the files that other programs read."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.run_exporting import export_run
from proteoscope.engine.modified_search.results import MODIFICATIONS_FILE, write_modification_file
from proteoscope.engine.modified_search.tables import MODIFICATIONS
from proteoscope.engine.project import Project
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.results.reader import read_stored

__all__ = ["export_modified"]


def export_modified(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write a run in one of the formats of `proteoscope.engine.matches.exporting`; as tables, that of modifications with the others. The
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
    out = request.target / MODIFICATIONS_FILE
    check_outputs([out], [one.path for one in project.inputs(request.run_id)], project.folder)
    table = read_stored(project, request.run_id, MODIFICATIONS, MODIFICATIONS.saved)
    write_modification_file(out, table, progress, spreadsheet_safe=request.spreadsheet_safe)
    return [*written, out]
