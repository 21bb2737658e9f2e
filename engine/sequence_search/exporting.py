"""Export the hits of a run of a project to the files that other programs read, as `align` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.arrays import Texts, offsets_of
from engine.errors import InputError, ParameterError, StorageError
from engine.jobs.progress import Progress
from engine.project import Project
from engine.project.outputs import check_outputs
from engine.sequences.hits import FORMATS, Hits, QueryHits, hit_writer, hits_schema
from engine.sequences.matrices import LETTERS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["export_hits"]

_ROWS = 4096  # of a table in memory


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
    n_hits = 0
    with hit_writer(target, format, progress, spreadsheet_safe=spreadsheet_safe) as writer:
        progress.stage("Exporting hits", sum(one.rows or 0 for one in project.results(run_id) if one.name == "hits"))
        for found in _found(hits_path, queries_path):
            for piece in found.pieces():
                writer.write(piece)
                progress.advance(len(piece.hits))
            n_hits += len(found.hits)
        # The last look: what is finished is kept.
        progress.check()
    return n_hits


def _found(hits_path: Path, queries_path: Path) -> Iterator[QueryHits]:
    """The queries of a run with their hits, some at a time, in their order."""
    import pyarrow as pa

    hits, wrong = _Rows(hits_path, hits_schema()), f"{hits_path}: the hits are not those of {queries_path.name}. Do the search again."
    for batch in _batches(queries_path, pa.schema([pa.field(name, kind) for name, kind in _query_columns()])):
        index, n_hits = (batch.column(name).to_numpy() for name in ("query_index", "n_hits"))
        names, descriptions, letters = (Texts.of_arrow(batch.column(name)) for name in ("query", "description", "sequence"))
        if (n_hits < 0).any():
            raise StorageError(wrong)
        offsets, first = offsets_of(n_hits), 0
        while first < len(index):
            last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _ROWS, side="right")) - 1)
            own = hits.take(int(offsets[last] - offsets[first]))
            if own is None or not np.array_equal(own.query_index, np.repeat(index[first:last], n_hits[first:last])) or not _are_drawn(own):
                raise StorageError(wrong)
            some = slice(first, last)
            own_offsets = offsets[first : last + 1] - offsets[first]
            yield QueryHits(index[some], names[some], descriptions[some], letters[some], own_offsets, own)
            first = last


def _query_columns() -> list[tuple[str, pa.DataType]]:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("query", "description", "sequence")]
    return [("query_index", pa.int64()), *texts, ("n_hits", pa.int32())]


def _are_drawn(hits: Hits) -> bool:
    """Whether the three lines of each alignment are of one length, and of nothing but residues, gaps and marks."""
    lines = hits.aligned_query, hits.aligned_middle, hits.aligned_subject
    are_long = (np.array_equal(np.diff(line.offsets), hits.alignment_length) for line in lines)
    return all(are_long) and all(bool(_IS_DRAWN[line.own].all()) for line in lines)


_IS_DRAWN = np.zeros(256, bool)
_IS_DRAWN[np.frombuffer(f"{LETTERS}-+ ".encode(), np.uint8)] = True


class _Rows:
    """The rows of a table of hits, taken so many at a time."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema, self._batches = schema, _batches(path, schema)
        self._held: list[pa.RecordBatch] = []

    def take(self, n: int) -> Hits | None:
        """The next rows; None where there are not so many."""
        import pyarrow as pa

        while sum(map(len, self._held)) < n:
            batch = next(self._batches, None)
            if batch is None:
                return None
            self._held.append(batch)
        table = pa.Table.from_batches(self._held, self._schema)
        self._held = table.slice(n).to_batches()
        return Hits.of_table(table.slice(0, n))


def _batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A table's columns of a schema, some rows at a time, in their order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as table:
            if missing := [name for name in schema.names if name not in table.schema_arrow.names]:
                raise InputError(path, f"has no column {missing[0]}", remedy="Do the search again")
            for batch in table.iter_batches(_ROWS, columns=schema.names):
                found = [batch.column(field.name).cast(field.type) for field in schema]
                if any(one.null_count for one in found):
                    raise pa.ArrowInvalid("a value is missing")
                yield pa.record_batch(found, schema=schema)
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: the table is damaged ({' '.join(str(error).split())}). Do the search again.") from error
