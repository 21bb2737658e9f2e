"""Export the hits of a run of a project to the files that other programs read, as `align` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from engine.errors import InputError, ParameterError, StorageError
from engine.jobs.progress import Progress
from engine.project import Project
from engine.project.outputs import check_outputs
from engine.sequences.hits import FORMATS, Hit, QueryHits, hit_writer, hits_schema

__all__ = ["export_hits"]

_ROWS = 4096  # of a table in memory
_QUERY_COLUMNS = ("query_index", "query", "description", "sequence", "n_hits")


def export_hits(project: Project, run_id: str, format: str, target: Path, progress: Progress, *, spreadsheet_safe: bool = False) -> int:
    """Write the hits of a finished sequence search in one format, as the search itself would have; how many there are.

    They are read from the run's tables, a few at a time, so that memory does not grow with their number. The file appears whole or not at
    all.

    Parameters
    ----------
    run_id : a run of kind ``align`` that is done. format : one of `engine.sequences.hits.FORMATS`.
    target : the file; no file that the run read, and none that the project owns.
    progress : told of one stage with the number of hits, and asked whether the user wants to stop.
    spreadsheet_safe : of ``tsv``: an apostrophe stands before texts that a spreadsheet would take for formulas.

    Raises
    ------
    ParameterError : there is no such format, or `target` would be written over something that is needed.
    InputError : the project has no such finished run. StorageError : the disk refused, or a table is damaged.
    Cancelled : the user asked to stop.
    """
    if format not in FORMATS:
        raise ParameterError(f"there is no format '{format}'; expected one of {', '.join(FORMATS)}")
    check_outputs([target], [one.path for one in project.inputs(run_id)], project.folder)
    # The sizes of the tables tell most damage; their digests would take as long as the export.
    hits_path, queries_path = (project.table(name, run_id, verify=False) for name in ("hits", "queries"))
    hits = (Hit(**row) for row in _rows(hits_path, hits_schema().names))
    n_hits = 0
    with hit_writer(target, format, progress, spreadsheet_safe=spreadsheet_safe) as writer:
        progress.stage("Exporting hits", sum(one.rows or 0 for one in project.results(run_id) if one.name == "hits"))
        for row in _rows(queries_path, _QUERY_COLUMNS):
            own = list(islice(hits, row["n_hits"]))
            if len(own) != row["n_hits"] or any(hit.query_index != row["query_index"] for hit in own):
                raise StorageError(f"{hits_path}: the hits are not those of {queries_path.name}. Do the search again.")
            writer.write(QueryHits(row["query_index"], row["query"], row["description"], row["sequence"], own))
            n_hits += len(own)
            progress.advance(len(own))
        # The last look: what is finished is kept.
        progress.check()
    return n_hits


def _rows(path: Path, names: list[str] | tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The rows of a table, in their order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as table:
            if missing := [name for name in names if name not in table.schema_arrow.names]:
                raise InputError(path, f"has no column {missing[0]}", remedy="Do the search again")
            for batch in table.iter_batches(_ROWS, columns=list(names)):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: the table is damaged ({' '.join(str(error).split())}). Do the search again.") from error
