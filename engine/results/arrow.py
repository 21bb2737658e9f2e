"""Helpers for Arrow columns: creation, concatenation, types and sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proteoscope.engine.lazy_pyarrow import pa

__all__ = ["finite_or_null", "in_one", "is_list", "is_text", "or_null", "taken", "text_bytes", "written_out_bytes"]


def in_one(column: pa.ChunkedArray) -> pa.Array:
    """Return a chunked column as one array, with dictionaries decoded."""
    if column.num_chunks == 1:
        array = column.chunk(0)
    else:
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def or_null(values: NDArray[np.floating]) -> pa.Array:
    """Return an array of any shape as one flat column of numbers; NaN becomes null."""
    flat = values.ravel()
    return pa.array(flat, mask=np.isnan(flat))


def finite_or_null(values: ArrayLike) -> pa.Array:
    """Return numbers as a column; NaN and infinite numbers become null."""
    return or_null(np.where(np.isfinite(values), values, np.nan))


def taken(texts: Sequence[str] | pa.Array, rows: NDArray[np.integer]) -> pa.Array:
    """Return the texts at the indices `rows` as a column; a negative index gives null."""
    texts = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    return texts.take(pa.array(rows, mask=rows < 0))


def is_list(kind: pa.DataType) -> bool:
    """Return True for list types of fixed or variable length."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return True for text types."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def text_bytes(texts: pa.StringArray) -> bytes:
    """Return the concatenated UTF-8 bytes of a column of texts without nulls."""
    _, offsets, symbols = texts.buffers()
    if symbols is None or not len(texts):
        return b""
    ends = memoryview(offsets).cast("i")
    return bytes(memoryview(symbols)[ends[texts.offset] : ends[texts.offset + len(texts)]])


def written_out_bytes(column: pa.ChunkedArray | pa.Array) -> int:
    """Return the size that a column would have, in bytes, if every value was stored in full, without a dictionary."""
    if isinstance(column, pa.ChunkedArray):
        return sum(map(written_out_bytes, column.chunks))
    if is_list(column.type):
        return 8 * len(column) + written_out_bytes(column.flatten())
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pa.compute.fill_null(pa.compute.binary_length(column.dictionary), 0)
    return (
        8 * len(column) + int(pa.compute.sum(lengths.take(pa.compute.fill_null(column.indices, 0))).as_py() or 0)
        if len(lengths)
        else 8 * len(column)
    )
