"""Export the alignments of a finished run of a project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.entry import ExportRequest
from engine.errors import InputError, ParameterError, StorageError
from engine.jobs.progress import Progress
from engine.project import Project
from engine.project.outputs import check_outputs
from engine.read_alignment.results import write_alignments
from engine.read_alignment.tables import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["export_alignments"]

_ROWS = 1 << 16  # of a table in memory


def export_alignments(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the alignments of a run as the run itself would have; the path of what was written.

    Raises
    ------
    ParameterError : there is no such format, or something that is needed would be written over.
    InputError : the project has no such finished run. StorageError : the disk refused, or a table is damaged.
    Cancelled : the user asked to stop.
    """
    import pyarrow as pa

    if request.format != "tsv":
        raise ParameterError(f"there is no format '{request.format:.40}'; expected tsv")
    check_outputs([request.target], [one.path for one in project.inputs(request.run_id)], project.folder)
    path = project.table("alignments", request.run_id, verify=False)
    progress.stage("Exporting alignments", sum(one.rows or 0 for one in project.results(request.run_id) if one.name == "alignments"))
    try:
        write_alignments(request.target, _tables(path), progress, spreadsheet_safe=request.spreadsheet_safe)
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: the table is damaged ({' '.join(str(error).split())}). Do the search again.") from error
    return [request.target]


def _tables(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        if missing := [name for name in COLUMNS if name not in file.schema_arrow.names]:
            raise InputError(path, f"has no column {missing[0]}", remedy="Do the search again")
        for batch in file.iter_batches(_ROWS, columns=list(COLUMNS)):
            yield pa.Table.from_batches([batch])
