"""Writer of libraries as mzSpecLib text 1.0 (HUPO-PSI, Klein et al. 2024, Anal. Chem. 96:18491) with peaks annotated in mzPAF."""

from typing import Any

import numpy as np

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.formats.libraries.entry_texts import number_texts, peak_lines, peptide_ions, present
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.library_entries import LibraryEntries
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR
from proteoscope.engine.version import VERSION

__all__ = ["MzSpecLibWriter"]

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
        """Return the number of consecutive entries and the text of each, without the entry numbers."""
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
        """Return the bytes of entries, given the result of `text`, with consecutive numbers."""
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
