"""Export of the matches of a library search as tables."""

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.tables import MATCHES
from proteoscope.engine.matches.run_exporting import export_matches, export_sites
from proteoscope.engine.matches.writers.tsv import write_tables
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.results.separated import ROUNDED, report_rated, write_separated

__all__ = ["export_library_tables"]


def export_library_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write PSMs, peptides, protein groups, all library matches and sites (see `proteoscope.engine.entry.Search.export`)."""
    written = export_matches(write_tables, project, request, progress)
    out = request.target / f"{MATCHES.name}.tsv"
    result = read_stored(project, request.run_id, MATCHES, MATCHES.saved)
    write_separated(out, result, MATCHES.saved_columns, progress, ROUNDED, spreadsheet_safe=request.spreadsheet_safe)
    run = next(run for run in project.runs() if run.id == request.run_id)
    report_rated(progress, out, result["q_value"], float(run.parameters["fdr"]))
    return [*written, out, *export_sites(project, request, progress)]
