"""Composition of sequences: low-complexity segments, residue counts, and lambda for pairs of compositions."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["mask_low_complexity", "pair_lambdas"]

_MAXIMUM_STEPS = 100
_TOLERANCE = 1e-9  # relative size of a Newton step at which the iteration stops


@njit(nogil=True, cache=True, error_model="numpy")
def mask_low_complexity(residues, offsets, entropies, trigger, extension, mask_code, masked, counts):
    """Mask the low-complexity segments of sequences, and count the unmasked residues of each.

    A segment is the union of overlapping windows with an entropy of at most `extension`; at least one of them has an entropy of at most
    `trigger` (first step of SEG, Wootton and Federhen 1993). Entropies are integers, so that no sum depends on the order of its terms.

    Parameters
    ----------
    residues : (total,) int8
        Residue codes.
    offsets : (n + 1,) int64
        Start of each sequence in `residues`.
    entropies : (window + 1,) int64
        Entropy term of a residue by its number of occurrences in the window; the number of terms determines the window length.
    trigger, extension
        Entropy limits in the unit of `entropies`.
    masked : (total,) int8
        Output; the codes, with `mask_code` in low-complexity segments.
    counts : (n, codes) int64
        Output; number of unmasked residues of each sequence, by code.
    """
    window, in_window = len(entropies) - 1, np.zeros(counts.shape[1], np.int64)
    for k in range(len(offsets) - 1):
        begin, end = offsets[k], offsets[k + 1]
        masked[begin:end] = residues[begin:end]
        in_window[:] = 0
        entropy, segment, is_triggered = 0, -1, False
        for i in range(begin, end):
            code = residues[i]
            in_window[code] += 1
            entropy += entropies[in_window[code]] - entropies[in_window[code] - 1]
            first = i - window + 1
            if first > begin:
                code = residues[first - 1]
                in_window[code] -= 1
                entropy += entropies[in_window[code]] - entropies[in_window[code] + 1]
            if first >= begin and entropy <= extension:
                segment = first if segment < 0 else segment
                is_triggered = is_triggered or entropy <= trigger
            elif segment >= 0:
                if is_triggered:
                    masked[segment:i] = mask_code  # the previous low-complexity window ended here
                segment, is_triggered = -1, False
        if segment >= 0 and is_triggered:
            masked[segment:end] = mask_code
        counts[k] = 0
        for i in range(begin, end):
            counts[k, masked[i]] += 1


@njit(nogil=True, cache=True, error_model="numpy")
def pair_lambdas(query_counts, subject_counts, prior, score_classes, scores, least, greatest, lambdas):
    """Write the lambda of ungapped alignments of a query with each subject.

    Lambda is the positive number for which the mean of ``exp(lambda s)`` over all pairs of residues with scores s is 1.

    Parameters
    ----------
    query_counts : ndarray of int64, shape (codes,)
        Number of residues of the query by code.
    subject_counts : ndarray of int64, shape (n, codes)
        Number of residues of each subject by code.
    prior : (codes,) float64
        Pseudocounts with the background composition that are added to each sequence; codes with 0 are not counted.
    score_classes : (codes, codes) int64
        Index in `scores` (s,) float64 of the score of a query residue and a subject residue, by their codes.
    least, greatest
        Limits of lambda, above 0.
    lambdas : (n,) float64
        Output; lambda for each subject.
    """
    fraction, counted = np.empty(len(scores)), np.flatnonzero(prior)
    for k in range(len(subject_counts)):
        total = 0.0
        fraction[:] = 0.0
        for i in counted:
            for j in counted:
                pairs = (query_counts[i] + prior[i]) * (subject_counts[k, j] + prior[j])
                fraction[score_classes[i, j]] += pairs
                total += pairs
        lambdas[k] = _lambda(fraction, total, scores, least, greatest)


@njit(nogil=True, error_model="numpy")
def _lambda(fraction, total, scores, least, greatest):
    """Return lambda, by Newton's method from `greatest` downwards; since the mean is convex, no step goes below the positive root."""
    value = greatest
    for _ in range(_MAXIMUM_STEPS):
        excess, slope = -1.0, 0.0
        for k in range(len(scores)):
            term = fraction[k] / total * np.exp(value * scores[k])
            excess += term
            slope += scores[k] * term
        if excess <= 0.0 or slope <= 0.0:
            return value
        step = excess / slope
        value -= step
        if value <= least:
            return least
        if step <= _TOLERANCE * value:
            return value
    return value
