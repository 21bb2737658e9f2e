"""Peaks of a batch of queries, collected for one transfer, and smallest weights of spectra."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["gather_peaks", "lightest_weights"]


@njit(nogil=True, cache=True)
def gather_peaks(spectra, spectrum, first, last, with_height, out_offsets, out_mz, out_weight, out_height):  # type: ignore[no-untyped-def]
    """Copy the peaks of the queries `first:last` in the order of the queries.

    `spectra` are `SpectrumArrays`; `spectrum` (q,) int64 is the spectrum of each query. The output is `out_offsets` (last - first + 1,)
    int32, and `out_mz`, `out_weight` and, if `with_height`, `out_height` (XCorr heights), with one element per peak.
    """
    offsets, mz, weight, height = spectra
    n = 0
    for q in range(first, last):
        out_offsets[q - first] = n
        for i in range(offsets[spectrum[q]], offsets[spectrum[q] + 1]):
            out_mz[n] = mz[i]
            out_weight[n] = weight[i]
            if with_height:
                out_height[n] = height[i]
            n += 1
    out_offsets[last - first] = n


@njit(nogil=True, cache=True)
def lightest_weights(offsets, weight):  # type: ignore[no-untyped-def]
    """Return the smallest positive peak weight of each spectrum, (n,) float32; infinity if it has none.

    The weights of spectrum i are ``weight[offsets[i]:offsets[i + 1]]``.
    """
    lightest = np.full(len(offsets) - 1, np.inf, np.float32)
    for s in range(len(lightest)):
        for i in range(offsets[s], offsets[s + 1]):
            if 0.0 < weight[i] < lightest[s]:
                lightest[s] = weight[i]
    return lightest
