"""Neutral losses of the precursor that distinguish phosphate (loss of phosphoric acid) from sulfate (loss of sulfur trioxide).

Phosphate and sulfate differ by 9.5 mDa, which precursor tolerances rarely resolve. Phosphoserine and phosphothreonine lose H3PO4; a
sulfated residue loses SO3 completely (Medzihradszky 2004, Mol Cell Proteomics 3:429). Phosphotyrosine may lose HPO3, which has nearly the
mass of SO3; for mass shifts at tyrosine, the loss of SO3 is therefore not considered.
"""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.layouts import ScoringSettings

__all__ = ["LOSS_OF_PHOSPHATE", "LOSS_OF_SULFATE", "NO_LOSS", "PHOSPHATE_OR_SULFATE", "precursor_losses"]

NO_LOSS, LOSS_OF_PHOSPHATE, LOSS_OF_SULFATE = 0, 1, 2
"""Values returned by `precursor_losses`."""
PHOSPHATE_OR_SULFATE = 79.96
"""Approximate mass added by phosphate or sulfate, Da."""

_PHOSPHORIC_ACID, _SULFUR_TRIOXIDE = 97.976896, 79.956815  # dalton
_MINIMUM_HEIGHT = 0.3  # minimum weight relative to the base peak; weights are square roots, so this is a tenth of the intensity


def precursor_losses(
    index: SpectrumIndex,
    spectrum: NDArray[np.int64],
    charge: NDArray[np.int64],
    mass: NDArray[np.float64],
    is_tyrosine: NDArray[np.bool_],
    settings: ScoringSettings,
) -> NDArray[np.int64]:
    """Return which of two neutral losses of the precursor is more intense in each spectrum: phosphoric acid or sulfur trioxide.

    Parameters
    ----------
    index : SpectrumIndex
        Spectra and queries.
    spectrum : ndarray of int64, shape (n,)
        Spectrum of each match.
    charge : ndarray of int64, shape (n,)
        Charge of each precursor.
    mass : ndarray of float64, shape (n,)
        Neutral monoisotopic precursor mass, Da.
    is_tyrosine : ndarray of bool, shape (n,)
        True if the mass shift is at a tyrosine.
    settings : ScoringSettings
        Settings with the fragment tolerance.

    Returns
    -------
    ndarray of int64, shape (n,)
        `NO_LOSS`, `LOSS_OF_PHOSPHATE` or `LOSS_OF_SULFATE`; `NO_LOSS` if the more intense peak is below a tenth of the base peak.
    """
    phosphate, sulfate = (
        _heights(index, spectrum, (mass - lost) / charge + PROTON_MASS, settings) for lost in (_PHOSPHORIC_ACID, _SULFUR_TRIOXIDE)
    )
    offsets, peaks = ranges(index.arrays.offsets[spectrum], index.arrays.offsets[spectrum + 1])
    highest = np.zeros(len(spectrum))
    np.maximum.at(highest, np.repeat(np.arange(len(spectrum)), np.diff(offsets)), index.arrays.weight[peaks])
    is_there = np.maximum(phosphate, sulfate) >= np.maximum(_MINIMUM_HEIGHT * highest, 1e-12)
    is_sulfate = is_there & (sulfate > phosphate) & ~is_tyrosine
    return np.where(is_sulfate, LOSS_OF_SULFATE, np.where(is_there & (phosphate >= sulfate), LOSS_OF_PHOSPHATE, NO_LOSS))


def _heights(index: SpectrumIndex, spectrum: NDArray[np.int64], mz: NDArray[np.float64], settings: ScoringSettings) -> NDArray[np.float64]:
    """Return the largest peak weight within the fragment tolerance of `mz` in each spectrum, or 0."""
    offsets, peaks = ranges(index.arrays.offsets[spectrum], index.arrays.offsets[spectrum + 1])
    row = np.repeat(np.arange(len(spectrum)), np.diff(offsets))
    width = settings.fragment_absolute + settings.fragment_relative * mz[row]
    near = np.flatnonzero(np.abs(index.arrays.mz[peaks] - mz[row]) <= width)
    height = np.zeros(len(spectrum))
    np.maximum.at(height, row[near], index.arrays.weight[peaks[near]])
    return height
