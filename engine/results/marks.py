"""Stars and comments that users give to rows, in displayed and exported tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import RowMark
from proteoscope.engine.results.columns import MARK_COLUMNS, STAR

__all__ = ["marks_table", "with_marks"]


def marks_table(marks: Mapping[int, RowMark]) -> pa.Table:
    """Return a table of the marked rows, in ascending order, with the columns ``row`` and `MARK_COLUMNS`."""
    rows = sorted(marks)
    starred, comment = MARK_COLUMNS
    return pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            starred.name: pa.array([STAR if marks[row].is_starred else "" for row in rows], pa.string()),
            comment.name: pa.array([marks[row].comment for row in rows], pa.string()),
        }
    )


def with_marks(tables: Iterable[pa.Table], marks: Mapping[int, RowMark]) -> Iterator[pa.Table]:
    """Yield the chunks of a table with the columns `MARK_COLUMNS` added; comments of unmarked rows are ''."""
    marked, first = marks_table(marks), 0
    rows = marked["row"].to_numpy()
    for chunk in tables:
        low, high = np.searchsorted(rows, (first, first + len(chunk)))
        position = np.full(len(chunk), -1, np.int64)
        position[rows[low:high] - first] = np.arange(low, high)
        index = pa.array(position, mask=position < 0)
        for mark_column in MARK_COLUMNS:
            chunk = chunk.append_column(mark_column.name, marked[mark_column.name].take(index).fill_null(""))
        first += len(chunk)
        yield chunk
