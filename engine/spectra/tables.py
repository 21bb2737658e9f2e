"""The table of a run's spectra with their peaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.jobs.progress import Progress
from engine.project.run import Run
from engine.spectra.columns import Spectra

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["spectra_table", "write_spectra"]

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
