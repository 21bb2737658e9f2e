"""Export of the results of an identification as tables."""

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.run_exporting import export_matches
from proteoscope.engine.matches.site_tables import SITE_TABLES
from proteoscope.engine.matches.writers.tsv import write_tables
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["export_identification_tables"]


def export_identification_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the tables of PSMs, peptides, protein groups and, if the run localised modifications, sites.

    See `proteoscope.engine.entry.Search.export`. With `accepted_only`, decoy residues are left out.
    """
    written = export_matches(write_tables, project, request, progress)
    stored = {result.name for result in project.results(request.run_id)}
    for table in SITE_TABLES:
        if table.name not in stored:
            continue
        rows, out = read_stored(project, request.run_id, table, table.saved), request.target / f"{table.name}.tsv"
        if request.accepted_only and "is_decoy" in table.saved:
            rows = rows.filter(pa.compute.invert(rows["is_decoy"]))
        write_separated(out, rows, table.saved_columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
        written.append(out)
    return written
