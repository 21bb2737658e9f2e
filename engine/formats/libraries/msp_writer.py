"""Writer of libraries as NIST's MSP: modifications, members, time, q-value and proteins in the comment, and the ion of each peak."""

from __future__ import annotations

import threading

import numpy as np

from proteoscope.engine.formats.libraries.entry_texts import joined, msp_modifications, number_texts, peak_lines, peptide_ions, present
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.library_entries import LibraryEntries
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR

__all__ = ["MspWriter"]

_ORIGINS = {"best": "Singleton", "merged": "Consensus", "predicted": "Predicted"}
_MASS_DECIMALS = 5


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
                # MoNA's lines of the precursor, for readers that do not parse NIST's comment.
                *("\nPrecursorMZ: ", number_texts(mz, _MASS_DECIMALS), "\nCharge: ", number_texts(entries.charge)),
                *(f"\nComment: Spec={_ORIGINS[entries.origin]} Mods=", _quoted(modifications)),
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
    """Return texts with quotes around those that contain a blank."""
    return pa.compute.if_else(pa.compute.match_substring(texts, " "), pa.compute.binary_join_element_wise('"', texts, '"', ""), texts)
