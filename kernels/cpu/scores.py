"""Scores of one peptidoform with one spectrum, straight from residues: theoretical ions are computed on the fly and never stored.

The spectral dot product is that of Li 2014 (BMC Bioinformatics 15:121): the sum over theoretical fragment ions of the weight of the
matching peak. KSDP is its kernel form with consecutive ions (Fu 2004, Bioinformatics 20:1948, equation 6), the hyperscore that of X!Tandem
(Fenyö & Beavis 2003), XCorr that of SEQUEST in its fast form (Eng 2008).

Scores are the same to the last bit on every device: sums are made in one order, or of whole numbers, and logarithms and powers are those
of `kernels.cpu.elementary`. Without Numba's reference counting, see `kernels.cpu.arrangements`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kernels.cpu.elementary import FACTORIAL_LOG, logarithm, power
from kernels.layouts import CORRELATION_UNITS

__all__ = [
    "AROUND",
    "CORRELATION_HALF_WINDOW",
    "NONE",
    "PROTON_MASS",
    "XCORR_OF_SUM",
    "Scratch",
    "correlation_height",
    "correlation_vector",
    "find_roots",
    "hyperscore",
    "index_peaks",
    "kernel_dot_product",
    "most_peaks",
    "new_scratch",
    "score_form",
]

PROTON_MASS = 1.007276466621
CORRELATION_HALF_WINDOW = 75
AROUND = 2 * CORRELATION_HALF_WINDOW
XCORR_OF_SUM = 0.005 / (AROUND * CORRELATION_UNITS)
NONE = 255
"""No modification in a slot."""
_LONGEST = 64
_ROUNDING = 1e-12  # of a mass, at most


@njit(nogil=True, cache=True, _nrt=False)
def _reach(settings):
    """How far peaks reach: one at m by the first number plus the second one times m.

    An ion at t matches a peak at m where abs(m - t) <= absolute + relative t, which is up to t = (m + absolute) / (1 - relative)
    = m + (absolute + relative m) / (1 - relative), and less far down. The exact comparison follows; none must be missed by rounding.
    """
    widened = 1.0 / (1.0 - settings.fragment_relative)
    return settings.fragment_absolute * widened, settings.fragment_relative * widened + _ROUNDING


@njit(nogil=True, cache=True, _nrt=False)
def index_peaks(mz, low, high, settings, words, first_peak):
    """Set a bit for each bin that a peak's tolerance touches; `first_peak` names, for each word, the first peak that can match in it."""
    words[:] = 0
    inverse = 1.0 / settings.bin_width
    absolute, relative = _reach(settings)
    last_bin = len(words) * 64 - 1
    for i in range(low, high):
        half = absolute + relative * mz[i]
        begin = max(0, np.int64((mz[i] - half) * inverse))
        end = min(last_bin, np.int64((mz[i] + half) * inverse))
        for b in range(begin, end + 1):
            words[b >> 6] |= np.uint64(1) << np.uint64(b & 63)
    peak = low
    for w in range(len(words)):
        edge = w * 64 * settings.bin_width
        while peak < high and mz[peak] + (absolute + relative * mz[peak]) < edge:
            peak += 1
        first_peak[w] = peak


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def correlation_height(weight):
    """Height of a peak for XCorr, a whole number."""
    return np.int64(np.float64(weight) * CORRELATION_UNITS + 0.5)


@njit(nogil=True, cache=True, _nrt=False)
def correlation_vector(mz, weight, low, high, settings, raw, vector):
    """SEQUEST's spectrum after subtracting the mean of the 150 bins around each bin (Eng 2008, equation 6).

    150 times as high and in units of heights, so that all values, and sums of them in any order, are whole numbers.
    """
    n = len(vector)
    raw[:] = 0
    for i in range(low, high):
        b = np.int64(mz[i] / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset)
        if 0 <= b < n:
            raw[b] = max(np.int64(raw[b]), correlation_height(weight[i]))
    total = np.int64(0)
    for b in range(min(n, CORRELATION_HALF_WINDOW)):
        total += raw[b]
    for b in range(n):
        if b + CORRELATION_HALF_WINDOW < n:
            total += raw[b + CORRELATION_HALF_WINDOW]
        if b - CORRELATION_HALF_WINDOW - 1 >= 0:
            total -= raw[b - CORRELATION_HALF_WINDOW - 1]
        vector[b] = AROUND * np.int64(raw[b]) - (total - raw[b])


@njit(nogil=True, cache=True, _nrt=False)
def kernel_dot_product(matched_peak, root, first_peak, n_rows, n, window, exponent):
    """Kernel spectral dot product: windows of consecutive ions of a series, raised to a power so that runs count more than single ions.

    `root` holds the roots of the weights of a spectrum's peaks, of which the first is number `first_peak`.
    """
    before = (window - 1) // 2
    after = window - 1 - before
    total = 0.0
    for row in range(n_rows):
        of_row = 0.0
        for j in range(n):
            inside = 0.0
            for k in range(max(0, j - before), min(n, j + after + 1)):
                if matched_peak[row, k] >= 0:
                    inside += root[matched_peak[row, k] - first_peak]
            if inside > 0.0:
                of_row += power(inside, exponent)
        total += of_row
    return total


@njit(nogil=True, cache=True, _nrt=False)
def find_roots(weight, low, high, exponent, root):
    """Roots of the weights of the peaks `low:high` for KSDP, into `root`."""
    for i in range(low, high):
        root[i - low] = power(np.float64(weight[i]), 1.0 / exponent)


@njit(nogil=True, cache=True, _nrt=False)
def score_form(
    shift, length, n_term, c_term, charges, mz, weight, high, absolute, relative, n_term_series, c_term_series, inverse_bin, words,
    first_peak, use_vector, correlation_bin, correlation_offset, vector, matched_peak, keep,
):  # fmt: skip
    """Match the fragment ions of one peptidoform.

    `shift` (length,) residue masses with modifications; overwritten. Returns (matched N-terminal ions, matched C-terminal ions, spectral
    dot product, sum of `vector` over the ions). An ion matches the heaviest peak within the tolerance. With `keep`, `matched_peak`
    (rows, length - 1) gets the peak of each ion or -1; there is a row for each series and charge, and columns count from the series' own
    end.
    """
    # Sums from the N-terminus replace the residue masses, so that the inner loop is one look-up for each ion.
    total = n_term
    for i in range(length):
        total += shift[i]
        shift[i] = total
    total += c_term
    n_n, n_c = len(n_term_series), len(c_term_series)
    n_words = len(words)
    inverse_correlation = 1.0 / correlation_bin
    correlation_shift = 1.0 - correlation_offset
    count_n, count_c, dot, correlation = 0, 0, 0.0, np.int64(0)
    for series in range(n_n + n_c):
        is_n = series < n_n
        for z in range(1, charges + 1):
            sign = 1.0 / z if is_n else -1.0 / z
            start = (n_term_series[series] if is_n else total + c_term_series[series - n_n]) / z + (z - 1) * PROTON_MASS / z
            row = series * charges + z - 1
            count = 0
            for i in range(length - 1):
                target = start + sign * shift[i]
                if use_vector:
                    b = np.int64(target * inverse_correlation + correlation_shift)
                    if 0 <= b < len(vector):
                        correlation += vector[b]
                peak = -1
                b = np.int64(target * inverse_bin)
                w = b >> 6
                if 0 <= w < n_words and (words[w] >> np.uint64(b & 63)) & np.uint64(1):
                    half = absolute + relative * target
                    for k in range(first_peak[w], high):
                        difference = mz[k] - target
                        if difference > half:
                            break
                        if difference >= -half and (peak < 0 or weight[k] > weight[peak]):
                            peak = k
                    if peak >= 0:
                        dot += weight[peak]
                        count += 1
                if keep:
                    matched_peak[row, i if is_n else length - 2 - i] = peak
            if is_n:
                count_n += count
            else:
                count_c += count
    return count_n, count_c, dot, correlation


@njit(nogil=True, cache=True, _nrt=False)
def hyperscore(count_n, count_c, dot):
    """After X!Tandem's (Fenyö & Beavis 2003): ln(n! c! (1 + 100 dot)) for n and c matched ions from either end.

    The weights of a spectrum have unit length, hence the factor of 100; the 1 keeps the logarithm of nothing out. X!Tandem's is a base-10
    logarithm over raw intensities, Sage's a natural one with sums for each series: neither scale is this one.
    """
    return FACTORIAL_LOG[count_n] + FACTORIAL_LOG[count_c] + logarithm(1.0 + 100.0 * dot)


class Scratch(NamedTuple):
    """Room for one thread: sums of masses, the bit table, XCorr's vector, matched peaks, KSDP's roots, the arrangement of modifications."""

    shift: NDArray[np.float64]
    base: NDArray[np.float64]
    words: NDArray[np.uint64]
    first_peak: NDArray[np.int64]
    raw: NDArray[np.int32]
    vector: NDArray[np.int32]
    matched_peak: NDArray[np.int64]
    root: NDArray[np.float64]
    slot_modification: NDArray[np.int64]
    slot_choice: NDArray[np.int64]
    slot_site: NDArray[np.int64]
    sites: NDArray[np.int64]
    n_sites: NDArray[np.int64]


@njit(nogil=True, cache=True)
def new_scratch(settings, n_modifications, slots, with_vector, most):
    """Room for a thread that scores spectra of at most `most` peaks (which only KSDP needs), `with_vector` for XCorr."""
    absolute, relative = _reach(settings)
    n_words = np.int64((settings.max_mz + absolute + relative * settings.max_mz) / settings.bin_width) // 64 + 1
    n_bins = np.int64(settings.max_mz / settings.correlation_bin_width) + 2 + CORRELATION_HALF_WINDOW if with_vector else 1
    rows = (len(settings.n_term_series) + len(settings.c_term_series)) * settings.max_fragment_charge
    return Scratch(
        np.empty(_LONGEST, np.float64),
        np.empty(_LONGEST, np.float64),
        np.zeros(n_words, np.uint64),
        np.zeros(n_words, np.int64),
        np.zeros(n_bins, np.int32),
        np.zeros(n_bins, np.int32),
        np.zeros((rows, _LONGEST), np.int64),
        np.zeros(most, np.float64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros((max(1, n_modifications), _LONGEST), np.int64),
        np.zeros(max(1, n_modifications), np.int64),
    )


@njit(nogil=True, cache=True, _nrt=False)
def most_peaks(spectra, spectrum, first, last):
    """Peaks of the fullest of the spectra that rows `first:last` name."""
    most = 0
    for row in range(first, last):
        most = max(most, spectra.offsets[spectrum[row] + 1] - spectra.offsets[spectrum[row]])
    return most
