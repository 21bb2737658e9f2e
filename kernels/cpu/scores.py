"""Scores of a peptidoform with a spectrum; theoretical ions are computed when needed and never stored.

The spectral dot product is that of Li 2014 (BMC Bioinformatics 15:121): the sum over theoretical fragment ions of the weight of the
matching peak. KSDP is its kernel form with consecutive ions (Fu 2004, Bioinformatics 20:1948, equation 6), the hyperscore is that of
X!Tandem (Fenyö & Beavis 2003), and XCorr is that of SEQUEST in its fast form (Eng 2008).

Scores are bit-identical on all devices: sums have a fixed order or integer terms, and logarithms and powers are those of
`proteoscope.kernels.cpu.elementary`. Functions are compiled without Numba's reference counting, see `proteoscope.kernels.cpu.arrangements`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.elementary import FACTORIAL_LOG, logarithm, power
from proteoscope.kernels.cpu.ion_lookup import IONS_AT_ONCE, OUT_OF_REACH, fill_block, lowest_bit, matching_ions, sum_of_bins
from proteoscope.kernels.layouts import CORRELATION_UNITS
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = [
    "AROUND",
    "CORRELATION_HALF_WINDOW",
    "FORMS_AT_ONCE",
    "NEEDS_CORRELATION",
    "NEEDS_ROOTS",
    "NONE",
    "PEPTIDES_AT_ONCE",
    "PROTON_MASS",
    "XCORR_OF_SUM",
    "IndexedSpectrum",
    "IonRows",
    "Matched",
    "Peptidoforms",
    "Scratch",
    "correlation_height",
    "hyperscore",
    "index_spectrum",
    "kernel_dot_product",
    "list_rows",
    "look_up_ions",
    "match_ions",
    "maximum_peaks",
    "new_scratch",
    "score_of",
    "sum_masses",
    "sum_residues",
]

PROTON_MASS = 1.007276466621
CORRELATION_HALF_WINDOW = 75
AROUND = 2 * CORRELATION_HALF_WINDOW
XCORR_OF_SUM = 0.005 / (AROUND * CORRELATION_UNITS)
NONE = 255
"""Value of a slot without a modification."""
_LONGEST = 64
_WORD = 32  # bits
PEPTIDES_AT_ONCE = 256
"""Number of peptides that are filtered together by modification combination."""
FORMS_AT_ONCE = 16
"""Number of peptidoforms that are prepared, looked up and scored together."""
_ROUNDING = 1e-12  # maximum relative rounding error of a mass
NEEDS_ROOTS = tuple(kind.needs_roots for kind in SCORE_KINDS)
NEEDS_CORRELATION = tuple(kind.needs_correlation for kind in SCORE_KINDS)
"""Value of `proteoscope.kernels.score_kinds.ScoreKind.needs_correlation` for each score."""


@njit(nogil=True, cache=True, _nrt=False)
def _reach(settings):
    """Return (a, b): an ion can match a peak at m only if the m/z of the ion is within a + b m of the peak.

    An ion at t matches a peak at m if abs(m - t) <= absolute + relative t, up to t = (m + absolute) / (1 - relative)
    = m + (absolute + relative m) / (1 - relative), and less for t below m. An exact comparison follows; rounding must not miss any match.
    """
    widened = 1.0 / (1.0 - settings.fragment_relative)
    return settings.fragment_absolute * widened, settings.fragment_relative * widened + _ROUNDING


@njit(nogil=True, cache=True, _nrt=False)
def _index_peaks(mz, low, high, settings, words, first_peak):
    """Set a bit for each bin of the bit table `words` within the tolerance of a peak; return the first bin above all set bits.

    For each word with set bits, `first_peak` is set to the first peak that can match in it. Other words, and words after the returned bin,
    are not written.
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
    """Return the height of a peak for XCorr, an integer."""
    return np.int64(np.float64(weight) * CORRELATION_UNITS + 0.5)


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def _correlation_bin(mz, settings):
    return np.int64(mz / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset)


@njit(nogil=True, cache=True, _nrt=False)
def _correlation_vector(mz, weight, low, high, settings, vector):
    """Write SEQUEST's spectrum: heights minus the mean of the 150 bins around each bin (Eng 2008, equation 6).

    Values are multiplied by 150 and in units of heights, so that values and sums are integers. Returns the first bin after all
    non-zero bins; later bins are not written. The last element of `vector` is not a bin.
    """
    if low == high:
        vector[0] = 0
        return 0
    n = len(vector) - 1
    edge = max(0, min(n, _correlation_bin(mz[high - 1], settings) + CORRELATION_HALF_WINDOW + 1))
    vector[: edge + 1] = 0
    i = low
    while i < high:
        b, height = _correlation_bin(mz[i], settings), np.int64(0)
        while i < high and _correlation_bin(mz[i], settings) == b:  # a bin holds its highest peak
            height = max(height, correlation_height(weight[i]))
            i += 1
        if 0 <= b < n:
            for around in range(max(0, b - CORRELATION_HALF_WINDOW), min(edge, b + CORRELATION_HALF_WINDOW + 1)):
                vector[around] -= np.int32(height)
            vector[b] += (AROUND + 1) * height
    return edge


@njit(nogil=True, cache=True, _nrt=False)
def kernel_dot_product(matched_peak, root, first_peak, n_rows, n, window, exponent):
    """Return the kernel spectral dot product (KSDP): sums over windows of consecutive ions of a series, raised to a power.

    `root` contains square roots of a spectrum's peak weights, from peak `first_peak` on.
    """
    before = (window - 1) // 2
    after = window - 1 - before
    total = 0.0
    for row in range(n_rows):
        of_row = 0.0
        end = 0  # end of the last window that contains a match
        for match in range(n):
            if matched_peak[row, match] < 0:
                continue
            for j in range(max(end, match - after), min(n, match + before + 1)):
                inside = 0.0
                for k in range(max(0, j - before), min(n, j + after + 1)):
                    if matched_peak[row, k] >= 0:
                        inside += root[matched_peak[row, k] - first_peak]
                if inside > 0.0:
                    of_row += power(inside, exponent)
            end = min(n, match + before + 1)
        total += of_row
    return total


@njit(nogil=True, cache=True, _nrt=False)
def _find_roots(weight, low, high, exponent, root):
    """Write the roots of the weights of the peaks `low:high`, for KSDP, to `root`."""
    for i in range(low, high):
        root[i - low] = power(np.float64(weight[i]), 1.0 / exponent)


class IndexedSpectrum(NamedTuple):
    """Range `low:high` of a spectrum's peaks, and ends of its bit table and XCorr vector."""

    low: int
    high: int
    edge: int
    vector_edge: int


@njit(nogil=True, cache=True, _nrt=False)
def index_spectrum(s, spectra, settings, with_vector, with_roots, scratch):
    """Prepare the workspace for a spectrum: bit table of peaks and, if requested, XCorr's vector and KSDP's roots."""
    low, high = spectra.offsets[s], spectra.offsets[s + 1]
    edge, vector_edge = _index_peaks(spectra.mz, low, high, settings, scratch.words, scratch.first_peak), 0
    if with_vector:
        vector_edge = _correlation_vector(spectra.mz, spectra.correlation_weight, low, high, settings, scratch.vector)
    if with_roots:
        _find_roots(spectra.weight, low, high, settings.ksdp_power, scratch.root)
    return IndexedSpectrum(low, high, edge, vector_edge)


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def list_rows(settings, charges, rows):
    """List the rows of ions, one per series and charge, N-terminal rows first; return their number and the number of N-terminal rows.

    The ions of row r are ``start + rows.sign[r] * sum`` for the mass sums from the N-terminus. `start` is ``rows.start[r]`` for N-terminal
    series, and ``(total + rows.series[r]) / rows.charge[r] + rows.protons[r]`` for others.
    """
    n_n, n_c = len(settings.n_term_series), len(settings.c_term_series)
    for series in range(n_n + n_c):
        is_n = series < n_n
        for z in range(1, charges + 1):
            row = series * charges + z - 1
            rows.charge[row] = z
            rows.protons[row] = (z - 1) * PROTON_MASS / z
            rows.sign[row] = 1.0 / z if is_n else -1.0 / z
            rows.series[row] = settings.n_term_series[series] if is_n else settings.c_term_series[series - n_n]
            rows.start[row] = rows.series[row] / z + rows.protons[row]
    return (n_n + n_c) * charges, n_n * charges


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def _start(row, n_n_rows, total, rows):
    """Return the `start` of a row's ions (see `list_rows`); the first `n_n_rows` rows are N-terminal."""
    if row < n_n_rows:
        return rows.start[row]
    return (total + rows.series[row]) / rows.charge[row] + rows.protons[row]


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def sum_masses(masses, length, n_term, c_term, forms, f):
    """Write the peptidoform with the given residue masses to index `f` of `forms`."""
    total = n_term
    for i in range(length):
        total += masses[i]
        forms.sums[f, i] = total
    _close_form(length, total + c_term, forms, f)


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def sum_residues(residues, position, length, code_mass, n_term, c_term, forms, f):
    """Write the unmodified form of a peptide to index `f` of `forms`; `code_mass` contains the residue masses."""
    total = n_term
    for i in range(length):
        total += code_mass[residues[position + i]]
        forms.sums[f, i] = total
    _close_form(length, total + c_term, forms, f)


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def _close_form(length, total, forms, f):
    """Complete peptidoform `f`: store its total mass and length, and fill the rest of its last block with masses out of reach."""
    fill_block(forms.sums, f * forms.sums.shape[1] + length - 1, OUT_OF_REACH)
    forms.total[f], forms.length[f] = total, length


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def look_up_ions(f, n_rows, n_n_rows, indexed, settings, use_vector, scratch):
    """Write the bit masks ``forms.bits[f, row]``, in which a bit is set if the ion may match a peak.

    Return two values: True if any bit is set, and the sum of XCorr's vector over all ions, which is 0 without `use_vector`.

    All look-ups of a peptidoform are vectorised without branches, since most ions match no peak.
    """
    forms, rows, words, vector = scratch.forms, scratch.rows, scratch.words, scratch.vector
    inverse_bin, inverse_correlation = 1.0 / settings.bin_width, 1.0 / settings.correlation_bin_width
    correlation_shift = 1.0 - settings.correlation_bin_offset
    correlation, result = np.int64(0), np.uint64(0)
    at, n_ions, total = f * forms.sums.shape[1], forms.length[f] - 1, forms.total[f]
    for row in range(n_rows):
        start, sign = _start(row, n_n_rows, total, rows), rows.sign[row]
        bits = np.uint64(0)
        for i in range(0, n_ions, IONS_AT_ONCE):
            bits |= matching_ions(forms.sums, at + i, start, sign, inverse_bin, words, indexed.edge) << np.uint64(i)
            if use_vector:
                correlation += sum_of_bins(
                    forms.sums, at + i, start, sign, inverse_correlation, correlation_shift, vector, indexed.vector_edge
                )
        forms.bits[f, row] = bits
        result |= bits
    return result != 0, correlation


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def match_ions(f, n_rows, n_n_rows, indexed, spectra, settings, keep, scratch):
    """Match the ions of peptidoform `f` that `look_up_ions` found; return the counts of matched ions and the spectral dot product.

    There are separate counts of N-terminal ions (the first `n_n_rows` of the `n_rows` rows of ions) and C-terminal ions. An ion matches
    the peak with the largest weight within the tolerance. With `keep`, the peak of each ion, or -1, is written to `matched_peak` (rows,
    length - 1) of the workspace `scratch`: columns start at the N-terminus for N-terminal ions, and at the C-terminus for C-terminal ions.
    """
    forms, rows, first_peak, matched_peak = scratch.forms, scratch.rows, scratch.first_peak, scratch.matched_peak
    mz, weight = spectra.mz, spectra.weight
    absolute, relative, inverse_bin = settings.fragment_absolute, settings.fragment_relative, 1.0 / settings.bin_width
    last, total = forms.length[f] - 2, forms.total[f]
    count_n, count_c, dot = 0, 0, 0.0
    for row in range(n_rows):
        if keep:
            matched_peak[row, : last + 1] = -1
        bits = forms.bits[f, row]
        if bits == 0:
            continue
        is_n = row < n_n_rows
        start, sign = _start(row, n_n_rows, total, rows), rows.sign[row]
        count = 0
        while bits != 0:
            i = lowest_bit(bits)
            bits &= bits - np.uint64(1)
            target = start + sign * forms.sums[f, i]
            half = absolute + relative * target
            peak = -1
            for k in range(first_peak[np.uint64(target * inverse_bin) // np.uint64(_WORD)], indexed.high):
                difference = mz[k] - target
                if difference > half:
                    break
                if difference >= -half and (peak < 0 or weight[k] > weight[peak]):
                    peak = k
            if peak >= 0:
                dot += weight[peak]
                count += 1
                if keep:
                    matched_peak[row, i if is_n else last - i] = peak
        if is_n:
            count_n += count
        else:
            count_c += count
    return count_n, count_c, dot


@njit(nogil=True, cache=True, _nrt=False)
def hyperscore(count_n, count_c, dot):
    """Return ln(n! c! (1 + 100 dot)) for n N-terminal and c C-terminal matched ions, after X!Tandem (Fenyö & Beavis 2003).

    The factor of 100 is used since the squared weights of a spectrum sum to 1; the 1 avoids the logarithm of zero. X!Tandem uses base-10
    logarithms and raw intensities, and Sage uses natural logarithms and sums per series. The scales of the scores therefore differ.
    """
    return FACTORIAL_LOG[count_n] + FACTORIAL_LOG[count_c] + logarithm(1.0 + 100.0 * dot)


class Matched(NamedTuple):
    """Match of a peptidoform and a spectrum, from which scores are computed.

    The score is 0 if no ion matches, unless it needs the correlation.

    Attributes
    ----------
    count_n, count_c
        Number of matched N-terminal and C-terminal ions.
    dot
        Sum of the weights of the matched peaks.
    correlation
        Sum of XCorr's vector over all ions, for scores that need it.
    peak, root
        For scores that need roots: peak of each ion, (rows, n_ions), or -1, and roots of peak weights from `first_peak`. Ions are counted
        from the terminus of their series.
    """

    count_n: int
    count_c: int
    dot: float
    correlation: int
    peak: NDArray[np.int64]
    root: NDArray[np.float64]
    first_peak: int
    n_rows: int
    n_ions: int


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def spectral_dot_product(matched, settings):
    """Return the sum of matched peaks' weights (Li 2014)."""
    return matched.dot


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def kernel_spectral_dot_product(matched, settings):
    """Return the kernel spectral dot product of a match (see `kernel_dot_product`)."""
    return kernel_dot_product(
        matched.peak, matched.root, matched.first_peak, matched.n_rows, matched.n_ions, settings.ksdp_window, settings.ksdp_power
    )


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def hyperscore_of_match(matched, settings):
    """Return the hyperscore of a match (see `hyperscore`)."""
    return hyperscore(matched.count_n, matched.count_c, matched.dot)


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def cross_correlation(matched, settings):
    """Return the XCorr of a match (Eng 2008)."""
    return matched.correlation * XCORR_OF_SUM


def _choice(code: int) -> Any:
    """Return a compiled function of (score number, match, settings) that computes the score with this number (`code` or higher)."""
    score_function = globals()[SCORE_KINDS[code].on_processor]
    if code + 1 == len(SCORE_KINDS):
        return njit(nogil=True, _nrt=False, forceinline=True)(lambda which, matched, settings: score_function(matched, settings))
    others = _choice(code + 1)

    @njit(nogil=True, _nrt=False, forceinline=True)
    def score(which, matched, settings):
        if which == code:
            return score_function(matched, settings)
        return others(which, matched, settings)

    return score


score_of = _choice(0)
"""Function that returns a score of a match, given its number in `SCORE_KINDS`."""


class IonRows(NamedTuple):
    """Rows of ions (see `list_rows`)."""

    charge: NDArray[np.float64]
    protons: NDArray[np.float64]
    sign: NDArray[np.float64]
    series: NDArray[np.float64]
    start: NDArray[np.float64]


class Peptidoforms(NamedTuple):
    """Batch of f peptidoforms. Computing several at once avoids that a step must wait for the result of the previous step.

    Attributes
    ----------
    sums, total
        (f, longest) cumulative masses from the N-terminus, and (f,) total masses.
    bits
        (f, rows) bit masks of ions that may match a peak.
    site, modification
        (f, slots) sites and modifications of the `slots` in use.
    """

    sums: NDArray[np.float64]
    total: NDArray[np.float64]
    length: NDArray[np.int64]
    bits: NDArray[np.uint64]
    has_any: NDArray[np.bool_]
    correlation: NDArray[np.int64]
    peptide: NDArray[np.int64]
    isotope_error: NDArray[np.int64]
    slots: NDArray[np.int64]
    site: NDArray[np.int64]
    modification: NDArray[np.int64]


class Scratch(NamedTuple):
    """Workspace of a thread: peptidoforms, bit table, XCorr vector, matched peaks, roots for KSDP, and arrangement of modifications."""

    code_mass: NDArray[np.float64]
    base: NDArray[np.float64]
    chosen: NDArray[np.int64]
    rows: IonRows
    forms: Peptidoforms
    words: NDArray[np.uint32]
    first_peak: NDArray[np.int64]
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
    """Return a workspace for spectra of at most `most` peaks (only KSDP needs this limit); `with_vector` reserves XCorr's vector."""
    absolute, relative = _reach(settings)
    n_words = np.int64((settings.maximum_mz + absolute + relative * settings.maximum_mz) / settings.bin_width) // _WORD + 2
    n_bins = np.int64(settings.maximum_mz / settings.correlation_bin_width) + 2 + CORRELATION_HALF_WINDOW + 1 if with_vector else 1
    rows = (len(settings.n_term_series) + len(settings.c_term_series)) * settings.maximum_fragment_charge
    return Scratch(
        np.zeros(256, np.float64),
        np.zeros(_LONGEST, np.float64),
        np.zeros(PEPTIDES_AT_ONCE, np.int64),
        IonRows(np.zeros(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows)),
        Peptidoforms(
            np.zeros((FORMS_AT_ONCE, _LONGEST + IONS_AT_ONCE)),
            np.zeros(FORMS_AT_ONCE),
            np.zeros(FORMS_AT_ONCE, np.int64),
            np.zeros((FORMS_AT_ONCE, rows), np.uint64),
            np.zeros(FORMS_AT_ONCE, np.bool_),
            np.zeros(FORMS_AT_ONCE, np.int64),
            np.zeros(FORMS_AT_ONCE, np.int64),
            np.zeros(FORMS_AT_ONCE, np.int64),
            np.zeros(FORMS_AT_ONCE, np.int64),
            np.zeros((FORMS_AT_ONCE, slots), np.int64),
            np.zeros((FORMS_AT_ONCE, slots), np.int64),
        ),
        np.zeros(n_words, np.uint32),
        np.zeros(n_words, np.int64),
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
def maximum_peaks(spectra, spectrum, first, last):
    """Return the maximum number of peaks of the spectra in the rows `first:last` of `spectrum`."""
    most = 0
    for row in range(first, last):
        most = max(most, spectra.offsets[spectrum[row] + 1] - spectra.offsets[spectrum[row]])
    return most
