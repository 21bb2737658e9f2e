"""Writers of libraries as NIST's MSP, and as mzSpecLib text 1.0 (HUPO-PSI, Klein et al. 2024, Anal. Chem. 96:18491) with mzPAF.

They join columns of text, without a Python loop over entries or peaks. The comment of an MSP entry has modifications, members, time,
q-value and proteins.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.peptidoforms import tag
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.arrow import text_bytes
from proteoscope.engine.spectra.library_entries import EntryModifications, LibraryEntries, PeakIons
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR
from proteoscope.engine.version import VERSION

__all__ = ["MspWriter", "MzSpecLibWriter", "joined", "msp_modifications", "number_texts", "peak_lines", "peptide_ions", "present"]

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


_ORIGINS = {
    "best": ("MS:1003073|observed spectrum", "MS:1003066|singleton spectrum"),
    "merged": ("MS:1003073|observed spectrum", "MS:1003067|consensus spectrum"),
    "predicted": ("MS:1003074|predicted spectrum", "MS:1003066|singleton spectrum"),
}
_MASS_DECIMALS = 5


class MzSpecLibWriter:
    """Writer of mzSpecLib text; entries are numbered from 1."""

    def __init__(self) -> None:
        self._n = 0

    def begin(self, name: str) -> bytes:
        """Return the header; `name` is the name of the library."""
        lines = (
            "<mzSpecLib>",
            "MS:1003186|library format version=1.0",
            f"MS:1003188|library name={' '.join(name.split())}",
            # mzSpecLib requires software as a term of the vocabulary, which has no term for this program.
            f"MS:1003189|library description=Made by Proteoscope {VERSION}",
            "<AttributeSet Spectrum=all>",
            "<AttributeSet Analyte=all>",
            "<AttributeSet Interpretation=all>",
            "",
        )
        return "\n".join(lines).encode()

    def text(self, entries: LibraryEntries) -> list[Any]:
        """Return a list that `written` takes: the number of entries, followed by a text for each entry, without the entry's number."""
        peptide = peptide_ions(entries, entries.peptidoforms())
        origin, aggregation = _ORIGINS[entries.origin]
        mz = number_texts(entries.precursor_mz, _MASS_DECIMALS)
        parts = [
            *("\nMS:1003061|library spectrum name=", peptide, f"\nMS:1003072|spectrum origin type={origin}\n"),
            *(f"MS:1003065|spectrum aggregation type={aggregation}\n", "MS:1000465|scan polarity=MS:1000130|positive scan\n"),
            *("MS:1000744|selected ion m/z=", mz, "\n"),
            present("[1]MS:1000894|retention time=", number_texts(entries.retention_time, 3), "\n[1]UO:0000000|unit=UO:0000010|second\n"),
            *("MS:1003070|number of replicate spectra used=", number_texts(entries.n_members), "\n"),
            *("MS:1003059|number of peaks=", number_texts(np.diff(entries.offsets)), "\n<Analyte=1>\n"),
            *("MS:1003270|proforma peptidoform ion notation=", peptide, "\nMS:1000888|stripped peptide sequence=", entries.sequence),
            *("\nMS:1001117|theoretical neutral mass=", number_texts(entries.mass, _MASS_DECIMALS)),
            *("\nMS:1000041|charge state=", number_texts(entries.charge), "\nMS:1003053|theoretical monoisotopic m/z=", mz, "\n"),
            _proteins(entries.proteins),
            *("<Interpretation=1>\n", present("MS:1002354|PSM-level q-value=", number_texts(entries.q_value, 8), "\n"), "<Peaks>\n"),
            *(peak_lines(entries, ""), "\n"),
        ]
        whole = pa.compute.binary_join_element_wise(*parts, "")
        return [len(entries), *whole.to_pylist()]

    def written(self, text: list[Any]) -> bytes:
        """Return the bytes of the entries in `text`, a result of the method `text`; entries are numbered consecutively over all calls."""
        first, self._n = self._n, self._n + text[0]
        return "".join(f"<Spectrum={first + i}>{entry}" for i, entry in enumerate(text[1:], 1)).encode()

    def end(self) -> bytes:
        """Return an empty footer."""
        return b""


def _proteins(accessions: object) -> object:
    """Return the attributes of the proteins of each entry, one group per protein, such as ``[2]MS:1000885|...``."""
    listed = pa.compute.split_pattern(accessions, PROTEIN_SEPARATOR)
    counts = pa.compute.fill_null(pa.compute.list_value_length(listed), 0).to_numpy(zero_copy_only=False)
    offsets = segment_offsets(counts)
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts) + 2
    lines = pa.compute.binary_join_element_wise("[", number_texts(number), "]MS:1000885|protein accession=", listed.flatten(), "\n", "")
    return pa.compute.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), lines), "")


_MSP_ORIGINS = {"best": "Singleton", "merged": "Consensus", "predicted": "Predicted"}


class MspWriter:
    """Writer of MSP.

    Attributes
    ----------
    n_escaped : int
        Number of entries with an accession in which a comma or quote was escaped, since MSP uses these as delimiters.
    """

    def __init__(self) -> None:
        self.n_escaped = 0
        self._lock = threading.Lock()

    def begin(self, name: str) -> bytes:
        """Return an empty header."""
        return b""

    def text(self, entries: LibraryEntries) -> bytes:
        """Return the text of consecutive entries."""
        modifications = msp_modifications(entries.sequence, entries.modifications)
        mz = entries.precursor_mz
        proteins = self._proteins(entries.proteins)
        held = pa.compute.cast(pa.compute.add(pa.compute.count_substring(proteins, ","), 1), "string")
        return joined(
            [
                # NIST's MW is m/z times charge.
                *(
                    "Name: ",
                    peptide_ions(entries, entries.sequence),
                    "\nMW: ",
                    number_texts(mz * entries.charge, _MASS_DECIMALS),
                ),
                # Lines of the precursor as in MoNA's files, for readers that do not parse NIST's comment.
                *("\nPrecursorMZ: ", number_texts(mz, _MASS_DECIMALS), "\nCharge: ", number_texts(entries.charge)),
                *(f"\nComment: Spec={_MSP_ORIGINS[entries.origin]} Mods=", _quoted(modifications)),
                *(" Parent=", number_texts(mz, _MASS_DECIMALS)),
                present(' Protein="', pa.compute.binary_join_element_wise(held, proteins, "/"), '"'),
                *(" Nreps=", number_texts(entries.n_members)),
                present(" RetentionTime=", number_texts(entries.retention_time, 3), ""),
                present(" Qvalue=", number_texts(entries.q_value, 8), ""),
                *("\nNum peaks: ", number_texts(np.diff(entries.offsets)), "\n", peak_lines(entries, '"'), "\n"),
            ]
        )

    def _proteins(self, accessions: pa.StringArray) -> pa.StringArray:
        """Return the accessions of each entry separated by commas; commas and quotes within accessions are escaped."""
        if n := pa.compute.sum(pa.compute.match_substring_regex(accessions, '[",]')).as_py():
            with self._lock:
                self.n_escaped += n
            accessions = pa.compute.replace_substring(pa.compute.replace_substring(accessions, '"', "%22"), ",", "%2C")
        return pa.compute.replace_substring(accessions, PROTEIN_SEPARATOR, ",")

    def end(self) -> bytes:
        """Return an empty footer."""
        return b""


def _quoted(texts: object) -> object:
    """Return texts, with quotes around texts that contain a blank."""
    return pa.compute.if_else(pa.compute.match_substring(texts, " "), pa.compute.binary_join_element_wise('"', texts, '"', ""), texts)
