"""Export of the results of an open modification search as tables."""

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.run_exporting import export_matches, export_sites
from proteoscope.engine.matches.writers.tsv import write_tables
from proteoscope.engine.modified_search.results import MODIFICATIONS_FILE, write_modification_file
from proteoscope.engine.modified_search.tables import MODIFICATIONS
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import read_stored

__all__ = ["export_modified_tables"]


def export_modified_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the tables of PSMs, peptides, protein groups, modifications and sites (see `proteoscope.engine.entry.Search.export`)."""
    written = export_matches(write_tables, project, request, progress)
    out = request.target / MODIFICATIONS_FILE
    table = read_stored(project, request.run_id, MODIFICATIONS, MODIFICATIONS.saved)
    write_modification_file(out, table, progress, spreadsheet_safe=request.spreadsheet_safe)
    return [*written, out, *export_sites(project, request, progress)]
