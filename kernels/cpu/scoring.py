"""Search of spectra against the mass-sorted peptide dictionary: candidates, their modified forms, and scores, straight from residues.

The spectral dot product is that of Li 2014 (BMC Bioinformatics 15:121): the sum over theoretical fragment ions of the weight of the
matching peak. KSDP is its kernel form with consecutive ions (Fu 2004, Bioinformatics 20:1948, equation 6), the hyperscore that of X!Tandem
(Fenyö & Beavis 2003), XCorr that of SEQUEST in its fast form (Eng 2008). Theoretical ions are computed on the fly from running sums of
residue and modification masses and never stored; modified forms are enumerated while searching and never stored.

Scores are the same to the last bit on every device: sums are made in one order, or of whole numbers, and logarithms and powers are those
of `kernels.cpu.elementary`.

Functions on the hot path are compiled without Numba's reference counting (``_nrt=False``): they own no arrays, and counting the
references to each array at every call took ten times as long as the work itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kernels.cpu.digestion import FLAG_PROTEIN_C_TERM, FLAG_PROTEIN_N_TERM
from kernels.cpu.elementary import FACTORIAL_LOG, logarithm, power
from kernels.layouts import CORRELATION_UNITS, HYPERSCORE, ISOTOPE_BITS, KSDP, XCORR

__all__ = [
    "bin_of_rounded",
    "count_candidates",
    "feature_names",
    "find_arrangement",
    "first_arrangement",
    "is_possible",
    "lower_bound",
    "measure_matches",
    "next_arrangement",
    "place_modifications",
    "score_candidates",
    "search_queries",
]

_PROTON_MASS = 1.007276466621
_CORRELATION_HALF_WINDOW = 75
_AROUND = 2 * _CORRELATION_HALF_WINDOW
_XCORR_OF_SUM = 0.005 / (_AROUND * CORRELATION_UNITS)
_NONE = 255
_LONGEST = 64
_ROUNDING = 1e-12  # of a mass, at most
_ANY_RESIDUE = np.uint32(0xFFFFFFFF)


@njit(nogil=True, cache=True, _nrt=False)
def lower_bound(values, low, high, target):
    """First of the ascending values `low:high` that is not below `target`; `high` where there is none."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True, _nrt=False)
def _mass_window(mass, settings, query_mass, isotope_error, combination_mass):
    """Range of the dictionary whose peptides, with a combination of modifications, have the query's mass."""
    observed = query_mass - isotope_error * settings.isotope_spacing
    tolerance = settings.precursor_absolute + settings.precursor_relative * observed
    low = lower_bound(mass, 0, len(mass), observed - tolerance - combination_mass)
    high = lower_bound(mass, low, len(mass), np.nextafter(observed + tolerance - combination_mass, np.inf))
    return low, high


@njit(nogil=True, cache=True)
def count_candidates(queries, mass, modifications, settings, first, last, out):
    """Unmodified peptides in the mass windows of each query `first:last`, over all combinations and isotope errors: the cost of a query.

    `out` (q,) int64. This is the pre-calculation of Li 2014: the plan cuts the queries into partitions of equal sums of it.
    """
    for q in range(first, last):
        total = 0
        for e in range(len(settings.isotope_errors)):
            if queries.mass[q] < settings.isotope_minimum_mass[e]:
                continue
            for c in range(len(modifications.combination_mass)):
                low, high = _mass_window(mass, settings, queries.mass[q], settings.isotope_errors[e], modifications.combination_mass[c])
                total += high - low
        out[q] = total


@njit(nogil=True, cache=True, _nrt=False)
def _reach(settings):
    """How far peaks reach: one at m by the first number plus the second one times m.

    An ion at t matches a peak at m where abs(m - t) <= absolute + relative t, which is up to t = (m + absolute) / (1 - relative)
    = m + (absolute + relative m) / (1 - relative), and less far down. The exact comparison follows; none must be missed by rounding.
    """
    widened = 1.0 / (1.0 - settings.fragment_relative)
    return settings.fragment_absolute * widened, settings.fragment_relative * widened + _ROUNDING


@njit(nogil=True, cache=True, _nrt=False)
def _index_peaks(mz, low, high, settings, words, first_peak):
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
def _correlation_height(weight):
    """Height of a peak for XCorr, a whole number."""
    return np.int64(np.float64(weight) * CORRELATION_UNITS + 0.5)


@njit(nogil=True, cache=True, _nrt=False)
def _correlation_vector(mz, weight, low, high, settings, raw, vector):
    """SEQUEST's spectrum after subtracting the mean of the 150 bins around each bin (Eng 2008, equation 6).

    150 times as high and in units of heights, so that all values, and sums of them in any order, are whole numbers.
    """
    n = len(vector)
    raw[:] = 0
    for i in range(low, high):
        b = np.int64(mz[i] / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset)
        if 0 <= b < n:
            raw[b] = max(np.int64(raw[b]), _correlation_height(weight[i]))
    total = np.int64(0)
    for b in range(min(n, _CORRELATION_HALF_WINDOW)):
        total += raw[b]
    for b in range(n):
        if b + _CORRELATION_HALF_WINDOW < n:
            total += raw[b + _CORRELATION_HALF_WINDOW]
        if b - _CORRELATION_HALF_WINDOW - 1 >= 0:
            total -= raw[b - _CORRELATION_HALF_WINDOW - 1]
        vector[b] = _AROUND * np.int64(raw[b]) - (total - raw[b])


@njit(nogil=True, cache=True, _nrt=False)
def _ksdp(matched_peak, root, first_peak, n_rows, n, window, exponent):
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
def _find_roots(weight, low, high, exponent, root):
    """Roots of the weights of the peaks `low:high` for KSDP, into `root`."""
    for i in range(low, high):
        root[i - low] = power(np.float64(weight[i]), 1.0 / exponent)


@njit(nogil=True, cache=True, _nrt=False)
def _score_form(
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
            start = (n_term_series[series] if is_n else total + c_term_series[series - n_n]) / z + (z - 1) * _PROTON_MASS / z
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
def _hyperscore(count_n, count_c, dot):
    """After X!Tandem's (Fenyö & Beavis 2003): ln(n! c! (1 + 100 dot)) for n and c matched ions from either end.

    The weights of a spectrum have unit length, hence the factor of 100; the 1 keeps the logarithm of nothing out. X!Tandem's is a base-10
    logarithm over raw intensities, Sage's a natural one with sums for each series: neither scale is this one.
    """
    return FACTORIAL_LOG[count_n] + FACTORIAL_LOG[count_c] + logarithm(1.0 + 100.0 * dot)


@njit(nogil=True, cache=True, _nrt=False)
def _find_sites(residues, position, length, flags, residue_mask, place, sites, m):
    """Places of a peptide where a modification may sit, into row m of `sites`: 0 N-terminus, 1..length residues, length + 1 C-terminus;
    how many."""
    n = 0
    any_residue = residue_mask == _ANY_RESIDUE
    if place == 0:
        for i in range(length):
            if (residue_mask >> np.uint32(residues[position + i] - 65)) & np.uint32(1):
                sites[m, n] = i + 1
                n += 1
        return n
    at_n_term = place == 1 or (place == 3 and flags & FLAG_PROTEIN_N_TERM)
    at_c_term = place == 2 or (place == 4 and flags & FLAG_PROTEIN_C_TERM)
    if not (at_n_term or at_c_term):
        return 0
    end = 0 if at_n_term else length - 1
    if (residue_mask >> np.uint32(residues[position + end] - 65)) & np.uint32(1):
        sites[m, 0] = (0 if at_n_term else length + 1) if any_residue else end + 1
        n = 1
    return n


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def first_arrangement(
    c, peptide, residues, positions, lengths, flags, letters, combination_count, residue_mask, places, sites, n_sites, slot_modification,
    slot_choice,
):  # fmt: skip
    """Begin the arrangements of combination `c` on a peptide; the number of modifications in it, or -1 where one finds too few sites.

    Arguments are columns of the bundles of `kernels.layouts`. Written: `sites` (m, longest) and `n_sites` (m,) int64, the places where each
    modification may sit; `slot_modification` and `slot_choice` (slots,) int64, for each modification of the combination which it is, and
    the number of its site among those.
    """
    if c == 0:
        return 0
    n_modifications = len(residue_mask)
    for m in range(n_modifications):
        if combination_count[c, m] > 0 and letters[peptide] & residue_mask[m] == 0:
            return -1
    position, length = np.int64(positions[peptide]), np.int64(lengths[peptide])
    slots = 0
    for m in range(n_modifications):
        wanted = combination_count[c, m]
        if wanted == 0:
            continue
        n_sites[m] = _find_sites(residues, position, length, flags[peptide], residue_mask[m], places[m], sites, m)
        if n_sites[m] < wanted:
            return -1
        for w in range(wanted):
            slot_modification[slots] = m
            slot_choice[slots] = w
            slots += 1
    return slots


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def is_possible(slots, slot_modification, slot_choice, sites, slot_site):
    """Write the sites of an arrangement into `slot_site`; whether no two modifications share one."""
    free = True
    for t in range(slots):
        slot_site[t] = sites[slot_modification[t], slot_choice[t]]
        for u in range(t):
            if slot_site[u] == slot_site[t]:
                free = False
    return free


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def place_modifications(base, length, slots, slot_site, slot_modification, modification_mass, n_term, c_term, shift):
    """Residue masses `base` with the modifications of an arrangement into `shift`; what the two ends weigh."""
    for i in range(length):
        shift[i] = base[i]
    for t in range(slots):
        if slot_site[t] == 0:
            n_term += modification_mass[slot_modification[t]]
        elif slot_site[t] == length + 1:
            c_term += modification_mass[slot_modification[t]]
        else:
            shift[slot_site[t] - 1] += modification_mass[slot_modification[t]]
    return n_term, c_term


@njit(nogil=True, cache=True, _nrt=False)
def next_arrangement(slots, slot_modification, slot_choice, n_sites):
    """Advance to the next arrangement: within one modification the chosen sites ascend. False after the last."""
    t = slots - 1
    while t >= 0:
        m = slot_modification[t]
        after = 0  # slots of the same modification that still follow need a site each
        while t + after + 1 < slots and slot_modification[t + after + 1] == m:
            after += 1
        if slot_choice[t] + 1 + after < n_sites[m]:
            slot_choice[t] += 1
            for u in range(t + 1, slots):
                if slot_modification[u] == m or slot_modification[u - 1] == slot_modification[u]:
                    slot_choice[u] = slot_choice[u - 1] + 1
                else:
                    slot_choice[u] = 0
            return True
        t -= 1
    return False


@njit(nogil=True, cache=True, _nrt=False)
def find_arrangement(number, slots, slot_modification, slot_choice, sites, n_sites, slot_site):
    """Go from the first arrangement to the possible one of that number, counted from 0; its sites are in `slot_site`."""
    while True:
        if is_possible(slots, slot_modification, slot_choice, sites, slot_site):
            if number == 0:
                return
            number -= 1
        next_arrangement(slots, slot_modification, slot_choice, n_sites)


@njit(nogil=True, cache=True, _nrt=False)
def _insert(hits, q, score, peptide, isotope_error, slots, slot_site, slot_modification):
    """Keep a candidate among the best of query q; equal scores stay in the order in which they came."""
    k = hits.score.shape[1]
    place = k
    score = np.float32(score)  # as it is kept: else a score would beat its own rounding, and equal ones would change places
    while place > 0 and (hits.peptide[q, place - 1] < 0 or score > hits.score[q, place - 1]):
        place -= 1
    if place == k:
        return
    for j in range(k - 1, place, -1):
        hits.score[q, j] = hits.score[q, j - 1]
        hits.peptide[q, j] = hits.peptide[q, j - 1]
        hits.isotope_error[q, j] = hits.isotope_error[q, j - 1]
        for s in range(hits.site.shape[2]):
            hits.site[q, j, s] = hits.site[q, j - 1, s]
            hits.modification[q, j, s] = hits.modification[q, j - 1, s]
    hits.score[q, place] = score
    hits.peptide[q, place] = peptide
    hits.isotope_error[q, place] = isotope_error
    for s in range(hits.site.shape[2]):
        if s < slots:
            hits.site[q, place, s] = slot_site[s]
            hits.modification[q, place, s] = slot_modification[s]
        else:
            hits.site[q, place, s] = _NONE
            hits.modification[q, place, s] = _NONE


class _Scratch(NamedTuple):
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
def _scratch(settings, n_modifications, slots, with_vector, most_peaks):
    absolute, relative = _reach(settings)
    n_words = np.int64((settings.max_mz + absolute + relative * settings.max_mz) / settings.bin_width) // 64 + 1
    n_bins = np.int64(settings.max_mz / settings.correlation_bin_width) + 2 + _CORRELATION_HALF_WINDOW if with_vector else 1
    rows = (len(settings.n_term_series) + len(settings.c_term_series)) * settings.max_fragment_charge
    return _Scratch(
        np.empty(_LONGEST, np.float64),
        np.empty(_LONGEST, np.float64),
        np.zeros(n_words, np.uint64),
        np.zeros(n_words, np.int64),
        np.zeros(n_bins, np.int32),
        np.zeros(n_bins, np.int32),
        np.zeros((rows, _LONGEST), np.int64),
        np.zeros(most_peaks, np.float64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros((max(1, n_modifications), _LONGEST), np.int64),
        np.zeros(max(1, n_modifications), np.int64),
    )


@njit(nogil=True, cache=True, _nrt=False)
def _most_peaks(spectra, spectrum, first, last):
    """Peaks of the fullest of the spectra that rows `first:last` name."""
    most = 0
    for row in range(first, last):
        most = max(most, spectra.offsets[spectrum[row] + 1] - spectra.offsets[spectrum[row]])
    return most


@njit(nogil=True, cache=True)
def search_queries(spectra, queries, peptides, modifications, settings, hits, first, last, stop=None):
    """Score every candidate of the queries `first:last` and keep the best of each.

    All arguments are the bundles of `kernels.layouts`. Candidates of a query are the peptides, with any allowed combination of variable
    modifications, whose mass agrees with the query's at one of the isotope errors. Work is proportional to the sum of `count_candidates`.
    `stop` (1,) uint8: once another thread sets it, the search leaves off where it is, for one query may take many seconds.
    """
    flag = np.zeros(1, np.uint8) if stop is None else stop
    most_peaks = _most_peaks(spectra, queries.spectrum, first, last) if settings.score == KSDP else 0
    scratch = _scratch(settings, len(modifications.mass), hits.site.shape[2], settings.score == XCORR, most_peaks)
    for q in range(first, last):
        _search_query(q, spectra, queries, peptides, modifications, settings, hits, scratch, flag)


@njit(nogil=True, cache=True, _nrt=False)
def _search_query(q, spectra, queries, peptides, modifications, settings, hits, scratch, stop):
    """Score the candidates of one query, until `stop` is set."""
    inverse_bin = 1.0 / settings.bin_width
    inverse_histogram = 1.0 / hits.histogram_width
    bins = hits.histogram.shape[1]
    which = settings.score
    keep, use_vector = which == KSDP, which == XCORR
    absolute, relative = settings.fragment_absolute, settings.fragment_relative
    residues, positions, lengths, flags, letters, residue_mass = (
        peptides.residues,
        peptides.position,
        peptides.length,
        peptides.flags,
        peptides.letters,
        peptides.residue_mass,
    )
    mz, weight = spectra.mz, spectra.weight
    n_term_series, c_term_series = settings.n_term_series, settings.c_term_series
    combination_count, modification_mass = modifications.combination_count, modifications.mass
    residue_mask, places = modifications.residue_mask, modifications.place
    histogram, n_candidates, max_forms = hits.histogram, hits.n_candidates, modifications.max_forms
    base_n_term, base_c_term, min_matched_ions = peptides.n_term_mass, peptides.c_term_mass, settings.min_matched_ions
    correlation_bin, correlation_offset = settings.correlation_bin_width, settings.correlation_bin_offset
    shift, base, words, first_peak, raw, vector = (
        scratch.shift,
        scratch.base,
        scratch.words,
        scratch.first_peak,
        scratch.raw,
        scratch.vector,
    )
    matched_peak, sites, n_sites = scratch.matched_peak, scratch.sites, scratch.n_sites
    slot_modification, slot_choice, slot_site = scratch.slot_modification, scratch.slot_choice, scratch.slot_site
    rows_per_charge = len(n_term_series) + len(c_term_series)
    s = queries.spectrum[q]
    low_peak, high_peak = spectra.offsets[s], spectra.offsets[s + 1]
    if high_peak == low_peak:
        return
    _index_peaks(mz, low_peak, high_peak, settings, words, first_peak)
    if use_vector:
        _correlation_vector(mz, spectra.correlation_weight, low_peak, high_peak, settings, raw, vector)
    if keep:
        _find_roots(weight, low_peak, high_peak, settings.ksdp_power, scratch.root)
    charges = max(1, min(settings.max_fragment_charge, queries.charge[q] - 1))
    for c in range(len(modifications.combination_mass)):
        done = 0
        for e in range(len(settings.isotope_errors)):
            if queries.mass[q] < settings.isotope_minimum_mass[e]:
                continue
            isotope_error = settings.isotope_errors[e]
            low, high = _mass_window(peptides.mass, settings, queries.mass[q], isotope_error, modifications.combination_mass[c])
            low = max(low, done)  # isotope errors come largest first, so windows ascend; where they overlap, a peptide is scored once
            done = max(done, high)
            for peptide in range(low, high):
                if stop[0]:
                    return
                slots = first_arrangement(
                    c, peptide, residues, positions, lengths, flags, letters, combination_count, residue_mask, places, sites, n_sites,
                    slot_modification, slot_choice,
                )  # fmt: skip
                if slots < 0:
                    continue
                position, length = np.int64(positions[peptide]), np.int64(lengths[peptide])
                for i in range(length):
                    base[i] = residue_mass[np.int64(residues[position + i]) - 65]
                forms = 0
                while True:
                    if is_possible(slots, slot_modification, slot_choice, sites, slot_site):
                        n_term, c_term = place_modifications(
                            base, length, slots, slot_site, slot_modification, modification_mass, base_n_term, base_c_term, shift
                        )
                        count_n, count_c, dot, correlation = _score_form(
                            shift, length, n_term, c_term, charges, mz, weight, high_peak, absolute, relative, n_term_series,
                            c_term_series, inverse_bin, words, first_peak, use_vector, correlation_bin,
                            correlation_offset, vector, matched_peak, keep,
                        )  # fmt: skip
                        score = dot
                        if which == HYPERSCORE:
                            score = _hyperscore(count_n, count_c, dot) if dot > 0 else 0.0
                        elif which == KSDP:
                            score = _ksdp(
                                matched_peak, scratch.root, low_peak, rows_per_charge * charges, length - 1, settings.ksdp_window,
                                settings.ksdp_power,
                            )  # fmt: skip
                        elif use_vector:
                            score = correlation * _XCORR_OF_SUM
                        n_candidates[q] += 1
                        b = min(bins - 1, max(0, np.int64(score * inverse_histogram)))
                        histogram[q, b] += 1
                        if count_n + count_c >= min_matched_ions:
                            _insert(hits, q, score, peptide, isotope_error, slots, slot_site, slot_modification)
                        forms += 1
                    if forms >= max_forms or stop[0] or not next_arrangement(slots, slot_modification, slot_choice, n_sites):
                        break


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def bin_of_rounded(score, inverse_width, last_bin):
    """Bin of a histogram for a score (not negative) in float32, as are the inverse width of a bin and the number of the last."""
    return np.int32(min(score * inverse_width, last_bin))


@njit(nogil=True, cache=True)
def score_candidates(spectra, queries, peptides, modifications, settings, code, best, hits, first, last):
    """Score chosen candidates of the queries `first:last`, by the spectral dot product or the hyperscore, and keep the best of each.

    `best` (`kernels.layouts.BestArrays`) holds their numbers, made as `code` says, and the rounded scores by which they were chosen and
    counted in the histograms of `hits`; there they change to the bins of their scores. Scores, limits and the order of equal scores are
    those of `search_queries`; `n_candidates` stays as it is.
    """
    scratch = _scratch(settings, len(modifications.mass), hits.site.shape[2], False, 0)
    bins = hits.histogram.shape[1]
    inverse, last_bin = np.float32(1.0 / hits.histogram_width), np.float32(bins - 1)
    for q in range(first, last):
        s = queries.spectrum[q]
        if best.code[q, 0] >= 0:
            _index_peaks(spectra.mz, spectra.offsets[s], spectra.offsets[s + 1], settings, scratch.words, scratch.first_peak)
        number = np.int64(-1)
        while True:
            # In order of their numbers, for equal scores stay in the order in which they come.
            j = -1
            for k in range(best.code.shape[1]):
                if best.code[q, k] > number and (j < 0 or best.code[q, k] < best.code[q, j]):
                    j = k
            if j < 0:
                break
            number = best.code[q, j]
            score = _score_candidate(
                q, number, spectra, spectra.offsets[s + 1], queries.charge[q], peptides, modifications, settings, code, hits, scratch
            )
            hits.histogram[q, bin_of_rounded(best.score[q, j], inverse, last_bin)] -= 1
            hits.histogram[q, min(bins - 1, np.int64(score * (1.0 / hits.histogram_width)))] += 1


@njit(nogil=True, cache=True, _nrt=False)
def _score_candidate(q, number, spectra, high_peak, charge, peptides, modifications, settings, code, hits, scratch):
    """The score of the candidate of that number, which is kept if it is among the best of query q."""
    peptide = (number >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)
    e = (number >> code.isotope_shift) & ((1 << ISOTOPE_BITS) - 1)
    slots = first_arrangement(
        number >> (code.isotope_shift + ISOTOPE_BITS), peptide, peptides.residues, peptides.position, peptides.length, peptides.flags,
        peptides.letters, modifications.combination_count, modifications.residue_mask, modifications.place, scratch.sites, scratch.n_sites,
        scratch.slot_modification, scratch.slot_choice,
    )  # fmt: skip
    find_arrangement(
        number & ((1 << code.arrangement_bits) - 1), slots, scratch.slot_modification, scratch.slot_choice, scratch.sites, scratch.n_sites,
        scratch.slot_site,
    )  # fmt: skip
    position, length = np.int64(peptides.position[peptide]), np.int64(peptides.length[peptide])
    for i in range(length):
        scratch.base[i] = peptides.residue_mass[np.int64(peptides.residues[position + i]) - 65]
    n_term, c_term = place_modifications(
        scratch.base, length, slots, scratch.slot_site, scratch.slot_modification, modifications.mass, peptides.n_term_mass,
        peptides.c_term_mass, scratch.shift,
    )  # fmt: skip
    count_n, count_c, dot, _ = _score_form(
        scratch.shift, length, n_term, c_term, max(1, min(settings.max_fragment_charge, charge - 1)), spectra.mz, spectra.weight, high_peak,
        settings.fragment_absolute, settings.fragment_relative, settings.n_term_series, settings.c_term_series, 1.0 / settings.bin_width,
        scratch.words, scratch.first_peak, False, settings.correlation_bin_width, settings.correlation_bin_offset, scratch.vector,
        scratch.matched_peak, False,
    )  # fmt: skip
    score = dot
    if settings.score == HYPERSCORE:
        score = _hyperscore(count_n, count_c, dot) if dot > 0 else 0.0
    if count_n + count_c >= settings.min_matched_ions:
        _insert(hits, q, score, peptide, settings.isotope_errors[e], slots, scratch.slot_site, scratch.slot_modification)
    return score


# Columns that `measure_matches` writes.
(
    _MATCHED_IONS,
    _TOTAL_IONS,
    _MATCHED_N_TERM_IONS,
    _MATCHED_C_TERM_IONS,
    _SPECTRAL_DOT_PRODUCT,
    _HYPERSCORE,
    _KSDP,
    _XCORR,
    _LONGEST_RUN,
    _COMPLEMENTARY_PAIRS,
    _EXPLAINED_WEIGHT,
    _MATCHED_PEAKS,
    _MEAN_FRAGMENT_ERROR,
    _MEAN_ABSOLUTE_FRAGMENT_ERROR,
    _TOP_PEAKS_MATCHED,
    _C_TERM_DOT_PRODUCT,
    _CHANCE,
) = range(17)


def feature_names() -> tuple[str, ...]:
    """Names of the columns that `measure_matches` writes."""
    return (
        "matched_ions",
        "total_ions",
        "matched_n_term_ions",
        "matched_c_term_ions",
        "spectral_dot_product",
        "hyperscore",
        "ksdp",
        "xcorr",
        "longest_run",
        "complementary_pairs",
        "explained_weight",
        "matched_peaks",
        "mean_fragment_error",
        "mean_absolute_fragment_error",
        "top_peaks_matched",
        "c_term_dot_product",
        "chance",
    )


@njit(nogil=True, cache=True, _nrt=False)
def _log_binomial_tail(k, n, probability):
    """log10 of the probability that of n ions k or more match by chance."""
    log_p, log_q = np.log(probability), np.log(1.0 - probability)
    largest, total = 0.0, 0.0
    for j in range(k, n + 1):
        term = FACTORIAL_LOG[n] - FACTORIAL_LOG[j] - FACTORIAL_LOG[n - j] + j * log_p + (n - j) * log_q
        if j == k:
            largest = term
        total += np.exp(term - largest)
        if j > n * probability and term < largest - 20.0:
            break
    return min(0.0, (largest + np.log(total)) / np.log(10.0))


@njit(nogil=True, cache=True, _nrt=False)
def _sparse_correlation(target, mz, weight, low, high, settings):
    """Value of SEQUEST's subtracted spectrum at one ion, as in `_correlation_vector`, from the peaks alone: no vector of bins."""
    b = np.int64(target / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset)
    left = (b - 1.0 - _CORRELATION_HALF_WINDOW + settings.correlation_bin_offset) * settings.correlation_bin_width
    start = lower_bound(mz, low, high, left - settings.correlation_bin_width)
    own, around = np.int64(0), np.int64(0)
    last_bin, last_height = np.int64(-1), np.int64(0)
    for i in range(start, high):
        bin_here = np.int64(mz[i] / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset)
        if bin_here > b + _CORRELATION_HALF_WINDOW:
            break
        if bin_here < b - _CORRELATION_HALF_WINDOW:
            continue
        height = _correlation_height(weight[i])
        if bin_here == last_bin:  # a bin holds its highest peak
            height, previous = max(height, last_height), last_height
        else:
            previous = np.int64(0)
        if bin_here == b:
            own += height - previous
        else:
            around += height - previous
        last_bin, last_height = bin_here, height
    return _AROUND * own - around


@njit(nogil=True, cache=True)
def measure_matches(
    spectra, query_spectrum, query_charge, peptides, peptide, modification_mass, site, modification, settings, first, last, out, stop=None
):  # fmt: skip
    """All scores and match features of given peptidoforms, row by row.

    `query_spectrum`, `query_charge`, `peptide` (n,) int64; `site`, `modification` (n, s) uint8 as in HitArrays; `modification_mass` (m,)
    float64; `out` (n, len(feature_names())) float64; `stop` as in `search_queries`. Fragment errors are in ppm of the fragment's m/z;
    ``chance`` is log10 of the probability that as many ions match at random.
    """
    flag = np.zeros(1, np.uint8) if stop is None else stop
    scratch = _scratch(settings, 0, 1, False, _most_peaks(spectra, query_spectrum, first, last))
    shift, words, first_peak, matched_peak, vector = scratch.shift, scratch.words, scratch.first_peak, scratch.matched_peak, scratch.vector
    n_n, n_c = len(settings.n_term_series), len(settings.c_term_series)
    inverse_bin = 1.0 / settings.bin_width
    mz, weight = spectra.mz, spectra.weight
    previous_spectrum = np.int64(-1)
    for row in range(first, last):
        if flag[0]:
            return
        s = query_spectrum[row]
        low, high = spectra.offsets[s], spectra.offsets[s + 1]
        if s != previous_spectrum:
            _index_peaks(spectra.mz, low, high, settings, words, first_peak)
            _find_roots(weight, low, high, settings.ksdp_power, scratch.root)
            previous_spectrum = s
        position, length = np.int64(peptides.position[peptide[row]]), np.int64(peptides.length[peptide[row]])
        charges = max(1, min(settings.max_fragment_charge, query_charge[row] - 1))
        n_term, c_term, total = peptides.n_term_mass, peptides.c_term_mass, 0.0
        for i in range(length):
            shift[i] = peptides.residue_mass[np.int64(peptides.residues[position + i]) - 65]
        for t in range(site.shape[1]):
            if modification[row, t] == _NONE:
                break
            if site[row, t] == 0:
                n_term += modification_mass[modification[row, t]]
            elif site[row, t] == length + 1:
                c_term += modification_mass[modification[row, t]]
            else:
                shift[site[row, t] - 1] += modification_mass[modification[row, t]]
        for i in range(length):
            total += shift[i]
        total += n_term + c_term
        count_n, count_c, dot, _ = _score_form(
            shift, length, n_term, c_term, charges, mz, weight, high, settings.fragment_absolute, settings.fragment_relative,
            settings.n_term_series, settings.c_term_series, inverse_bin, words, first_peak, False, settings.correlation_bin_width,
            settings.correlation_bin_offset, vector, matched_peak, True,
        )  # fmt: skip
        used = np.zeros(high - low, np.bool_)
        dot_c, correlation, error, absolute_error = 0.0, np.int64(0), 0.0, 0.0
        for i in range(length - 1):
            prefix = shift[i]
            for series in range(n_n + n_c):
                if series < n_n:
                    single, place = prefix + settings.n_term_series[series], i
                else:
                    single, place = total - prefix + settings.c_term_series[series - n_n], length - 2 - i
                for z in range(1, charges + 1):
                    target = (single + (z - 1) * _PROTON_MASS) / z
                    correlation += _sparse_correlation(target, mz, spectra.correlation_weight, low, high, settings)
                    peak = matched_peak[series * charges + z - 1, place]
                    if peak < 0:
                        continue
                    used[peak - low] = True
                    difference = (mz[peak] - target) / target * 1e6
                    error += difference
                    absolute_error += abs(difference)
                    if series >= n_n:
                        dot_c += weight[peak]
        n_matched = count_n + count_c
        longest_run = 0
        for r in range((n_n + n_c) * charges):
            run = 0
            for i in range(length - 1):
                run = run + 1 if matched_peak[r, i] >= 0 else 0
                longest_run = max(longest_run, run)
        pairs = 0
        for i in range(length - 1):
            has_n, has_c = False, False
            for r in range(n_n * charges):
                has_n |= matched_peak[r, i] >= 0
            for r in range(n_n * charges, (n_n + n_c) * charges):
                has_c |= matched_peak[r, length - 2 - i] >= 0
            pairs += has_n and has_c
        explained, peaks = 0.0, 0
        for i in range(high - low):
            if used[i]:
                explained += np.float64(spectra.weight[low + i]) * spectra.weight[low + i]
                peaks += 1
        # Of the ten heaviest peaks, those that are explained: an answer that leaves the strongest peaks unexplained is seldom right.
        top_matched = 0
        for i in range(high - low):
            if used[i]:
                heavier = 0
                for j in range(high - low):
                    heavier += spectra.weight[low + j] > spectra.weight[low + i]
                top_matched += heavier < 10
        out[row, _MATCHED_IONS] = n_matched
        out[row, _TOTAL_IONS] = (length - 1) * (n_n + n_c) * charges
        out[row, _MATCHED_N_TERM_IONS] = count_n
        out[row, _MATCHED_C_TERM_IONS] = count_c
        out[row, _SPECTRAL_DOT_PRODUCT] = dot
        out[row, _HYPERSCORE] = _hyperscore(count_n, count_c, dot) if dot > 0 else 0.0
        out[row, _KSDP] = _ksdp(
            matched_peak, scratch.root, low, (n_n + n_c) * charges, length - 1, settings.ksdp_window, settings.ksdp_power
        )  # fmt: skip
        out[row, _XCORR] = correlation * _XCORR_OF_SUM
        out[row, _LONGEST_RUN] = longest_run
        out[row, _COMPLEMENTARY_PAIRS] = pairs
        out[row, _EXPLAINED_WEIGHT] = explained
        out[row, _MATCHED_PEAKS] = peaks
        out[row, _MEAN_FRAGMENT_ERROR] = error / max(1, n_matched)
        out[row, _MEAN_ABSOLUTE_FRAGMENT_ERROR] = absolute_error / max(1, n_matched)
        out[row, _TOP_PEAKS_MATCHED] = top_matched
        out[row, _C_TERM_DOT_PRODUCT] = dot_c
        # A random ion matches where the peaks' tolerances cover the range of the spectrum.
        covered = 0.0
        for i in range(low, high):
            covered += 2.0 * (settings.fragment_absolute + settings.fragment_relative * mz[i])
        probability = min(0.5, covered / max(mz[high - 1] - mz[low], 100.0)) if high > low else 0.5
        out[row, _CHANCE] = _log_binomial_tail(count_n + count_c, (length - 1) * (n_n + n_c) * charges, probability)
