"""Candidates of queries in the mass-sorted peptide dictionary (index): counting, scoring and selection of the best.

Modified forms are enumerated during the search and never stored. Functions are compiled without reference counting, see
`proteoscope.kernels.cpu.arrangements`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.arrangements import add_modifications, find_arrangement, first_arrangement, is_possible, next_arrangement
from proteoscope.kernels.cpu.ion_lookup import fetch_early
from proteoscope.kernels.cpu.scores import (
    FORMS_AT_ONCE,
    NEEDS_CORRELATION,
    NEEDS_ROOTS,
    NONE,
    PEPTIDES_AT_ONCE,
    IndexedSpectrum,
    Matched,
    index_spectrum,
    list_rows,
    look_up_ions,
    match_ions,
    maximum_peaks,
    new_scratch,
    score_of,
    sum_masses,
    sum_residues,
)
from proteoscope.kernels.layouts import ISOTOPE_BITS

__all__ = ["bin_of_rounded", "count_candidates", "lower_bound", "score_candidates", "search_queries"]

_PEPTIDES_AHEAD = 8  # number of peptides to prefetch: peptides of similar mass are scattered in memory


@njit(nogil=True, cache=True, _nrt=False)
def lower_bound(values, low, high, target):
    """Return the first index in the ascending values `low:high` whose value is at least `target`, or `high`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True, _nrt=False)
def _mass_window(mass, settings, query_mass, isotope_error, combination_mass):
    """Return the range of peptides whose mass matches a query.

    `mass` are the masses of the dictionary, ascending. A peptide matches if its mass plus `combination_mass` is within the precursor
    tolerance of the query mass, corrected by `isotope_error`.
    """
    observed = query_mass - isotope_error * settings.isotope_spacing
    tolerance = settings.precursor_absolute + settings.precursor_relative * observed
    low = lower_bound(mass, 0, len(mass), observed - tolerance - combination_mass)
    high = lower_bound(mass, low, len(mass), np.nextafter(observed + tolerance - combination_mass, np.inf))
    return low, high


@njit(nogil=True, cache=True)
def count_candidates(queries, mass, modifications, settings, first, last, out):
    """Count the peptides in the mass windows of each of the queries `first:last`, over all combinations and isotope errors.

    `out` (q,) int64, output: number of peptides of each query. This is the pre-calculation of Li 2014: the numbers are the costs by which
    queries are divided into partitions of equal total cost.
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
def _insert(hits, q, score, peptide, isotope_error, slots, slot_site, slot_modification):
    """Insert a candidate into the row of query q in `hits` if its score is among the best; equal scores retain the order of insertion."""
    k = hits.score.shape[1]
    position = k
    score = np.float32(score)  # rounded as in the array; unrounded, it could exceed an equal stored score and change the order
    while position > 0 and (hits.peptide[q, position - 1] < 0 or score > hits.score[q, position - 1]):
        position -= 1
    if position == k:
        return
    for j in range(k - 1, position, -1):
        hits.score[q, j] = hits.score[q, j - 1]
        hits.peptide[q, j] = hits.peptide[q, j - 1]
        hits.isotope_error[q, j] = hits.isotope_error[q, j - 1]
        for s in range(hits.site.shape[2]):
            hits.site[q, j, s] = hits.site[q, j - 1, s]
            hits.modification[q, j, s] = hits.modification[q, j - 1, s]
    hits.score[q, position] = score
    hits.peptide[q, position] = peptide
    hits.isotope_error[q, position] = isotope_error
    for s in range(hits.site.shape[2]):
        if s < slots:
            hits.site[q, position, s] = slot_site[s]
            hits.modification[q, position, s] = slot_modification[s]
        else:
            hits.site[q, position, s] = NONE
            hits.modification[q, position, s] = NONE


@njit(nogil=True, cache=True)
def search_queries(spectra, queries, peptides, modifications, settings, hits, first, last, stop):
    """Score every candidate of the queries `first:last`, and retain the best candidates of each query.

    All arguments are tuples of arrays of `proteoscope.kernels.layouts`. Candidates of a query are peptides with any allowed combination of
    variable modifications whose mass matches the query mass at one of the isotope errors. The time is proportional to the sum of
    `count_candidates`. `stop` (1,) uint8 may be set by another thread to end the search immediately, since a query can take many seconds.
    """
    most = maximum_peaks(spectra, queries.spectrum, first, last) if NEEDS_ROOTS[settings.score] else 0
    scratch = new_scratch(settings, len(modifications.mass), hits.site.shape[2], NEEDS_CORRELATION[settings.score], most)
    for symbol in range(len(peptides.residue_mass)):
        scratch.code_mass[65 + symbol] = peptides.residue_mass[symbol]
    for q in range(first, last):
        _search_query(q, spectra, queries, peptides, modifications, settings, hits, scratch, stop)


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def _choose(c, first, last, residue_sets, modifications, chosen):
    """List the peptides in `first:last` that have a residue for each modification of combination `c`; return their number."""
    n = last - first
    for i in range(n):
        chosen[i] = first + i
    for m in range(len(modifications.residue_mask)):
        if modifications.combination_count[c, m] == 0:
            continue
        retained, mask = 0, modifications.residue_mask[m]
        for i in range(n):
            peptide = chosen[i]
            chosen[retained] = peptide
            retained += (residue_sets[peptide] & mask) != 0  # no branch, since the CPU could not predict it
        n = retained
    return n


@njit(nogil=True, cache=True, _nrt=False)
def _search_query(q, spectra, queries, peptides, modifications, settings, hits, scratch, stop):
    """Score the candidates of one query until `stop` is set."""
    residues, code_mass = peptides.residues, scratch.code_mass
    base, chosen, forms = scratch.base, scratch.chosen, scratch.forms
    sites, n_sites, slot_site = scratch.sites, scratch.n_sites, scratch.slot_site
    slot_modification, slot_choice = scratch.slot_modification, scratch.slot_choice
    if spectra.offsets[queries.spectrum[q]] == spectra.offsets[queries.spectrum[q] + 1]:
        return
    with_vector, with_roots = NEEDS_CORRELATION[settings.score], NEEDS_ROOTS[settings.score]
    indexed = index_spectrum(queries.spectrum[q], spectra, settings, with_vector, with_roots, scratch)
    n_rows, n_n_rows = list_rows(settings, max(1, min(settings.maximum_fragment_charge, queries.charge[q] - 1)), scratch.rows)
    f = np.int64(0)  # number of forms that wait to be scored
    for c in range(len(modifications.combination_mass)):
        done = 0
        for e in range(len(settings.isotope_errors)):
            if queries.mass[q] < settings.isotope_minimum_mass[e]:
                continue
            isotope_error = settings.isotope_errors[e]
            low, high = _mass_window(peptides.mass, settings, queries.mass[q], isotope_error, modifications.combination_mass[c])
            low = max(low, done)  # isotope errors are in descending order, so windows ascend; skip what the previous window covered
            done = max(done, high)
            for begin in range(low, high, PEPTIDES_AT_ONCE):
                n_chosen = _choose(c, begin, min(high, begin + PEPTIDES_AT_ONCE), peptides.letters, modifications, chosen)
                for i in range(n_chosen):
                    if stop[0]:
                        return
                    fetch_early(residues, peptides.position[chosen[min(i + _PEPTIDES_AHEAD, n_chosen - 1)]])
                    peptide = chosen[i]
                    slots = first_arrangement(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice)
                    if slots < 0:
                        continue
                    position, length = np.int64(peptides.position[peptide]), np.int64(peptides.length[peptide])
                    if slots > 0:
                        for j in range(length):
                            base[j] = code_mass[residues[position + j]]
                    n_forms = 0
                    while True:
                        if is_possible(slots, slot_modification, slot_choice, sites, slot_site):
                            if slots == 0:
                                sum_residues(residues, position, length, code_mass, peptides.n_term_mass, peptides.c_term_mass, forms, f)
                            else:
                                n_term, c_term = add_modifications(
                                    base,
                                    length,
                                    slots,
                                    slot_site,
                                    slot_modification,
                                    modifications.mass,
                                    peptides.n_term_mass,
                                    peptides.c_term_mass,
                                )
                                sum_masses(base, length, n_term, c_term, forms, f)
                            for t in range(slots):
                                forms.site[f, t], forms.modification[f, t] = slot_site[t], slot_modification[t]
                                if 1 <= slot_site[t] <= length:
                                    base[slot_site[t] - 1] = code_mass[residues[position + slot_site[t] - 1]]
                            forms.peptide[f], forms.isotope_error[f], forms.slots[f] = peptide, isotope_error, slots
                            n_forms += 1
                            f += 1
                            if f == FORMS_AT_ONCE:
                                _score_forms(q, f, n_rows, n_n_rows, indexed, spectra, settings, hits, scratch)
                                f = 0
                        if slots == 0 or n_forms >= modifications.maximum_forms or stop[0]:
                            break
                        if not next_arrangement(slots, slot_modification, slot_choice, n_sites):
                            break
    _score_forms(q, f, n_rows, n_n_rows, indexed, spectra, settings, hits, scratch)


@njit(nogil=True, cache=True, _nrt=False)
def _score_forms(q, n_forms, n_rows, n_n_rows, indexed, spectra, settings, hits, scratch):
    """Score the first `n_forms` peptidoforms in the workspace against the spectrum of query q; insert the best into `hits`."""
    which, forms = settings.score, scratch.forms
    keep, use_vector = NEEDS_ROOTS[which], NEEDS_CORRELATION[which]
    inverse_histogram, bins = 1.0 / hits.histogram_width, hits.histogram.shape[1]
    for f in range(n_forms):
        forms.has_any[f], forms.correlation[f] = look_up_ions(f, n_rows, n_n_rows, indexed, settings, use_vector, scratch)
    for f in range(n_forms):
        count_n, count_c, dot, score = 0, 0, 0.0, 0.0
        if forms.has_any[f]:
            count_n, count_c, dot = match_ions(f, n_rows, n_n_rows, indexed, spectra, settings, keep, scratch)
        if dot > 0 or use_vector:
            matched = Matched(
                count_n, count_c, dot, forms.correlation[f], scratch.matched_peak, scratch.root, indexed.low, n_rows, forms.length[f] - 1
            )
            score = score_of(which, matched, settings)
        hits.histogram[q, min(bins - 1, max(0, np.int64(score * inverse_histogram)))] += 1
        if count_n + count_c >= settings.minimum_matched_ions:
            _insert(hits, q, score, forms.peptide[f], forms.isotope_error[f], forms.slots[f], forms.site[f], forms.modification[f])
    hits.n_candidates[q] += n_forms


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def bin_of_rounded(score, inverse_width, last_bin):
    """Return the histogram bin of a non-negative score, given the inverse bin width and the last bin, all float32."""
    return np.int32(min(score * inverse_width, last_bin))


@njit(nogil=True, cache=True)
def score_candidates(spectra, queries, peptides, modifications, settings, code, best, hits, first, last):
    """Score selected candidates of the queries `first:last` exactly, for scores that a fragment-ion index can sum, and retain the best.

    `best` (`proteoscope.kernels.layouts.BestArrays`) contains the numbers of the candidates, encoded by `code`, and the rounded scores by
    which they were selected. The histograms of `hits` contain the rounded scores, which are replaced by exact scores. Scores, limits and
    the order of ties are as in `search_queries`; `n_candidates` is not changed.
    """
    scratch = new_scratch(settings, len(modifications.mass), hits.site.shape[2], False, 0)
    indexed = IndexedSpectrum(0, 0, 0, 0)
    bins = hits.histogram.shape[1]
    inverse, last_bin = np.float32(1.0 / hits.histogram_width), np.float32(bins - 1)
    for q in range(first, last):
        s = queries.spectrum[q]
        if best.code[q, 0] >= 0:
            indexed = index_spectrum(s, spectra, settings, False, False, scratch)
        number = np.int64(-1)
        while True:
            # Process forms in ascending order, because equal scores are ranked by the order of insertion.
            j = -1
            for k in range(best.code.shape[1]):
                if best.code[q, k] > number and (j < 0 or best.code[q, k] < best.code[q, j]):
                    j = k
            if j < 0:
                break
            number = best.code[q, j]
            score = _score_candidate(q, number, indexed, spectra, queries.charge[q], peptides, modifications, settings, code, hits, scratch)
            hits.histogram[q, bin_of_rounded(best.score[q, j], inverse, last_bin)] -= 1
            hits.histogram[q, min(bins - 1, np.int64(score * (1.0 / hits.histogram_width)))] += 1


@njit(nogil=True, cache=True, _nrt=False)
def _score_candidate(q, number, indexed, spectra, charge, peptides, modifications, settings, code, hits, scratch):
    """Score the candidate `number` (see `PeptidoformCode`) exactly; insert it into `hits` if it is among the best of query q."""
    peptide = (number >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)
    e = (number >> code.isotope_shift) & ((1 << ISOTOPE_BITS) - 1)
    slots = first_arrangement(
        number >> (code.isotope_shift + ISOTOPE_BITS),
        peptide,
        peptides,
        modifications,
        scratch.sites,
        scratch.n_sites,
        scratch.slot_modification,
        scratch.slot_choice,
    )
    find_arrangement(
        number & ((1 << code.arrangement_bits) - 1),
        slots,
        scratch.slot_modification,
        scratch.slot_choice,
        scratch.sites,
        scratch.n_sites,
        scratch.slot_site,
    )
    position, length = np.int64(peptides.position[peptide]), np.int64(peptides.length[peptide])
    for i in range(length):
        scratch.base[i] = peptides.residue_mass[np.int64(peptides.residues[position + i]) - 65]
    n_term, c_term = add_modifications(
        scratch.base,
        length,
        slots,
        scratch.slot_site,
        scratch.slot_modification,
        modifications.mass,
        peptides.n_term_mass,
        peptides.c_term_mass,
    )
    charges = max(1, min(settings.maximum_fragment_charge, charge - 1))
    n_rows, n_n_rows = list_rows(settings, charges, scratch.rows)
    sum_masses(scratch.base, length, n_term, c_term, scratch.forms, 0)
    look_up_ions(0, n_rows, n_n_rows, indexed, settings, False, scratch)
    count_n, count_c, dot = match_ions(0, n_rows, n_n_rows, indexed, spectra, settings, False, scratch)
    score = 0.0
    if dot > 0:
        matched = Matched(count_n, count_c, dot, 0, scratch.matched_peak, scratch.root, indexed.low, n_rows, length - 1)
        score = score_of(settings.score, matched, settings)
    if count_n + count_c >= settings.minimum_matched_ions:
        _insert(hits, q, score, peptide, settings.isotope_errors[e], slots, scratch.slot_site, scratch.slot_modification)
    return score
