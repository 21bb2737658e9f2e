"""Table of the spectra of a run with their peaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.activation import Activation, activation_names, parse_activation_names
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.arrow import or_null, taken
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.columns import OtherPrecursors, Spectra
from proteoscope.engine.spectra.spooling import release_pages

__all__ = ["PEAKS", "SPECTRA", "SPECTRUM_COLUMNS", "read_spectra_table", "spectra_table", "spectrum_columns", "write_spectra"]

_SPECTRA_PER_BATCH = 4096
# The window reads single spectra, and with each its row group. A group has about the first number of peaks, but at least the second number
# of spectra, since each group takes time and space.
_PEAKS_PER_GROUP, _FEWEST_SPECTRA_PER_GROUP = 1 << 15, 256


def write_spectra(run: Run, spectra: Spectra, progress: Progress, name: str = "spectra") -> None:
    """Write spectra with their peaks as a table of a run.

    Parameters
    ----------
    run : Run
        Run.
    spectra : Spectra
        Spectra.
    progress : Progress
        Progress, which is checked for cancellation after each batch.
    name : str
        Name of the table.

    Raises
    ------
    StorageError
        If the disk is full or cannot be written.
    Cancelled
        If the user cancels.
    """
    table = spectra_table(spectra)
    spectra_per_group = max(_FEWEST_SPECTRA_PER_GROUP, _PEAKS_PER_GROUP * len(spectra) // max(len(spectra.mz), 1))
    with run.table_writer(name, table.schema, spectra_per_group) as writer:
        for first in range(0, len(table), _SPECTRA_PER_BATCH):
            writer.write(table.slice(first, _SPECTRA_PER_BATCH))
            progress.check()
            for column in (spectra.mz, spectra.intensity):
                release_pages(column)


SPECTRA = Table.from_columns(
    "spectra",
    "Spectra",
    (
        Column("spectrum", meaning="Row of the spectrum in the table of spectra, from 0", kind="identifier"),
        Column("spectrum_file", meaning="File of the spectrum"),
        Column("spectrum_id", meaning="Identifier of the spectrum in its file"),
        Column("scan", meaning="Number of the scan in its file", kind="identifier", is_nullable=True),
        Column("spectrum_index", meaning="Index of the spectrum in its file, from 0", kind="identifier"),
        Column("retention_time", meaning="Retention time of the spectrum", kind="minutes", unit="s", is_nullable=True),
        Column("precursor_mz", meaning="Measured m/z of the precursor", kind="number", is_nullable=True),
        Column("precursor_intensity", meaning="Intensity of the precursor in the file", kind="number", type="float", is_nullable=True),
        Column(
            "charge_mask",
            meaning="Possible charges of the precursor: bit z is set if charge z is possible; bit 0 is set for negative ions",
            kind="integer",
            type="uint32",
        ),
        Column("n_peaks", meaning="Number of peaks in the spectrum", kind="integer", type="int32", low=0),
        Column("total_ion_current", meaning="Sum of the intensities of all peaks", kind="number"),
        Column("base_peak_mz", meaning="m/z of the most intense peak", kind="number", is_nullable=True),
        Column("base_peak_intensity", meaning="Intensity of the most intense peak", kind="number", type="float"),
        Column("activation", meaning="Activation (dissociation) method, such as HCD", is_nullable=True, is_optional=True),
        Column("mz", meaning="m/z of all peaks", kind="numbers", type="large_list<double>", low=0, high=1e9),
        Column(
            "intensity", meaning="Intensities of all peaks", kind="numbers", type="large_list<float>", low=0, high=3e38, as_long_as="mz"
        ),
        Column(
            "other_precursor_mz",
            meaning="m/z of further precursors of the spectrum",
            kind="numbers",
            type="large_list<double>",
            is_optional=True,
            low=0,
            high=1e9,
        ),
        Column(
            "other_charge_mask",
            meaning="Possible charges of each further precursor: bit z is set if charge z is possible",
            kind="numbers",
            type="large_list<uint32>",
            is_optional=True,
            as_long_as="other_precursor_mz",
        ),
    ),
)
_OTHER_PRECURSORS = ("other_precursor_mz", "other_charge_mask")


PEAKS = Table.from_columns("peaks", "Peaks", SPECTRA.chosen(("mz", "intensity", "activation")))
"""Columns that a table of spectra needs so that a spectrum can be drawn."""


_FROM_SPECTRA: Mapping[str, Callable[[Spectra, NDArray[np.int64]], Any]] = {
    "spectrum": lambda _, rows: rows,
    "spectrum_file": lambda spectra, rows: taken(spectra.file_names, spectra.file[rows]),
    "spectrum_id": lambda spectra, rows: taken(spectra.identifier, rows),
    "scan": lambda spectra, rows: pa.array(spectra.scan[rows], mask=spectra.scan[rows] < 0),
    "spectrum_index": lambda spectra, rows: spectra.index[rows],
    "retention_time": lambda spectra, rows: or_null(spectra.retention_time[rows]),
    "precursor_mz": lambda spectra, rows: spectra.precursor_mz[rows],
}
SPECTRUM_COLUMNS = tuple(_FROM_SPECTRA)
"""Names of the columns that identify the spectrum of a row and describe its precursor."""


def spectrum_columns(spectra: Spectra, rows: NDArray[np.int64], names: Sequence[str] = SPECTRUM_COLUMNS) -> dict[str, Any]:
    """Return columns that describe the spectrum of each row of a table.

    Parameters
    ----------
    spectra : Spectra
        Spectra.
    rows : ndarray of int64, shape (n,)
        Index of the spectrum of each row.
    names : sequence of str
        Names of the columns, from `SPECTRUM_COLUMNS`.

    Returns
    -------
    dict of str to array
        Columns by name, length n.
    """
    return {name: _FROM_SPECTRA[name](spectra, rows) for name in names}


def spectra_table(spectra: Spectra) -> pa.Table:
    """Return the spectra with their peaks as read, one row per spectrum, so that they can be drawn without their file."""
    offsets = pa.array(spectra.offsets, pa.int64())
    others = _other_precursors(spectra)
    return SPECTRA.arrow(
        {
            **spectrum_columns(spectra, np.arange(len(spectra))),
            "precursor_intensity": spectra.precursor_intensity,
            "charge_mask": spectra.charge_mask,
            **({"activation": _activation_texts(spectra)} if spectra.activation.any() else {}),
            **_peak_sums(spectra.offsets, spectra.mz, spectra.intensity),
            "mz": pa.LargeListArray.from_arrays(offsets, pa.array(spectra.mz)),
            "intensity": pa.LargeListArray.from_arrays(offsets, pa.array(spectra.intensity)),
            **others,
        },
        without=(*(() if others else _OTHER_PRECURSORS), *(() if spectra.activation.any() else ("activation",))),
    )


def _other_precursors(spectra: Spectra) -> dict[str, pa.Array]:
    """Return columns with the second and further precursors of each spectrum; an empty dictionary if no spectrum has several precursors."""
    if not len(spectra.others.spectrum):
        return {}
    order = np.argsort(spectra.others.spectrum, kind="stable")
    offsets = pa.array(segment_offsets(np.bincount(spectra.others.spectrum, minlength=len(spectra))), pa.int64())
    return {
        "other_precursor_mz": pa.LargeListArray.from_arrays(offsets, pa.array(spectra.others.mz[order])),
        "other_charge_mask": pa.LargeListArray.from_arrays(offsets, pa.array(spectra.others.charge_mask[order])),
    }


def _activation_texts(spectra: Spectra) -> pa.Array:
    """Return the names of the activations, null if unknown."""
    names = pa.array(activation_names(np.arange(len(Activation), dtype=np.uint8)), pa.string())
    return names.take(pa.array(spectra.activation, mask=spectra.activation == 0))


def _peak_sums(offsets: NDArray[np.int64], mz: NDArray[np.float64], intensity: NDArray[np.float32]) -> dict[str, Any]:
    """Return the columns that are computed from the peaks, by name, each of shape (n,)."""
    count = np.diff(offsets)
    n = len(count)
    total, highest, position = np.zeros(n), np.zeros(n, np.float32), np.full(n, -1, np.int64)
    for first in range(0, n, _SPECTRA_PER_BATCH):
        last = min(first + _SPECTRA_PER_BATCH, n)
        begin, end = int(offsets[first]), int(offsets[last])
        rows = np.flatnonzero(count[first:last]) + first
        if not len(rows):
            continue
        heights = intensity[begin:end]
        starts = offsets[rows] - begin
        total[rows] = np.add.reduceat(heights, starts, dtype=np.float64)
        highest[rows] = np.maximum.reduceat(heights, starts)
        # If a spectrum has several most intense peaks, use the first.
        at = np.flatnonzero(heights == np.repeat(highest[rows], count[rows]))
        owner = np.repeat(rows, count[rows])[at]
        spectrum, first_peak = np.unique(owner, return_index=True)
        position[spectrum] = begin + at[first_peak]
    has_peaks = position >= 0
    base = np.zeros(n)
    base[has_peaks] = mz[position[has_peaks]]
    return {
        "n_peaks": count.astype(np.int32),
        "total_ion_current": total,
        "base_peak_mz": pa.array(base, mask=~has_peaks),
        "base_peak_intensity": highest,
    }


def read_spectra_table(path: Path) -> Spectra:
    """Read spectra with their peaks from a table that `write_spectra` wrote; the table may come from an untrusted source.

    Raises
    ------
    InputError
        If the file is not such a table.
    """
    with TableFile(path, SPECTRA, remedy="Run the identification again") as source:
        table = source.read(tuple(SPECTRA.by_name))
        offsets, mz = _peaks(table, "mz")
        _, intensity = _peaks(table, "intensity")
        file_names = table["spectrum_file"].combine_chunks().dictionary_encode()
        columns: dict[str, Any] = {
            "files": tuple(file_names.dictionary.to_pylist()),
            "file": file_names.indices.to_numpy(zero_copy_only=False).astype(np.int32),
            "identifier": table["spectrum_id"].to_pylist(),
            "scan": table["scan"].fill_null(-1).to_numpy(),
            "index": table["spectrum_index"].to_numpy(),
            "retention_time": table["retention_time"].to_numpy(),
            "precursor_mz": table["precursor_mz"].to_numpy().copy(),
            "precursor_intensity": table["precursor_intensity"].to_numpy(),
            "charge_mask": table["charge_mask"].to_numpy(),
            "activation": _activations(table["activation"].combine_chunks().dictionary_encode()),
        }
        if "other_precursor_mz" in table.column_names:
            columns["others"] = _read_other_precursors(table)
        inner = np.ones(max(0, len(mz) - 1), np.bool_)
        inner[offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(mz))] - 1] = False
        if not ((mz > 0).all() and (intensity > 0).all()) or (np.diff(mz)[inner] < 0).any():
            raise source.damaged("contains peaks that the program does not write")
    return Spectra(offsets=offsets, mz=mz, intensity=intensity, **columns)


def _read_other_precursors(table: pa.Table) -> OtherPrecursors:
    offsets, mz = _peaks(table, "other_precursor_mz")
    _, charges = _peaks(table, "other_charge_mask")
    return OtherPrecursors(np.repeat(np.arange(len(table)), np.diff(offsets)), mz, charges)


def _activations(names: pa.DictionaryArray) -> NDArray[np.uint8]:
    """Return the activation of each spectrum from its name."""
    codes = np.append(parse_activation_names(names.dictionary.to_pylist()), np.uint8(Activation.UNKNOWN))
    activations: NDArray[np.uint8] = codes[names.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return activations


def _peaks(table: pa.Table, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the offsets of the lists in a column, and the values of all lists."""
    column = table[name].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    offsets = column.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], column.flatten().to_numpy()
