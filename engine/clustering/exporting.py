"""Export what a finished run found: clusters and consensus spectra, or explained spectra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.clustering.results import COLUMNS, DECIMALS, EXPLAINED_COLUMNS, write_consensus_file
from engine.entry import ExportRequest
from engine.errors import InputError, ParameterError, StorageError
from engine.formats.separated import write_separated
from engine.jobs.progress import Progress
from engine.project import Project
from engine.project.outputs import check_outputs

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["export_clusters", "export_explained"]


def export_clusters(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the clusters of a run as ``tsv``, or its consensus spectra as ``mgf``, as the search itself would have; the path.

    Raises
    ------
    ParameterError : there is no such format, or something that is needed would be written over.
    InputError : the project has no such finished run. StorageError : the disk refused, or a table is damaged.
    Cancelled : the user asked to stop.
    """
    if request.format != "mgf":
        return _export_table(project, request, progress, "members", COLUMNS)
    _check(project, request)
    members = _table(project, request.run_id, "members", ("cluster", "title", "is_consensus"))
    consensus = _table(project, request.run_id, "consensus", ("cluster", "precursor_mz", "charge", "mz", "intensity"))
    write_consensus_file(request.target, consensus, members, progress)
    return [request.target]


def export_explained(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the explained spectra of a run as ``tsv``, as the search itself would have; the path. Raises as `export_clusters`."""
    return _export_table(project, request, progress, "explained", EXPLAINED_COLUMNS)


def _export_table(project: Project, request: ExportRequest, progress: Progress, name: str, columns: tuple[str, ...]) -> list[Path]:
    if request.format != "tsv":
        raise ParameterError(f"there is no format '{request.format:.40}'; expected tsv")
    _check(project, request)
    table = _table(project, request.run_id, name, columns)
    progress.stage("Exporting the table", len(table))
    write_separated(request.target, table, columns, progress, decimals=DECIMALS, spreadsheet_safe=request.spreadsheet_safe)
    return [request.target]


def _check(project: Project, request: ExportRequest) -> None:
    check_outputs([request.target], [one.path for one in project.inputs(request.run_id)], project.folder)


def _table(project: Project, run: str, name: str, columns: tuple[str, ...]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = project.table(name, run)
    try:
        with pq.ParquetFile(path) as file:
            if missing := [one for one in columns if one not in file.schema_arrow.names]:
                raise InputError(path, f"has no column {missing[0]}", remedy="Do the search again")
            return file.read(columns=list(columns))
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: the table is damaged ({' '.join(str(error).split())}). Do the search again.") from error
