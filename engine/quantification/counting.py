"""Spectral counts, and these as parts of a sample, normalised by length: NSAF (Zybailov et al. 2006, J. Proteome Res. 5:2339)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["abundance_factors", "spectrum_counts"]


def spectrum_counts(thing: NDArray[np.int64], sample: NDArray[np.int64], n_things: int, n_samples: int) -> NDArray[np.int64]:
    """Spectra of each thing in each sample, (n_things, n_samples); `thing`, `sample` : (n,) of each spectrum, -1 for none.

    >>> spectrum_counts(np.array([0, 0, 1, -1]), np.array([0, 1, 1, 0]), 2, 2).tolist()
    [[1, 1], [0, 1]]
    """
    kept = (thing >= 0) & (sample >= 0)
    counts = np.bincount(thing[kept] * n_samples + sample[kept], minlength=n_things * n_samples)
    return counts.reshape(n_things, n_samples)


def abundance_factors(counts: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.float64]:
    """NSAF: spectra of each protein for each residue, as a part of the sum of that over all proteins of the sample.

    Parameters
    ----------
    counts : (p, s) int64. length : (p,) int64, residues; proteins of unknown length, 0, are left out.

    Returns
    -------
    (p, s) float64, NaN for those of unknown length, and in samples without any spectrum.

    Examples
    --------
    >>> abundance_factors(np.array([[2], [2]]), np.array([100, 300])).ravel().tolist()
    [0.75, 0.25]
    """
    by_length = np.full(counts.shape, np.nan)
    known = length > 0
    by_length[known] = counts[known] / length[known, None]
    total = np.nansum(by_length, axis=0)
    return by_length / np.where(total > 0, total, np.nan)
