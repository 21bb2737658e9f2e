"""Peaks of a batch of queries, brought together for one transfer."""

from __future__ import annotations

from numba import njit

__all__ = ["gather_peaks"]


@njit(nogil=True, cache=True)
def gather_peaks(  # type: ignore[no-untyped-def]
    offsets, mz, weight, height, spectrum, first, last, with_height, out_offsets, out_mz, out_weight, out_height
):
    """Copy the peaks of the queries `first:last`, query after query.

    `offsets`, `mz`, `weight`, `height` : CSR peaks of all spectra; `spectrum` (q,) int64: that of each query. `out_offsets`
    (last - first + 1,) int32; `out_mz`, `out_weight` and, only `with_height`, `out_height`: as long as the peaks together.
    """
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
