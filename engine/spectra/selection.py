"""Selection of spectra by charge, precursor mass and retention time."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["SpectrumSelection", "number_range", "parse_charges"]

_HIGHEST_CHARGE = 31
_NEGATIVE = 1


@dataclass(frozen=True)
class SpectrumSelection:
    """Criteria for the selection of spectra; None means no restriction.

    Attributes
    ----------
    charges : tuple of int, optional
        Charges of the precursor. Spectra with several possible charges are selected if one is among these; spectra of unknown charge are
        not selected.
    precursor_mass : (float, float), optional
        Minimum and maximum neutral mass in dalton, for at least one possible charge in `charges`; spectra of unknown charge are not
        selected.
    retention_time : (float, float), optional
        Minimum and maximum in seconds; spectra without a retention time are not selected.
    """

    charges: tuple[int, ...] | None = None
    precursor_mass: tuple[float, float] | None = None
    retention_time: tuple[float, float] | None = None

    def rows(self, spectra: Spectra) -> NDArray[np.int64]:
        """Return the indices of the spectra that meet all criteria, ascending."""
        possible = spectra.charge_mask & ~np.uint32(_NEGATIVE)
        is_chosen = np.ones(len(spectra), np.bool_)
        if self.charges is not None:
            possible = possible & np.uint32(sum(1 << charge for charge in set(self.charges)))
            is_chosen &= possible != 0
        if self.precursor_mass is not None:
            low, high = self.precursor_mass
            is_within = np.zeros(len(spectra), np.bool_)
            carrier = np.where(spectra.charge_mask & _NEGATIVE, -PROTON_MASS, PROTON_MASS)
            for charge in range(1, _HIGHEST_CHARGE + 1):
                mass = charge * (spectra.precursor_mz - carrier)
                is_within |= (possible >> np.uint32(charge) & np.uint32(1) == 1) & (low <= mass) & (mass <= high)
            is_chosen &= is_within
        if self.retention_time is not None:
            first, last = self.retention_time
            is_chosen &= (first <= spectra.retention_time) & (spectra.retention_time <= last)
        return np.flatnonzero(is_chosen)


def parse_charges(text: str) -> tuple[int, ...]:
    """Parse a list of charges such as ``2,3``.

    Raises
    ------
    ParameterError
        If the text is not a list of charges.
    """
    words = text.split(",")
    if not all(word.strip().isdecimal() and 1 <= int(word[:9]) <= _HIGHEST_CHARGE for word in words):
        raise ParameterError(f"'{text:.60}' is not a list of charges; expected whole numbers from 1 to {_HIGHEST_CHARGE}, as 2,3")
    return tuple(map(int, words))


def number_range(text: str, quantity: str) -> tuple[float, float]:
    """Parse a range such as ``500..2000``; either number may be missing.

    Parameters
    ----------
    text : str
        Text of the range.
    quantity : str
        Name of the quantity for the error message, in the plural.

    Returns
    -------
    tuple of float
        Minimum and maximum, infinite if missing.

    Raises
    ------
    ParameterError
        If the text is not a range, or if the range is empty.

    Examples
    --------
    >>> number_range("500..", "masses")
    (500.0, inf)
    """
    low_text, dots, high_text = text.partition("..")
    try:
        low, high = float(low_text or "-inf"), float(high_text or "inf")
    except ValueError:
        low = high = math.nan
    if not dots or not (low_text or high_text) or not low <= high:
        raise ParameterError(f"'{text:.60}' is not a range of {quantity}; expected two numbers as 500..2000, or one as 500.. or ..2000")
    return low, high
