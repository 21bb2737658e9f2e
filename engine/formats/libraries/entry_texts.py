"""Columns of text for library entries, joined by the writers of MSP and mzSpecLib without a Python loop over entries or peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.peptidoforms import tag
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.arrow import text_bytes
from proteoscope.engine.spectra.library_entries import EntryModifications, LibraryEntries, PeakIons

__all__ = ["joined", "msp_modifications", "number_texts", "peak_lines", "peptide_ions", "present"]

_ERROR_DECIMALS = 4
_CHARGES, _NUMBERS = 64, 256


def number_texts(values: NDArray[np.number], decimals: int | None = None) -> pa.Array:
    """Format numbers with as many digits as are needed to read the same numbers back.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Numbers; NaN becomes null.
    decimals : int, optional
        Number of decimals to which the numbers are first rounded.

    Returns
    -------
    Array of string, length n
        Texts.
    """
    if decimals is not None:
        values = np.round(values, decimals)
    is_missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
    return pa.compute.cast(pa.array(values, mask=is_missing), pa.string())


def present(before: str, values: pa.Array, after: str) -> pa.Array:
    """Return each text enclosed between `before` and `after`; '' for null."""
    return pa.compute.fill_null(pa.compute.binary_join_element_wise(before, values, after, ""), "")


def joined(parts: Sequence[Any]) -> bytes:
    """Join columns of texts and constant texts row by row; return the bytes of all rows."""
    return text_bytes(pa.compute.binary_join_element_wise(*parts, ""))


def peptide_ions(entries: LibraryEntries, texts: pa.Array) -> pa.Array:
    """Return the peptides with their charges, such as ``PEPTIDE/2``.

    Parameters
    ----------
    entries : LibraryEntries
        The n entries with their charges.
    texts : Array of string, length n
        Peptide of each entry.
    """
    return pa.compute.binary_join_element_wise(texts, number_texts(entries.charge), "/")


def peak_lines(entries: LibraryEntries, quote: str) -> pa.Array:
    """Return one text per entry with a line per peak: m/z, intensity and ion, separated by tabs.

    Parameters
    ----------
    entries : LibraryEntries
        Entries with their peaks.
    quote : str
        Text around each ion, such as ``"``, or ''.
    """
    ions = _ion_names(entries.ions)
    texts = ions if not quote else pa.compute.binary_join_element_wise(quote, ions, quote, "")
    lines = pa.compute.binary_join_element_wise(number_texts(entries.mz), number_texts(entries.intensity), texts, "\t")
    return pa.compute.binary_join_element_wise(
        pa.compute.binary_join(pa.LargeListArray.from_arrays(pa.array(entries.offsets), lines), "\n"), "\n", ""
    )


def _ion_names(ions: PeakIons) -> pa.Array:
    """Return the ion of each peak, such as ``y3/0.0012``, ``b7^2/-0.003`` or ``?``, in the notation that mzPAF and NIST have in common."""
    code = (ions.series.astype(np.int64) * _CHARGES + ions.charge) * _NUMBERS + ions.number
    kinds, kind_number = np.unique(code, return_inverse=True)
    names = []
    for kind in kinds.tolist():
        rest, number = divmod(kind, _NUMBERS)
        series, charge = divmod(rest, _CHARGES)
        names.append(f"{chr(series)}{number}{f'^{charge}' if charge > 1 else ''}/" if series else "?")
    error = np.where(ions.series > 0, np.round(ions.error.astype(np.float64), _ERROR_DECIMALS) + 0.0, np.nan)
    return pa.compute.binary_join_element_wise(
        pa.array(names, pa.string()).take(pa.array(kind_number)), pa.compute.fill_null(number_texts(error), ""), ""
    )


def msp_modifications(sequence: pa.StringArray, placed: EntryModifications) -> pa.Array:
    """Return the modifications of each entry in the notation of MSP's ``Mods=``.

    A text contains the number of modifications, and the position, residue and name of each. Positions are counted from 0; -1 and -2 are the
    N-terminus and the C-terminus.

    Parameters
    ----------
    sequence : pyarrow.StringArray, length n
        Peptide sequences.
    placed : EntryModifications
        Modifications of the n entries.

    Returns
    -------
    pyarrow.Array
        Texts, length n.
    """
    count = np.diff(placed.offsets)
    if not len(placed.position):
        return pa.array(["0"]).take(pa.array(np.zeros(len(count), np.int64)))
    lengths = pa.compute.utf8_length(sequence).to_numpy(zero_copy_only=False).astype(np.int64)
    owner = np.repeat(np.arange(len(count)), count)
    is_first, is_last = placed.position == 0, placed.position == lengths[owner] + 1
    position = np.where(is_first, -1, np.where(is_last, -2, placed.position - 1))
    starts = np.cumsum(lengths) - lengths
    residues = np.frombuffer(text_bytes(sequence), np.uint8)[starts[owner] + np.clip(placed.position, 1, lengths[owner]) - 1]
    symbols = pa.array([chr(code) for code in range(128)]).take(pa.array(residues.astype(np.int64)))
    names = [tag(name, mass).replace("/", "|").replace('"', "'") for name, mass in zip(placed.names, placed.masses, strict=True)]
    parts = [number_texts(position), symbols, pa.array(names, pa.string()).take(pa.array(placed.kind))]
    noted = pa.compute.binary_join_element_wise("/", pa.compute.binary_join_element_wise(*parts, ","), "")
    return pa.compute.binary_join_element_wise(
        number_texts(count), pa.compute.binary_join(pa.ListArray.from_arrays(pa.array(placed.offsets, pa.int32()), noted), ""), ""
    )
