"""Small questions to Arrow's types and columns, which reading and writing of tables ask alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["in_one", "is_list", "is_text"]


def in_one(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, of values and not of numbers of a dictionary."""
    import pyarrow as pa

    if column.num_chunks == 1:
        array = column.chunk(0)
    else:
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists, of one length or of several."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether values are texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
