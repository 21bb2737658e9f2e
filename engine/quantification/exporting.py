"""Export quantities: the tables, and those by sample with a column for each sample."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.quantification.corrections import read_quantities
from proteoscope.engine.quantification.msstats import write_msstats
from proteoscope.engine.quantification.mztab import write_mztab
from proteoscope.engine.quantification.results import write_wide
from proteoscope.engine.quantification.tables import TABLES, file_of
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["export_quantities"]


def export_quantities(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write a run as ``tsv``, a folder of all tables, or ``matrix``, a folder of tables with a column for each sample, ``msstats``, the
    input of MSstats or MSstatsTMT, or ``mztab``, proteins and peptidoforms as mzTab 1.0, both a file; the paths.

    Raises
    ------
    ParameterError : there is no such format, or something that is needed would be written over.
    InputError : the project has no such finished run, or a table of it is not sound. StorageError : the disk refused.
    Cancelled : the user asked to stop.
    """
    check_outputs([request.target], [one.path for one in project.inputs(request.run_id)], project.folder)
    tables = read_quantities(project, request.run_id)
    if request.format == "tsv":
        written = []
        for one in TABLES:
            found = tables[one.name]
            progress.stage(f"Exporting {one.title.lower()}", len(found))
            written.append(request.target / file_of(one))
            write_separated(written[-1], found, one.saved_columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
        return written
    if request.format == "matrix":
        progress.stage("Exporting quantities by sample")
        return write_wide(request.target, tables, progress, spreadsheet_safe=request.spreadsheet_safe)
    if request.format == "msstats":
        progress.stage("Exporting the input of MSstats")
        return [write_msstats(request.target, tables, progress, spreadsheet_safe=request.spreadsheet_safe)]
    if request.format == "mztab":
        progress.stage("Exporting mzTab")
        files = [one.path for one in project.inputs(request.run_id) if one.kind == "spectra"]
        return [write_mztab(request.target, tables, files, _fixed_modifications(project, request.run_id), progress)]
    raise ParameterError(f"there is no format '{request.format:.40}'; expected tsv, matrix, msstats or mztab")


def _fixed_modifications(project: Project, run_id: str) -> list[str] | None:
    """Return the fixed modifications of the identifications that a run quantifies, None where one does not name them."""
    # An import knows only what the user names of those that its file leaves out.
    parameters = {run.id: run.parameters for run in project.runs() if run.kind != "import" or run.parameters.get("fixed_modifications")}
    sources = project.record(run_id).get("source_runs")
    found: dict[str, None] = {}
    for name in sources if isinstance(sources, list) else [""]:
        named = parameters.get(name, {}).get("fixed_modifications")
        if not isinstance(named, list | tuple):
            return None
        found.update(dict.fromkeys(map(str, named)))
    return list(found)
