"""Scores and features that distinguish correct matches from wrong matches; there is no GPU version, since matches are few."""

from __future__ import annotations

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.candidates import lower_bound
from proteoscope.kernels.cpu.elementary import FACTORIAL_LOG
from proteoscope.kernels.cpu.scores import (
    AROUND,
    CORRELATION_HALF_WINDOW,
    NEEDS_CORRELATION,
    NONE,
    PROTON_MASS,
    IndexedSpectrum,
    Matched,
    correlation_height,
    index_spectrum,
    list_rows,
    look_up_ions,
    match_ions,
    maximum_peaks,
    new_scratch,
    score_of,
    sum_masses,
)
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = ["feature_names", "form_masses", "measure_matches"]

# Columns that `measure_matches` writes before those of the scores.
(
    _MATCHED_IONS,
    _TOTAL_IONS,
    _MATCHED_N_TERM_IONS,
    _MATCHED_C_TERM_IONS,
    _LONGEST_RUN,
    _COMPLEMENTARY_PAIRS,
    _EXPLAINED_WEIGHT,
    _MATCHED_PEAKS,
    _MEAN_FRAGMENT_ERROR,
    _MEAN_ABSOLUTE_FRAGMENT_ERROR,
    _TOP_PEAKS_MATCHED,
    _C_TERM_DOT_PRODUCT,
    _CHANCE,
    _FIRST_SCORE,
) = range(14)
_N_SCORES = len(SCORE_KINDS)


def feature_names() -> tuple[str, ...]:
    """Return the names of the columns that `measure_matches` writes."""
    return (
        "matched_ions",
        "total_ions",
        "matched_n_term_ions",
        "matched_c_term_ions",
        "longest_run",
        "complementary_pairs",
        "explained_weight",
        "matched_peaks",
        "mean_fragment_error",
        "mean_absolute_fragment_error",
        "top_peaks_matched",
        "c_term_dot_product",
        "chance",
        *(kind.column for kind in SCORE_KINDS),
    )


@njit(nogil=True, cache=True, _nrt=False)
def _log_binomial_tail(k, n, probability):
    """Return log10 of the probability that k or more of n ions match by chance."""
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
    """Return the value of SEQUEST's spectrum without background (Eng 2008) at the m/z `target`, computed only from the peaks."""
    b = np.int64(target / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset)
    left = (b - 1.0 - CORRELATION_HALF_WINDOW + settings.correlation_bin_offset) * settings.correlation_bin_width
    start = lower_bound(mz, low, high, left - settings.correlation_bin_width)
    bin_sum, around = np.int64(0), np.int64(0)
    last_bin, last_height = np.int64(-1), np.int64(0)
    for i in range(start, high):
        peak_bin = np.int64(mz[i] / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset)
        if peak_bin > b + CORRELATION_HALF_WINDOW:
            break
        if peak_bin < b - CORRELATION_HALF_WINDOW:
            continue
        height = correlation_height(weight[i])
        if peak_bin == last_bin:  # a bin holds its highest peak
            height, previous = max(height, last_height), last_height
        else:
            previous = np.int64(0)
        if peak_bin == b:
            bin_sum += height - previous
        else:
            around += height - previous
        last_bin, last_height = peak_bin, height
    return AROUND * bin_sum - around


@njit(nogil=True, cache=True, _nrt=False)
def form_masses(peptides, peptide, modification_mass, site, modification, base):
    """Write the residue masses of a peptidoform to `base`.

    Return the masses of the N-terminus, the C-terminus and the whole peptidoform.
    """
    position, length = np.int64(peptides.position[peptide]), np.int64(peptides.length[peptide])
    n_term, c_term, total = peptides.n_term_mass, peptides.c_term_mass, 0.0
    for i in range(length):
        base[i] = peptides.residue_mass[np.int64(peptides.residues[position + i]) - 65]
    for t in range(len(site)):
        if modification[t] == NONE:
            break
        if site[t] == 0:
            n_term += modification_mass[modification[t]]
        elif site[t] == length + 1:
            c_term += modification_mass[modification[t]]
        else:
            base[site[t] - 1] += modification_mass[modification[t]]
    for i in range(length):
        total += base[i]
    return n_term, c_term, total + (n_term + c_term)


@njit(nogil=True, cache=True)
def measure_matches(spectra, matches, peptides, modification_mass, settings, first, last, out, stop):
    """Write all scores and features of the given peptidoforms, row by row.

    Fragment errors are in ppm of the fragment's m/z; ``chance`` is log10 of the probability that at least as many ions match by chance.

    Parameters
    ----------
    spectra, matches, peptides, settings
        Tuples of arrays of `proteoscope.kernels.layouts`.
    modification_mass
        (m,) float64, masses in dalton.
    out
        (n, len(feature_names())) float64, output.
    stop
        See `search_queries`.
    """
    query_spectrum, query_charge, peptide, site, modification = matches
    scratch = new_scratch(settings, 0, 1, False, maximum_peaks(spectra, query_spectrum, first, last))
    base, sums, matched_peak = scratch.base, scratch.forms.sums, scratch.matched_peak
    n_n, n_c = len(settings.n_term_series), len(settings.c_term_series)
    mz, weight = spectra.mz, spectra.weight
    previous_spectrum, indexed = np.int64(-1), IndexedSpectrum(0, 0, 0, 0)
    for row in range(first, last):
        if stop[0]:
            return
        s = query_spectrum[row]
        low, high = spectra.offsets[s], spectra.offsets[s + 1]
        if s != previous_spectrum:
            indexed = index_spectrum(s, spectra, settings, False, True, scratch)
            previous_spectrum = s
        length = np.int64(peptides.length[peptide[row]])
        charges = max(1, min(settings.maximum_fragment_charge, query_charge[row] - 1))
        n_term, c_term, total = form_masses(peptides, peptide[row], modification_mass, site[row], modification[row], base)
        n_rows, n_n_rows = list_rows(settings, charges, scratch.rows)
        sum_masses(base, length, n_term, c_term, scratch.forms, 0)
        look_up_ions(0, n_rows, n_n_rows, indexed, settings, False, scratch)
        count_n, count_c, dot = match_ions(0, n_rows, n_n_rows, indexed, spectra, settings, True, scratch)
        used = np.zeros(high - low, np.bool_)
        dot_c, correlation, error, absolute_error = 0.0, np.int64(0), 0.0, 0.0
        for i in range(length - 1):
            prefix = sums[0, i]
            for series in range(n_n + n_c):
                if series < n_n:
                    single, position = prefix + settings.n_term_series[series], i
                else:
                    single, position = total - prefix + settings.c_term_series[series - n_n], length - 2 - i
                for z in range(1, charges + 1):
                    target = (single + (z - 1) * PROTON_MASS) / z
                    correlation += _sparse_correlation(target, mz, spectra.correlation_weight, low, high, settings)
                    peak = matched_peak[series * charges + z - 1, position]
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
        # Number of explained peaks among the ten heaviest: a match that does not explain the strongest peaks is seldom correct.
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
        matched = Matched(count_n, count_c, dot, correlation, matched_peak, scratch.root, low, n_rows, length - 1)
        for code in range(_N_SCORES):
            out[row, _FIRST_SCORE + code] = score_of(code, matched, settings) if dot > 0 or NEEDS_CORRELATION[code] else 0.0
        out[row, _LONGEST_RUN] = longest_run
        out[row, _COMPLEMENTARY_PAIRS] = pairs
        out[row, _EXPLAINED_WEIGHT] = explained
        out[row, _MATCHED_PEAKS] = peaks
        out[row, _MEAN_FRAGMENT_ERROR] = error / max(1, n_matched)
        out[row, _MEAN_ABSOLUTE_FRAGMENT_ERROR] = absolute_error / max(1, n_matched)
        out[row, _TOP_PEAKS_MATCHED] = top_matched
        out[row, _C_TERM_DOT_PRODUCT] = dot_c
        # Probability that a random ion matches: the fraction of the m/z range that the tolerances of the peaks cover.
        covered = 0.0
        for i in range(low, high):
            covered += 2.0 * (settings.fragment_absolute + settings.fragment_relative * mz[i])
        probability = min(0.5, covered / max(mz[high - 1] - mz[low], 100.0)) if high > low else 0.5
        out[row, _CHANCE] = _log_binomial_tail(count_n + count_c, (length - 1) * (n_n + n_c) * charges, probability)
