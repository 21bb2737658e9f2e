"""Export of the hits of a finished structure search."""

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import stored_table
from proteoscope.engine.results.separated import TRIMMED, write_separated
from proteoscope.engine.structure_search.tables import HITS

__all__ = ["export_hits"]

_ROWS = 4096  # maximum rows of a table in memory


def export_hits(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the hits of a run in the way in which the search writes them (see `proteoscope.engine.entry.Search.export`)."""
    progress.stage("Exporting hits", sum(result.rows or 0 for result in project.results(request.run_id) if result.name == "hits"))
    with stored_table(project, request.run_id, HITS, HITS.saved, verify=False) as source:
        # All columns are checked, including those that are not exported.
        rows = source.batches(rows=_ROWS)
        write_separated(request.target, rows, HITS.saved_columns, progress, TRIMMED, spreadsheet_safe=request.spreadsheet_safe, rows=_ROWS)
    return [request.target]
