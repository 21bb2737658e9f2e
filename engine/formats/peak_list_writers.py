"""Writer of peak lists as text: MGF (Matrix Science) and MS2 (McDonald et al. 2004), without a Python loop over spectra or peaks.

Numbers have as many digits as needed to read the same number back: m/z as float64, intensities as float32.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_segments
from proteoscope.engine.chemistry.activation import activation_names
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.formats.spectrum_blocks import HIGHEST_CHARGE, NEGATIVE
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.arrow import text_bytes
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.version import VERSION

__all__ = ["MgfWriter", "Ms2Writer", "charge_texts", "mgf_text", "on_one_line"]

_CONTROLS = r"[\r\n]+|[\x00-\x1f\x7f]"
"""Regular expression of line ends and other control characters, which the tables of a manipulated project may contain."""


class MgfWriter:
    """Writer of MGF with title, precursor m/z and intensity, charges, time, scan and activation of each spectrum, if known.

    Parameters
    ----------
    spectra : Spectra
        Spectra from which rows are written.
    """

    def __init__(self, spectra: Spectra) -> None:
        self._spectra = spectra

    def begin(self, rows: NDArray[np.int64]) -> bytes:
        """Return an empty header."""
        return b""

    def text(self, rows: NDArray[np.int64]) -> bytes:
        """Return the bytes of the spectra `rows`, shape (n,)."""
        spectra = self._spectra
        height = spectra.precursor_intensity[rows]
        mz = _number_texts(spectra.precursor_mz[rows])
        scan, time = spectra.scan[rows], spectra.retention_time[rows]
        entries = {
            "TITLE": _identifiers(spectra, rows),
            "PEPMASS": pa.compute.if_else(pa.array(height > 0), pa.compute.binary_join_element_wise(mz, _number_texts(height), " "), mz),
            "CHARGE": charge_texts(spectra.charge_mask[rows]),
            "RTINSECONDS": pa.compute.cast(pa.array(time, mask=np.isnan(time)), pa.string()),
            "SCANS": pa.compute.cast(pa.array(scan, mask=scan < 0), pa.string()),
            "ACTIVATION": _activations(spectra, rows),
        }
        return mgf_text(entries, *_peaks(spectra, rows))

    def written(self, text: bytes) -> bytes:
        """Return the text unchanged."""
        return text

    def end(self) -> bytes:
        """Return an empty footer."""
        return b""


class Ms2Writer(MgfWriter):
    """Writer of MS2, which names spectra by their scan numbers, or, if any scan number is unknown or repeated, by numbers from 1.

    Parameters
    ----------
    spectra : Spectra
        Spectra from which rows are written.
    """

    def __init__(self, spectra: Spectra) -> None:
        super().__init__(spectra)
        self._scan = spectra.scan

    def begin(self, rows: NDArray[np.int64]) -> bytes:
        """Return the header; `rows` are the indices of the spectra to write."""
        scan = self._spectra.scan[rows]
        if (scan < 0).any() or len(np.unique(scan)) < len(scan):
            self._scan = np.zeros(len(self._spectra), np.int64)
            self._scan[rows] = np.arange(1, len(rows) + 1)
        return f"H\tExtractor\tProteoscope\nH\tExtractorVersion\t{VERSION}\n".encode()

    def text(self, rows: NDArray[np.int64]) -> bytes:
        """Return the bytes of the spectra `rows`, shape (n,)."""
        spectra = self._spectra
        precursor, time, mask = spectra.precursor_mz[rows], spectra.retention_time[rows] / 60.0, spectra.charge_mask[rows]
        scan = pa.compute.cast(pa.array(self._scan[rows]), pa.string())
        lines = [
            pa.compute.binary_join_element_wise("S", scan, scan, _number_texts(precursor), "\t"),
            pa.compute.binary_join_element_wise("I\tNativeID", _identifiers(spectra, rows), "\t"),
            pa.compute.binary_join_element_wise("I\tActivationType", _activations(spectra, rows), "\t"),
            pa.compute.binary_join_element_wise("I\tRTime", pa.compute.cast(pa.array(time, mask=np.isnan(time)), pa.string()), "\t"),
        ]
        sign = pa.array(np.where(mask & NEGATIVE, "-", ""))
        for charge in range(1, HIGHEST_CHARGE + 1):
            has_charge = mask >> np.uint32(charge) & np.uint32(1) == 1
            if has_charge.any():
                protonated = charge * precursor + np.where(mask & NEGATIVE, charge + 1, 1 - charge) * PROTON_MASS
                words = (
                    pa.compute.binary_join_element_wise(sign, str(charge), ""),
                    pa.compute.cast(pa.array(protonated, mask=~has_charge), pa.string()),
                )
                lines.append(pa.compute.binary_join_element_wise("Z", *words, "\t"))
        return _joined([*map(_closed, lines), _peak_lines(*_peaks(spectra, rows))])


def _activations(spectra: Spectra, rows: NDArray[np.int64]) -> pa.Array:
    """Return the names of the activations, null if unknown."""
    activation = spectra.activation[rows]
    return pa.array(activation_names(activation), pa.string(), mask=activation == 0)


def mgf_text(
    entries: Mapping[str, pa.Array], offsets: NDArray[np.int64], mz: NDArray[np.floating], intensity: NDArray[np.floating]
) -> bytes:
    """Format spectra as MGF.

    Parameters
    ----------
    entries : mapping of str to pyarrow.Array
        Values of the n spectra for each key, as texts without line ends; null if a spectrum has no such value.
    offsets : ndarray of int64, shape (n + 1,)
        Peaks of spectrum i are ``offsets[i]:offsets[i + 1]``.
    mz : ndarray, shape (peaks,)
        m/z in thomson.
    intensity : ndarray, shape (peaks,)
        Intensities.

    Returns
    -------
    bytes
        Text of all spectra.
    """
    lines = [_closed(pa.compute.binary_join_element_wise(key, values, "=")) for key, values in entries.items()]
    return _joined(["BEGIN IONS\n", *lines, _peak_lines(offsets, mz, intensity), "END IONS\n\n"])


def charge_texts(mask: NDArray[np.uint32]) -> pa.Array:
    """Format n charge masks in the notation of MGF; null if no charge is known.

    Examples
    --------
    >>> charge_texts(np.array([0b1100, 0b101, 0], np.uint32)).to_pylist()
    ['2+ and 3+', '2-', None]
    """
    masks, codes = np.unique(mask, return_inverse=True)
    texts = []
    for bits in masks.tolist():
        sign = "-" if bits & NEGATIVE else "+"
        texts.append(" and ".join(f"{charge}{sign}" for charge in range(1, HIGHEST_CHARGE + 1) if bits >> charge & 1) or None)
    return pa.array(texts, pa.string()).take(pa.array(codes))


def on_one_line(texts: pa.Array) -> pa.Array:
    """Replace the line ends and other control characters of texts by spaces."""
    return pa.compute.replace_substring_regex(texts, _CONTROLS, " ")


def _identifiers(spectra: Spectra, rows: NDArray[np.int64]) -> pa.Array:
    return on_one_line(pa.array([spectra.identifier[row] for row in rows.tolist()], pa.string()))


def _peaks(spectra: Spectra, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float32]]:
    mz, offsets = take_segments(spectra.mz, spectra.offsets, rows)
    return offsets, mz, take_segments(spectra.intensity, spectra.offsets, rows)[0]


def _number_texts(values: NDArray[np.floating]) -> pa.Array:
    return pa.compute.cast(pa.array(values), pa.string())


def _peak_lines(offsets: NDArray[np.int64], mz: NDArray[np.floating], intensity: NDArray[np.floating]) -> pa.Array:
    """Return a text per spectrum with a line per peak; '' for spectra without peaks."""
    peaks = pa.compute.binary_join_element_wise(_number_texts(mz), _number_texts(intensity), " ")
    texts = pa.compute.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets), peaks), "\n")
    return pa.compute.if_else(pa.array(np.diff(offsets) > 0), pa.compute.binary_join_element_wise(texts, "\n", ""), "")


def _closed(lines: pa.Array) -> pa.Array:
    """Append a line end to each text; return '' for null."""
    return pa.compute.fill_null(pa.compute.binary_join_element_wise(lines, "\n", ""), "")


def _joined(parts: list[pa.Array | str]) -> bytes:
    """Join texts spectrum by spectrum."""
    return text_bytes(pa.compute.binary_join_element_wise(*parts, ""))
