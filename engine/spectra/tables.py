"""The table of a run's spectra with their peaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError, StorageError
from engine.jobs.progress import Progress
from engine.project.run import Run
from engine.spectra.columns import Spectra

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_spectra_table", "spectra_table", "write_spectra"]

_SPECTRA_PER_GROUP = 256  # a window draws one at a time
_SPECTRA_PER_PIECE = 16 * _SPECTRA_PER_GROUP


def write_spectra(run: Run, spectra: Spectra, progress: Progress) -> None:
    """Write the spectra with their peaks as ``spectra`` of a run, piece by piece, so that a cancel is heeded in between.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    table = spectra_table(spectra)
    with run.table_writer("spectra", table.schema, _SPECTRA_PER_GROUP) as writer:
        for first in range(0, len(table), _SPECTRA_PER_PIECE):
            writer.write(table.slice(first, _SPECTRA_PER_PIECE))
            progress.check()


def spectra_table(spectra: Spectra) -> pa.Table:
    """The spectra with their peaks as read, a row each, so that they can be drawn without the file they came from."""
    import pyarrow as pa

    offsets = pa.array(spectra.offsets, pa.int64())
    return pa.table(
        {
            "spectrum": pa.array(np.arange(len(spectra))),
            "spectrum_file": pa.array(spectra.files).take(pa.array(spectra.file)),
            "spectrum_id": pa.array(spectra.identifier),
            "scan": pa.array(spectra.scan, mask=spectra.scan < 0),
            "spectrum_index": pa.array(spectra.index),
            "retention_time": pa.array(spectra.retention_time, mask=np.isnan(spectra.retention_time)),
            "precursor_mz": pa.array(spectra.precursor_mz),
            "precursor_intensity": pa.array(spectra.precursor_intensity),
            "charge_mask": pa.array(spectra.charge_mask),
            "mz": pa.LargeListArray.from_arrays(offsets, pa.array(spectra.mz)),
            "intensity": pa.LargeListArray.from_arrays(offsets, pa.array(spectra.intensity)),
        }
    )


def read_spectra_table(path: Path) -> Spectra:
    """Spectra with their peaks from a table that `write_spectra` wrote, or that a stranger did.

    Raises
    ------
    InputError : it is no such table. StorageError : it is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    remedy = "Run the identification again"
    try:
        with pq.ParquetFile(path) as file:
            if not {"mz", "intensity"} <= set(file.schema_arrow.names):
                raise InputError(path, "holds no peaks", remedy=remedy)
            table = file.read()
        n = len(table)
        if any(table[name].null_count for name in ("spectrum_file", "spectrum_id", "spectrum_index", "charge_mask")):
            raise ValueError("something is missing")
        offsets, mz = _lists(table, "mz", np.float64)
        other, intensity = _lists(table, "intensity", np.float32)
        file_names = table["spectrum_file"].cast(pa.string()).combine_chunks().dictionary_encode()
        if isinstance(file_names, pa.ChunkedArray):
            file_names = file_names.combine_chunks()
        columns: dict[str, Any] = {
            "files": tuple(file_names.dictionary.to_pylist()),
            "file": file_names.indices.to_numpy(zero_copy_only=False).astype(np.int32),
            "identifier": table["spectrum_id"].cast(pa.string()).to_pylist(),
            "scan": table["scan"].cast(pa.int64()).fill_null(-1).to_numpy(),
            "index": table["spectrum_index"].cast(pa.int64()).to_numpy(),
            "retention_time": table["retention_time"].cast(pa.float64()).to_numpy(),
            "precursor_mz": table["precursor_mz"].cast(pa.float64()).to_numpy(),
            "precursor_intensity": table["precursor_intensity"].cast(pa.float32()).to_numpy(),
            "charge_mask": table["charge_mask"].cast(pa.uint32()).to_numpy(),
        }
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise StorageError(f"{path}: cannot be read as a table of spectra ({' '.join(str(error).split())}). {remedy}.") from error
    is_sound = (
        np.array_equal(offsets, other)
        and np.isfinite(mz).all() and (mz > 0).all() and np.isfinite(intensity).all() and (intensity > 0).all()
    )  # fmt: skip
    inner = np.ones(max(0, len(mz) - 1), np.bool_)
    inner[offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(mz))] - 1] = False
    if not is_sound or (np.diff(mz)[inner] < 0).any() or len(offsets) != n + 1:
        raise StorageError(f"{path}: holds peaks that the program does not write. {remedy}.")
    return Spectra(offsets=offsets, mz=mz, intensity=intensity, **columns)


def _lists(table: pa.Table, name: str, dtype: Any) -> tuple[NDArray[np.int64], NDArray]:
    """Offsets and values of a column of lists of numbers.

    Raises
    ------
    ValueError : it is none, or something is missing.
    """
    import pyarrow as pa

    column = table[name].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)) or column.null_count:
        raise ValueError(f"{name} is no column of lists")
    values = column.flatten()
    if values.null_count or not pa.types.is_floating(values.type):
        raise ValueError(f"{name} is no column of lists of numbers")
    offsets = column.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], values.to_numpy().astype(dtype, copy=False)
