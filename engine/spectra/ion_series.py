"""Ion series that spectra are searched for: those of their activation, or those of the parameter `ion_series`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.activation import Activation, series_letters
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION

__all__ = ["SpectrumSeries", "series_of_spectrum"]


def series_of_spectrum(ion_series: str, activation: int) -> str:
    """Return the letters of the ion series of a spectrum.

    Parameters
    ----------
    ion_series : str
        Value of the parameter.
    activation : int
        Activation of the spectrum.

    Examples
    --------
    >>> series_of_spectrum("activation", Activation.ETD), series_of_spectrum("by", Activation.ETD)
    ('cz', 'by')
    """
    return series_letters(activation) if ion_series == BY_ACTIVATION else "".join(dict.fromkeys(ion_series))


class SpectrumSeries(NamedTuple):
    """Ion series of n spectra.

    Attributes
    ----------
    letters : tuple of str
        Letters of each series.
    number : ndarray of uint8, shape (n,)
        Which of `letters` each spectrum is searched for.
    activation : ndarray of uint8, shape (n,)
        Activation of each spectrum.
    """

    letters: tuple[str, ...]
    number: NDArray[np.uint8]
    activation: NDArray[np.uint8]

    @classmethod
    def of(cls, ion_series: str, activation: NDArray[np.uint8]) -> SpectrumSeries:
        """Return the series of spectra by their activation, or by the parameter where it names letters.

        Examples
        --------
        >>> found = SpectrumSeries.of("activation", np.array([Activation.ETD, Activation.HCD, Activation.UNKNOWN], np.uint8))
        >>> found.letters, found.number.tolist()
        (('by', 'cz'), [1, 0, 0])
        """
        is_there = np.bincount(activation, minlength=len(Activation)) > 0
        every = [series_of_spectrum(ion_series, one) for one in Activation]
        letters = tuple(dict.fromkeys(one for one, used in zip(every, is_there, strict=True) if used)) or (every[0],)
        number = np.array([letters.index(one) if one in letters else 0 for one in every], np.uint8)
        return cls(letters, number[activation], activation)

    @property
    def is_single(self) -> bool:
        """True if all spectra have the same series."""
        return len(self.letters) == 1

    def have(self, letters: frozenset[str]) -> NDArray[np.bool_]:
        """Return which spectra have one of some series, (n,)."""
        return np.array([bool(letters & set(one)) for one in self.letters])[self.number]
