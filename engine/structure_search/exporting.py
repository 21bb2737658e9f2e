"""Export the hits of a finished structure search of a project."""

from __future__ import annotations

from pathlib import Path

from engine.entry import ExportRequest
from engine.errors import InputError, ParameterError, StorageError
from engine.jobs.progress import Progress
from engine.project import Project
from engine.project.outputs import check_outputs
from engine.structure_search.results import COLUMNS, hit_file

__all__ = ["export_hits"]

_ROWS = 4096  # of a table in memory


def export_hits(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the hits of a run as ``hits.tsv``, as the search itself would have; the path of what was written.

    Raises
    ------
    ParameterError : there is no such format, or something that is needed would be written over.
    InputError : the project has no such finished run. StorageError : the disk refused, or a table is damaged.
    Cancelled : the user asked to stop.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if request.format != "tsv":
        raise ParameterError(f"there is no format '{request.format:.40}'; expected tsv")
    check_outputs([request.target], [one.path for one in project.inputs(request.run_id)], project.folder)
    path = project.table("hits", request.run_id, verify=False)
    progress.stage("Exporting hits", sum(one.rows or 0 for one in project.results(request.run_id) if one.name == "hits"))
    try:
        with pq.ParquetFile(path) as table, hit_file(request.target, spreadsheet_safe=request.spreadsheet_safe) as write:
            if missing := [name for name in COLUMNS if name not in table.schema_arrow.names]:
                raise InputError(path, f"has no column {missing[0]}", remedy="Do the search again")
            for batch in table.iter_batches(_ROWS, columns=list(COLUMNS)):
                for row in batch.to_pylist():
                    write(row)
                progress.advance(len(batch))
            # The last look: what is finished is kept.
            progress.check()
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: the table is damaged ({' '.join(str(error).split())}). Do the search again.") from error
    return [request.target]
