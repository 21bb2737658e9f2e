"""Most similar candidate of each vector, within ranges of candidates, or with shifted fragments allowed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["CandidateRanges", "MassRange", "nearest_shifted", "nearest_vectors"]


class CandidateRanges(NamedTuple):
    """Candidates of n vectors as ranges, each array (n, ranges).

    Attributes
    ----------
    low, high : int64
        Candidates `low:high` of each range.
    centre : float64
        Expected position (mass) of the candidates in each range.
    price : float64
        Reduction of the cosine per unit of distance from the expected position.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    centre: NDArray[np.float64]
    price: NDArray[np.float64]


class MassRange(NamedTuple):
    """Candidates of n vectors as one range each, without certain mass differences.

    Attributes
    ----------
    low, high : (n,) int64
        Candidates `low:high` of each vector.
    skipped : (differences, 2) float64
        Excluded ranges of mass differences, dalton.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    skipped: NDArray[np.float64]


@njit(nogil=True, cache=True)
def nearest_vectors(vectors, ranges, candidates, position, n_bins, first, last, nearest, similarity, value):
    """Find the best candidate of each of the vectors `first:last`: the highest cosine after subtracting a penalty for distance.

    Parameters
    ----------
    vectors, candidates
        `VectorArrays`.
    ranges
        `CandidateRanges`.
    position : (candidates,) float64
        Position of each candidate: its mass.
    n_bins
        Number of bins; all bin indices are smaller.
    nearest : (n,) int64
        Output; index of the best candidate (of equal ones the first), or -1 if no candidate has a common bin.
    similarity : (n,) float64
        Output; cosine with the best candidate.
    value : (n,) float64
        Output; cosine with the best candidate minus the penalty.
    """
    offsets, bins, weights = vectors
    of_offsets, of_bins, of_weights = candidates
    low, high, centre, price = ranges
    table = np.zeros(n_bins, np.int64)
    for v in range(first, last):
        own_square = np.int64(0)
        for i in range(offsets[v], offsets[v + 1]):
            table[bins[i]] = weights[i]
            own_square += np.int64(weights[i]) * weights[i]
        nearest[v], similarity[v], value[v] = -1, 0.0, -np.inf
        for r in range(low.shape[1]):
            for c in range(low[v, r], high[v, r]):
                dot, square = np.int64(0), np.int64(0)
                for i in range(of_offsets[c], of_offsets[c + 1]):
                    dot += table[of_bins[i]] * of_weights[i]
                    square += np.int64(of_weights[i]) * of_weights[i]
                if dot == 0:
                    continue
                cosine = np.float64(dot) / np.sqrt(np.float64(own_square) * np.float64(square))
                worth = cosine - price[v, r] * abs(centre[v, r] - position[c])
                if worth > value[v] or (worth == value[v] and c < nearest[v]):
                    nearest[v], similarity[v], value[v] = c, cosine, worth
        for i in range(offsets[v], offsets[v + 1]):
            table[bins[i]] = 0


@njit(nogil=True, cache=True)
def nearest_shifted(vectors, mass, mass_range, candidates, candidate_mass, width, n_bins, first, last, nearest, similarity):
    """Find the most similar candidate of each of the vectors `first:last`, which may have another mass.

    Each element of a candidate is compared without or with a shift by the mass difference; the larger contribution counts (Bittremieux et
    al. 2018, J Proteome Res 17:3463, the shifted dot product, for singly charged fragments).

    Parameters
    ----------
    mass, candidate_mass
        Masses of vectors and candidates, float64, dalton.
    mass_range
        `MassRange`.
    width
        Bin width, thomson.
    vectors, candidates, n_bins, nearest, similarity
        See `nearest_vectors`.
    """
    offsets, bins, weights = vectors
    of_offsets, of_bins, of_weights = candidates
    low, high, skipped = mass_range
    table = np.zeros(n_bins, np.int64)
    for v in range(first, last):
        own_square = np.int64(0)
        for i in range(offsets[v], offsets[v + 1]):
            table[bins[i]] = weights[i]
            own_square += np.int64(weights[i]) * weights[i]
        nearest[v], similarity[v] = -1, 0.0
        for c in range(low[v], high[v]):
            difference = mass[v] - candidate_mass[c]
            is_left_out = False
            for k in range(len(skipped)):
                is_left_out |= skipped[k, 0] <= difference <= skipped[k, 1]
            if is_left_out:
                continue
            shift = np.int64(np.round(difference / width))
            dot, square = np.int64(0), np.int64(0)
            for i in range(of_offsets[c], of_offsets[c + 1]):
                b, moved, here = of_bins[i], of_bins[i] + shift, np.int64(0)
                here = table[b]
                if 0 <= moved < n_bins:
                    here = max(here, table[moved])
                dot += here * of_weights[i]
                square += np.int64(of_weights[i]) * of_weights[i]
            if dot == 0:
                continue
            cosine = min(1.0, np.float64(dot) / np.sqrt(np.float64(own_square) * np.float64(square)))
            if cosine > similarity[v]:
                nearest[v], similarity[v] = c, cosine
        for i in range(offsets[v], offsets[v + 1]):
            table[bins[i]] = 0
