"""Export the hits of a finished structure search of a project."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.results.reader import stored_table
from proteoscope.engine.results.separated import TRIMMED, write_separated
from proteoscope.engine.structure_search.tables import HITS

__all__ = ["export_hits"]

_ROWS = 4096  # of a table in memory


def export_hits(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the hits of a run as ``hits.tsv``, as the search itself would have; the path of what was written.

    Raises
    ------
    ParameterError : there is no such format, or something that is needed would be written over.
    InputError : the project has no such finished run, or a table of it is not sound. StorageError : the disk refused, or a file is damaged.
    Cancelled : the user asked to stop.
    """
    if request.format != "tsv":
        raise ParameterError(f"there is no format '{request.format:.40}'; expected tsv")
    check_outputs([request.target], [one.path for one in project.inputs(request.run_id)], project.folder)
    progress.stage("Exporting hits", sum(result.rows or 0 for result in project.results(request.run_id) if result.name == "hits"))
    with stored_table(project, request.run_id, HITS, HITS.saved, verify=False) as source:
        # All columns are checked, including those that are not exported.
        rows = source.batches(rows=_ROWS)
        write_separated(request.target, rows, HITS.saved_columns, progress, TRIMMED, spreadsheet_safe=request.spreadsheet_safe, rows=_ROWS)
    return [request.target]
