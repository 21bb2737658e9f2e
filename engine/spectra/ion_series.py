"""Ion series that are searched in spectra: those of the activation, or those of the parameter `ion_series`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.activation import Activation, activation_series
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION

__all__ = ["SpectrumSeries", "spectrum_ion_series"]


def spectrum_ion_series(ion_series: str, activation: int) -> str:
    """Return the ion series of a spectrum as characters.

    Parameters
    ----------
    ion_series : str
        Value of the parameter `ion_series`.
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
        Distinct sets of series, as characters.
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
