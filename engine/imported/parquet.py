"""Parquet reports of other programs as the cells that their reports as text have, looked through as a stranger's tables are."""

from __future__ import annotations

import numpy as np

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.separated_cells import Cells
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import TableFile

__all__ = ["read_parquet"]

_MAXIMUM_ROWS = 5_000_000


def read_parquet(source: ByteSource, table: Table, remedy: str, progress: Progress) -> Cells:
    """Return the columns of a Parquet file that a description names, those of them that it has, as texts.

    Parameters
    ----------
    source : of the file, which is opened again by its path: Parquet is read from its end. table : names and types of the columns; those
        that are not optional must be there. remedy : what the user can do about another table.

    Raises
    ------
    InputError : it is packed once more, or no such table, or damaged, or has a nested column where a plain one belongs, or too many rows,
        or unpacks to far more than its size. Cancelled : the user asked to stop.
    """
    if source.is_gzip:
        raise InputError(source.path, "is a Parquet table that is packed with gzip", remedy="Unpack it first")
    with TableFile(source.path, table, remedy=remedy) as file:
        if file.n_rows > _MAXIMUM_ROWS:
            raise InputError(
                source.path,
                f"the table has {file.n_rows:,} rows, more than {_MAXIMUM_ROWS:,}",
                remedy="Give the report of fewer runs, or one that is filtered",
            )
        names = list(file.columns)
        parts: dict[str, list[pa.Array]] = {name: [] for name in names}
        n_rows = 0
        for piece in file.batches(names):
            progress.check()
            n_rows += len(piece)
            for name in names:
                parts[name] += pa.compute.fill_null(piece[name].cast(pa.string()), "").chunks
        progress.advance(source.size)
    columns = [pa.concat_arrays(parts[name]) if parts[name] else pa.array([], pa.string()) for name in names]
    return Cells(source.path, names, columns, np.arange(1, n_rows + 1), place_name="row")
