"""Export quantities: the tables, and those by sample with a column for each sample."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.corrections import read_quantities
from proteoscope.engine.quantification.msstats import write_msstats
from proteoscope.engine.quantification.mztab import write_mztab
from proteoscope.engine.quantification.results import write_wide
from proteoscope.engine.quantification.tables import TABLES, file_of
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["export_matrix", "export_msstats", "export_mztab", "export_tables"]


def export_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the tables of a run; see `proteoscope.engine.entry.Search.export`."""
    tables, written = read_quantities(project, request.run_id), []
    for table in TABLES:
        found = tables[table.name]
        progress.stage(f"Exporting {table.title.lower()}", len(found))
        written.append(request.target / file_of(table))
        write_separated(written[-1], found, table.saved_columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
    return written


def export_matrix(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write tables with a column for each sample; see `proteoscope.engine.entry.Search.export`."""
    progress.stage("Exporting quantities by sample")
    return write_wide(request.target, read_quantities(project, request.run_id), progress, spreadsheet_safe=request.spreadsheet_safe)


def export_msstats(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the input of MSstats or MSstatsTMT; see `proteoscope.engine.entry.Search.export`."""
    progress.stage("Exporting the input of MSstats")
    tables = read_quantities(project, request.run_id)
    return [write_msstats(request.target, tables, progress, spreadsheet_safe=request.spreadsheet_safe)]


def export_mztab(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write proteins and peptidoforms as mzTab 1.0; see `proteoscope.engine.entry.Search.export`."""
    progress.stage("Exporting mzTab")
    files = [one.path for one in project.inputs(request.run_id) if one.kind == "spectra"]
    tables = read_quantities(project, request.run_id)
    return [write_mztab(request.target, tables, files, _fixed_modifications(project, request.run_id), progress)]


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
