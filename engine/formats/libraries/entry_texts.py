"""Entries of libraries as columns of text, which what writes MSP and mzSpecLib joins: no line of Python for an entry or a peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.peptidoforms import tag
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.arrow import letters_of
from proteoscope.engine.spectra.library_entries import EntryModifications, LibraryEntries, PeakIons

__all__ = ["joined", "msp_modifications", "number_texts", "peak_lines", "peptide_ions", "present"]

_ERROR_DECIMALS = 4
_CHARGES, _NUMBERS = 64, 256


def number_texts(values: NDArray, decimals: int | None = None) -> pa.Array:
    """Numbers as texts with as many digits as it takes to read the same number back, null where they are none."""
    if decimals is not None:
        values = np.round(values, decimals)
    is_none = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
    return pa.compute.cast(pa.array(values, mask=is_none), pa.string())


def present(before: str, values: pa.Array, behind: str) -> pa.Array:
    """Texts with something before and behind them; empty where there is none."""
    return pa.compute.fill_null(pa.compute.binary_join_element_wise(before, values, behind, ""), "")


def joined(parts: Sequence[Any]) -> bytes:
    """Columns of texts, or texts that are the same in each row, row by row."""
    return letters_of(pa.compute.binary_join_element_wise(*parts, ""))


def peptide_ions(entries: LibraryEntries, texts: pa.Array) -> pa.Array:
    """Texts of peptides with their charges, ``PEPTIDE/2``."""
    return pa.compute.binary_join_element_wise(texts, number_texts(entries.charge), "/")


def peak_lines(entries: LibraryEntries, quote: str) -> pa.Array:
    """The peaks of each entry, a line each: m/z, intensity and ion between tabs, the ion between quotes."""
    ions = _ion_names(entries.ions)
    texts = ions if not quote else pa.compute.binary_join_element_wise(quote, ions, quote, "")
    lines = pa.compute.binary_join_element_wise(number_texts(entries.mz), number_texts(entries.intensity), texts, "\t")
    return pa.compute.binary_join_element_wise(
        pa.compute.binary_join(pa.LargeListArray.from_arrays(pa.array(entries.offsets), lines), "\n"), "\n", ""
    )


def _ion_names(ions: PeakIons) -> pa.Array:
    """``y3/0.0012``, ``b7^2/-0.003``, ``?``, in the notation that mzPAF and NIST have in common."""
    code = (ions.series.astype(np.int64) * _CHARGES + ions.charge) * _NUMBERS + ions.number
    kinds, of = np.unique(code, return_inverse=True)
    names = []
    for kind in kinds.tolist():
        rest, number = divmod(kind, _NUMBERS)
        series, charge = divmod(rest, _CHARGES)
        names.append(f"{chr(series)}{number}{f'^{charge}' if charge > 1 else ''}/" if series else "?")
    error = np.where(ions.series > 0, np.round(ions.error.astype(np.float64), _ERROR_DECIMALS) + 0.0, np.nan)
    return pa.compute.binary_join_element_wise(
        pa.array(names, pa.string()).take(pa.array(of)), pa.compute.fill_null(number_texts(error), ""), ""
    )


def msp_modifications(sequence: pa.StringArray, of: EntryModifications) -> pa.Array:
    """Modifications as ``Mods=`` of MSP notes them: how many, and each as place (from 0; -1 and -2 the ends), residue and name."""
    count = np.diff(of.offsets)
    if not len(of.position):
        return pa.array(["0"]).take(pa.array(np.zeros(len(count), np.int64)))
    lengths = pa.compute.utf8_length(sequence).to_numpy(zero_copy_only=False).astype(np.int64)
    owner = np.repeat(np.arange(len(count)), count)
    is_first, is_last = of.position == 0, of.position == lengths[owner] + 1
    place = np.where(is_first, -1, np.where(is_last, -2, of.position - 1))
    starts = np.cumsum(lengths) - lengths
    residues = np.frombuffer(letters_of(sequence), np.uint8)[starts[owner] + np.clip(of.position, 1, lengths[owner]) - 1]
    letters = pa.array([chr(one) for one in range(128)]).take(pa.array(residues.astype(np.int64)))
    names = [tag(name, mass).replace("/", "|").replace('"', "'") for name, mass in zip(of.names, of.masses, strict=True)]
    parts = [number_texts(place), letters, pa.array(names, pa.string()).take(pa.array(of.kind))]
    noted = pa.compute.binary_join_element_wise("/", pa.compute.binary_join_element_wise(*parts, ","), "")
    return pa.compute.binary_join_element_wise(
        number_texts(count), pa.compute.binary_join(pa.ListArray.from_arrays(pa.array(of.offsets, pa.int32()), noted), ""), ""
    )
