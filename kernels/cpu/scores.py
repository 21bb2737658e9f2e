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
from kernels.cpu.probing import IONS_AT_ONCE, OUT_OF_REACH, lowest_bit, matching_ions, sum_of_bins
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
    "sum_masses",
]

PROTON_MASS = 1.007276466621
CORRELATION_HALF_WINDOW = 75
AROUND = 2 * CORRELATION_HALF_WINDOW
XCORR_OF_SUM = 0.005 / (AROUND * CORRELATION_UNITS)
NONE = 255
"""No modification in a slot."""
_LONGEST = 64
_WORD = 32  # bits
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
    """Set a bit for each bin that a peak's tolerance touches; the first bin behind them, which has none.

    `first_peak` names, for each word that has bits, the first peak that can match in it; other words' are not written, nor are words
    behind the returned bin.
    """
    if low == high:
        words[0] = 0
        return 0
    inverse = 1.0 / settings.bin_width
    absolute, relative = _reach(settings)
    last_bin = (len(words) - 1) * _WORD - 1
    edge = max(0, min(last_bin, np.int64((mz[high - 1] + (absolute + relative * mz[high - 1])) * inverse)) + 1)
    words[: edge // _WORD + 1] = 0
    for i in range(low, high):
        half = absolute + relative * mz[i]
        begin = max(0, np.int64((mz[i] - half) * inverse))
        end = min(last_bin, np.int64((mz[i] + half) * inverse))
        for b in range(begin, end + 1):
            w = b // _WORD
            if words[w] == 0:
                first_peak[w] = i
            words[w] |= np.uint32(1) << np.uint32(b % _WORD)
    return edge


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def correlation_height(weight):
    """Height of a peak for XCorr, a whole number."""
    return np.int64(np.float64(weight) * CORRELATION_UNITS + 0.5)


@njit(nogil=True, cache=True, _nrt=False)
def correlation_vector(mz, weight, low, high, settings, raw, vector):
    """SEQUEST's spectrum after subtracting the mean of the 150 bins around each bin (Eng 2008, equation 6).

    150 times as high and in units of heights, so that all values, and sums of them in any order, are whole numbers. The last of `vector`
    is no bin and stays 0.
    """
    n = len(vector) - 1
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


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def sum_masses(shift, length, n_term, c_term):
    """Sums from the N-terminus in place of the residue masses `shift`, ready for `score_form`; the mass of the whole.

    A block behind the last ion is filled up.
    """
    total = n_term
    for i in range(length):
        total += shift[i]
        shift[i] = total
    for i in range(length - 1, length - 1 + IONS_AT_ONCE):
        shift[i] = OUT_OF_REACH
    return total + c_term


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def score_form(shift, length, total, charges, spectra, high, settings, edge, keep, use_vector, scratch):
    """Match the fragment ions of one peptidoform, of masses as `sum_masses` leaves them.

    `edge` as `index_peaks` returned it; `high`, the end of the spectrum's peaks. Returns (matched N-terminal ions, matched C-terminal
    ions, spectral dot product, sum of the scratch's `vector` over the ions if `use_vector`). An ion matches the heaviest peak within the
    tolerance. With `keep`, the scratch's `matched_peak` (rows, length - 1) gets the peak of each ion or -1; there is a row for each series
    and charge, and columns count from the series' own end.
    """
    n_n, n_c = len(settings.n_term_series), len(settings.c_term_series)
    inverse_bin, inverse_correlation = 1.0 / settings.bin_width, 1.0 / settings.correlation_bin_width
    correlation_shift, last = 1.0 - settings.correlation_bin_offset, len(scratch.vector) - 1
    correlation, any_bits = np.int64(0), np.uint64(0)
    # First all look-ups, many at a time, and without a branch: most ions meet no peak, and many forms none at all.
    for series in range(n_n + n_c):
        is_n = series < n_n
        for z in range(1, charges + 1):
            sign = 1.0 / z if is_n else -1.0 / z
            start = (settings.n_term_series[series] if is_n else total + settings.c_term_series[series - n_n]) / z + (z - 1) * PROTON_MASS / z
            bits = np.uint64(0)
            for i in range(0, length - 1, IONS_AT_ONCE):
                bits |= matching_ions(shift, i, start, sign, inverse_bin, scratch.words, edge) << np.uint64(i)
                if use_vector:
                    correlation += sum_of_bins(
                        shift, i, start, sign, inverse_correlation, correlation_shift, scratch.vector, last
                    )
            scratch.row_bits[series * charges + z - 1] = bits
            any_bits |= bits
            if keep:
                scratch.matched_peak[series * charges + z - 1, : length - 1] = -1
    count_n, count_c, dot = 0, 0, 0.0
    if any_bits == 0:
        return count_n, count_c, dot, correlation
    mz, weight = spectra.mz, spectra.weight
    absolute, relative = settings.fragment_absolute, settings.fragment_relative
    for series in range(n_n + n_c):
        is_n = series < n_n
        for z in range(1, charges + 1):
            row = series * charges + z - 1
            bits = scratch.row_bits[row]
            if bits == 0:
                continue
            sign = 1.0 / z if is_n else -1.0 / z
            start = (settings.n_term_series[series] if is_n else total + settings.c_term_series[series - n_n]) / z + (z - 1) * PROTON_MASS / z
            count = 0
            while bits != 0:
                i = lowest_bit(bits)
                bits &= bits - np.uint64(1)
                target = start + sign * shift[i]
                half = absolute + relative * target
                peak = -1
                for k in range(scratch.first_peak[np.int64(target * inverse_bin) // _WORD], high):
                    difference = mz[k] - target
                    if difference > half:
                        break
                    if difference >= -half and (peak < 0 or weight[k] > weight[peak]):
                        peak = k
                if peak >= 0:
                    dot += weight[peak]
                    count += 1
                    if keep:
                        scratch.matched_peak[row, i if is_n else length - 2 - i] = peak
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
    words: NDArray[np.uint32]
    first_peak: NDArray[np.int64]
    raw: NDArray[np.int32]
    vector: NDArray[np.int32]
    row_bits: NDArray[np.uint64]
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
    n_words = np.int64((settings.max_mz + absolute + relative * settings.max_mz) / settings.bin_width) // _WORD + 2
    n_bins = np.int64(settings.max_mz / settings.correlation_bin_width) + 2 + CORRELATION_HALF_WINDOW + 1 if with_vector else 1
    rows = (len(settings.n_term_series) + len(settings.c_term_series)) * settings.max_fragment_charge
    return Scratch(
        np.empty(_LONGEST + IONS_AT_ONCE, np.float64),
        np.empty(_LONGEST, np.float64),
        np.zeros(n_words, np.uint32),
        np.zeros(n_words, np.int64),
        np.zeros(n_bins, np.int32),
        np.zeros(n_bins, np.int32),
        np.zeros(rows, np.uint64),
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
