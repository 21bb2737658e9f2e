"""Tandem mass spectra as columns, which all readers create and all searches use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import SpectrumRow, ranges, read_only
from proteoscope.engine.chemistry.activation import Activation, activation_series
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.shared_names import distinct_names
from proteoscope.kernels.layouts import PeakArrays

__all__ = ["OtherPrecursors", "Spectra", "SpectrumSeries", "spectrum_ion_series"]


def spectrum_ion_series(ion_series: str, activation: int) -> str:
    """Return the ion series to match in a spectrum as characters: `ion_series`, or, if it is ``activation``, those of the activation.

    Parameters
    ----------
    ion_series : str
        Value of the parameter `ion_series`: ``activation``, or characters such as ``by``.
    activation : int
        Value of `Activation`.

    Examples
    --------
    >>> spectrum_ion_series("activation", Activation.ETD), spectrum_ion_series("by", Activation.ETD)
    ('cz', 'by')
    """
    return activation_series(activation) if ion_series == BY_ACTIVATION else "".join(dict.fromkeys(ion_series))


class SpectrumSeries(NamedTuple):
    """Ion series of n spectra.

    Attributes
    ----------
    symbols : tuple of str
        Distinct sets of ion series, each as characters such as ``by``.
    number : ndarray of uint8, shape (n,)
        Index of the set of each spectrum in `symbols`.
    activation : ndarray of uint8, shape (n,)
        Activation of each spectrum.
    """

    symbols: tuple[str, ...]
    number: NDArray[np.uint8]
    activation: NDArray[np.uint8]

    @classmethod
    def for_spectra(cls, ion_series: str, activation: NDArray[np.uint8]) -> SpectrumSeries:
        """Return the ion series of spectra: `ion_series` for all, or, if it is ``activation``, the series of each spectrum's activation.

        Parameters
        ----------
        ion_series : str
            Value of the parameter `ion_series`.
        activation : ndarray of uint8, shape (n,)
            Activation of each spectrum.

        Examples
        --------
        >>> series = SpectrumSeries.for_spectra("activation", np.array([Activation.ETD, Activation.HCD, Activation.UNKNOWN], np.uint8))
        >>> series.symbols, series.number.tolist()
        (('by', 'cz'), [1, 0, 0])
        """
        is_present = np.bincount(activation, minlength=len(Activation)) > 0
        series_by_activation = [spectrum_ion_series(ion_series, kind) for kind in Activation]
        present = (series for series, is_used in zip(series_by_activation, is_present, strict=True) if is_used)
        distinct = tuple(dict.fromkeys(present)) or (series_by_activation[0],)
        number = np.array([distinct.index(series) if series in distinct else 0 for series in series_by_activation], np.uint8)
        return cls(distinct, number[activation], activation)

    @property
    def is_single(self) -> bool:
        """True if all spectra have the same ion series."""
        return len(self.symbols) == 1

    def have(self, symbols: frozenset[str]) -> NDArray[np.bool_]:
        """Return True for each spectrum that has at least one of the ion series `symbols`, shape (n,)."""
        return np.array([bool(symbols & set(series)) for series in self.symbols])[self.number]


class OtherPrecursors(NamedTuple):
    """Second and further precursors of spectra with several precursors, m in total.

    Attributes
    ----------
    spectrum : ndarray of int64, shape (m,)
        Row of the spectrum.
    mz : ndarray of float64, shape (m,)
        m/z in thomson.
    charge_mask : ndarray of uint32, shape (m,)
        Bit z is set if charge z is possible, see `Spectra`.
    """

    spectrum: NDArray[np.int64]
    mz: NDArray[np.float64]
    charge_mask: NDArray[np.uint32]

    @classmethod
    def none(cls) -> OtherPrecursors:
        """Return columns without precursors."""
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0, np.uint32))


@dataclass(frozen=True)
class Spectra:
    """MS2 spectra, n of them, with their peaks in compressed rows.

    Attributes
    ----------
    files : tuple of str
        Spectrum files, in the given order.
    file : ndarray of int32, shape (n,)
        Index of the file of each spectrum in `files`.
    identifier : list of str
        Name of each spectrum in its file: native ID in mzML, scan in mzXML, TITLE in MGF, or ``index=k``, counted from 0 in the file.
    scan : ndarray of int64, shape (n,)
        Scan numbers, -1 if unknown.
    index : ndarray of int64, shape (n,)
        Position in the file, from 0, counted over all spectra of the file including MS1.
    retention_time : ndarray of float64, shape (n,)
        Retention times in seconds, NaN if unknown.
    precursor_mz : ndarray of float64, shape (n,)
        Precursor m/z in thomson.
    precursor_intensity : ndarray of float32, shape (n,)
        Precursor intensities, 0 if unknown.
    charge_mask : ndarray of uint32, shape (n,)
        Bit z is set if charge z is possible; no bit if the charge is unknown. Bit 0 is set for negative ions.
    offsets : ndarray of int64, shape (n + 1,)
        Start of the peaks of each spectrum in `mz`; the last value is the number of all peaks.
    mz : ndarray of float64, shape (peaks,)
        m/z in thomson, ascending within a spectrum.
    intensity : ndarray of float32, shape (peaks,)
        Intensities, positive.
    n_skipped : int
        Number of spectra that could not be read.
    others : OtherPrecursors
        Precursors beyond the first, which peptide searches use too.
    activation : ndarray of uint8, shape (n,)
        Values of `proteoscope.engine.chemistry.activation.Activation`, 0 if unknown.
    """

    files: tuple[str, ...]
    file: NDArray[np.int32]
    identifier: list[str]
    scan: NDArray[np.int64]
    index: NDArray[np.int64]
    retention_time: NDArray[np.float64]
    precursor_mz: NDArray[np.float64]
    precursor_intensity: NDArray[np.float32]
    charge_mask: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    n_skipped: int = 0
    others: OtherPrecursors = field(default_factory=OtherPrecursors.none)
    activation: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))

    def __post_init__(self) -> None:
        if len(self.activation) != len(self):
            object.__setattr__(self, "activation", np.zeros(len(self), np.uint8))

    def __len__(self) -> int:
        return len(self.precursor_mz)

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the spectrum files for tables; parent folders are included only if files would otherwise have the same name."""
        return distinct_names(self.files)

    def peaks(self, i: SpectrumRow) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Return m/z (thomson) and intensities of spectrum `i` as views."""
        window = slice(self.offsets[i], self.offsets[i + 1])
        return self.mz[window], self.intensity[window]

    @property
    def peak_arrays(self) -> PeakArrays:
        """Peaks of all spectra, as an argument of kernels."""
        return PeakArrays(self.offsets, read_only(self.mz), read_only(self.intensity))

    def only(self, rows: NDArray[np.int64]) -> Spectra:
        """Return all spectra, but without peaks for those not in `rows` (ascending), so that only the spectra `rows` are searched."""
        ends = self.offsets[:-1].copy()
        ends[rows] = self.offsets[rows + 1]
        offsets, index = ranges(self.offsets[:-1], ends)
        return replace(self, offsets=offsets, mz=self.mz[index], intensity=self.intensity[index])
