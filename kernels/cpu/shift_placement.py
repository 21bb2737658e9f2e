"""Localisation of a mass shift in a peptide: scores of all sites from two look-ups of the spectrum.

With the shift on residue p, N-terminal fragments up to p - 1 and C-terminal fragments after p are unshifted, all others are shifted. The
ions of two peptidoforms thus suffice: with the shift on the first residue, and on the last residue. Each ion of a peptidoform with another
site is an ion of one of these two, and peptidoforms with adjacent sites differ by one bond. A shift at a terminus gives the same fragments
as one at the terminal residue.

Sites are distinguished only by the ions between them. An ion that is present matches a peak with probability r; an ion that is absent
matches a peak by chance with probability c. If k of n ions match, the odds of a site are (r / c)^k ((1 - r) / (1 - c))^(n - k), and with
equal n and equal priors

    P(site) = R^k / sum over sites of R^k,    R = r (1 - c) / (c (1 - r)).

r is estimated from the best site, (k + 1) / (n + 2), and c from the tolerances of the peaks. There is no GPU version, since candidates are
few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.scores import (
    IndexedSpectrum,
    hyperscore,
    index_spectrum,
    list_rows,
    look_up_ions,
    match_ions,
    maximum_peaks,
    new_scratch,
    sum_masses,
)

__all__ = ["PLACES", "PlacedArrays", "ShiftSettings", "ShiftsToPlace", "place_shifts", "score_places"]

PLACES = 64
"""Maximum number of residues of a peptide."""
_USUAL, _RARE = 1.0, 0.6  # bonus in hyperscore units for a common mass shift, and penalty per isotope error
_TIE = 1e-9  # sites whose scores differ by less are indistinguishable by the spectrum


class ShiftSettings(NamedTuple):
    """Settings that determine which shifts are considered.

    Attributes
    ----------
    lowest, highest
        Range of shifts, dalton.
    isotope_lead
        Minimum score advantage of a shift with an isotope error over the shift alone.
    usual : (u,) float64
        Common shifts, dalton, ascending; for these, an isotope error is accepted at an equal score.
    """

    lowest: float
    highest: float
    isotope_lead: float
    usual: NDArray[np.float64]


class PlacedArrays(NamedTuple):
    """Results for each candidate of each query, (q, k): hyperscores without a shift, and with a shift at the best site.

    Attributes
    ----------
    plain, shifted : float32
        Hyperscores; -inf if the candidate was not scored in this way.
    plain_isotope, shifted_isotope : int8
        Isotope error: number of peaks between the monoisotopic and the selected one.
    place : uint8
        Site of the shift, from 1: of equally good residues, the first.
    """

    plain: NDArray[np.float32]
    plain_isotope: NDArray[np.int8]
    shifted: NDArray[np.float32]
    shifted_isotope: NDArray[np.int8]
    place: NDArray[np.uint8]


class ShiftsToPlace(NamedTuple):
    """Matches (n) with a mass shift: indices `spectrum` and `peptide`, and `charge`, (n,) int64; `shift` (n,) float64, Da."""

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    peptide: NDArray[np.int64]
    shift: NDArray[np.float64]


class _Sides(NamedTuple):
    """Matched ions at each bond for the N- and C-terminal series, (2, bonds).

    `stays` and `moves` are the numbers of matched ions without and with the shift, `stays_dot` and `moves_dot` the sums of the weights of
    their peaks. From these, the `score` and the number of matched ions `counts` of each site are computed.
    """

    stays: NDArray[np.int64]
    moves: NDArray[np.int64]
    stays_dot: NDArray[np.float64]
    moves_dot: NDArray[np.float64]
    score: NDArray[np.float64]
    counts: NDArray[np.int64]


@njit(nogil=True, cache=True)
def _score_form(base, length, n_term, c_term, n_rows, n_n_rows, indexed, spectra, settings, keep, scratch):
    """Return the numbers of matched N- and C-terminal ions, and the dot product, of the peptidoform with residue masses `base`."""
    sum_masses(base, length, n_term, c_term, scratch.forms, 0)
    look_up_ions(0, n_rows, n_n_rows, indexed, settings, False, scratch)
    return match_ions(0, n_rows, n_n_rows, indexed, spectra, settings, keep, scratch)


@njit(nogil=True, cache=True)
def _gather(length, n_rows, n_n_rows, weight, scratch, n_counts, n_dots, c_counts, c_dots):
    """Write the numbers and summed weights of matched N- and C-terminal ions of the last scored peptidoform for each bond."""
    n_counts[: length - 1], n_dots[: length - 1], c_counts[: length - 1], c_dots[: length - 1] = 0, 0.0, 0, 0.0
    for row in range(n_rows):
        for i in range(length - 1):
            # Columns count ions from the terminus of their series.
            peak = scratch.matched_peak[row, i if row < n_n_rows else length - 2 - i]
            if peak >= 0:
                if row < n_n_rows:
                    n_counts[i] += 1
                    n_dots[i] += weight[peak]
                else:
                    c_counts[i] += 1
                    c_dots[i] += weight[peak]


@njit(nogil=True, cache=True)
def _place(length, sides):
    """Write score and number of matched ions of each site to `sides`; return the first site with the best score, from 0."""
    score, counts = sides.score, sides.counts
    n, c, dot = 0, 0, 0.0
    for i in range(length - 1):
        n += sides.moves[0, i]
        c += sides.stays[1, i]
        dot += sides.moves_dot[0, i] + sides.stays_dot[1, i]
    best = 0
    for position in range(length):
        score[position] = hyperscore(n, c, max(dot, 0.0)) if n + c > 0 else 0.0
        counts[position] = n + c
        if score[position] > score[best] + _TIE:
            best = position
        if position < length - 1:
            n += sides.stays[0, position] - sides.moves[0, position]
            c += sides.moves[1, position] - sides.stays[1, position]
            dot += (sides.stays_dot[0, position] - sides.moves_dot[0, position]) + (
                sides.moves_dot[1, position] - sides.stays_dot[1, position]
            )
    return best


@njit(nogil=True, cache=True)
def _chance(spectra, low, high, settings):
    """Return the probability that an ion matches a peak by chance: the fraction of the spectrum's range within tolerances."""
    covered = 0.0
    for i in range(low, high):
        covered += 2.0 * (settings.fragment_absolute + settings.fragment_relative * spectra.mz[i])
    return min(0.5, max(1e-6, covered / max(spectra.mz[high - 1] - spectra.mz[low], 100.0))) if high > low else 0.5


@njit(nogil=True, cache=True)
def _new_sides():
    """Return a workspace for the ions of a peptide by bond."""
    workspace = (2, PLACES)
    return _Sides(
        np.zeros(workspace, np.int64),
        np.zeros(workspace, np.int64),
        np.zeros(workspace, np.float64),
        np.zeros(workspace, np.float64),
        np.zeros(PLACES, np.float64),
        np.zeros(PLACES, np.int64),
    )


@njit(nogil=True, cache=True)
def _score_places(base, length, shift, peptides, n_rows, n_n_rows, indexed, spectra, settings, scratch, sides):
    """Score a peptide, with residue masses `base`, with the shift at each site; write scores to `sides`, return the best site, from 0."""
    n_term, c_term, weight = peptides.n_term_mass, peptides.c_term_mass, spectra.weight
    base[0] += shift
    _score_form(base, length, n_term, c_term, n_rows, n_n_rows, indexed, spectra, settings, True, scratch)
    _gather(length, n_rows, n_n_rows, weight, scratch, sides.moves[0], sides.moves_dot[0], sides.stays[1], sides.stays_dot[1])
    base[0] -= shift
    base[length - 1] += shift
    _score_form(base, length, n_term, c_term, n_rows, n_n_rows, indexed, spectra, settings, True, scratch)
    _gather(length, n_rows, n_n_rows, weight, scratch, sides.stays[0], sides.stays_dot[0], sides.moves[1], sides.moves_dot[1])
    base[length - 1] -= shift
    return _place(length, sides)


@njit(nogil=True, cache=True)
def _is_usual(shift, tolerance, usual):
    """Return True if a common shift is within the tolerance."""
    i = np.searchsorted(usual, shift - tolerance)
    return i < len(usual) and usual[i] <= shift + tolerance


@njit(nogil=True, cache=True)
def place_shifts(spectra, queries, peptides, candidate, settings, shifts, first, last, placed, stop):
    """Score the candidates of the queries `first:last` without and with their mass shift.

    A candidate is scored without the shift if the mass difference is within the precursor tolerance of an isotope error. It is scored with
    the shift, for each isotope error and site, if the shift exceeds the tolerance and is allowed by `shifts` (`ShiftSettings`).

    Parameters
    ----------
    candidate
        (q, k) int64, indices of peptides, or -1.
    placed
        `PlacedArrays`, output.
    stop
        (1,) uint8; a non-zero value stops the search between queries.
    """
    scratch = new_scratch(settings, 0, 1, False, maximum_peaks(spectra, queries.spectrum, first, last))
    base, sides = np.zeros(PLACES, np.float64), _new_sides()
    score, counts = sides.score, sides.counts
    previous, indexed = np.int64(-1), IndexedSpectrum(0, 0, 0, 0)
    for q in range(first, last):
        if stop[0]:
            return
        s, mass = queries.spectrum[q], queries.mass[q]
        if s != previous:
            indexed = index_spectrum(s, spectra, settings, False, False, scratch)
            previous = s
        charges = max(1, min(settings.maximum_fragment_charge, queries.charge[q] - 1))
        n_rows, n_n_rows = list_rows(settings, charges, scratch.rows)
        for k in range(candidate.shape[1]):
            placed.plain[q, k], placed.plain_isotope[q, k] = -np.inf, 0
            placed.shifted[q, k], placed.shifted_isotope[q, k], placed.place[q, k] = -np.inf, 0, 0
            peptide = candidate[q, k]
            if peptide < 0:
                continue
            position, length = np.int64(peptides.position[peptide]), np.int64(peptides.length[peptide])
            for i in range(length):
                base[i] = peptides.residue_mass[np.int64(peptides.residues[position + i]) - 65]
            difference, closest = mass - peptides.mass[peptide], np.inf
            tolerance = settings.precursor_absolute + settings.precursor_relative * peptides.mass[peptide]
            for e in range(len(settings.isotope_errors)):
                error = abs(difference - settings.isotope_errors[e] * settings.isotope_spacing)
                if error <= tolerance and error < closest and mass >= settings.isotope_minimum_mass[e]:
                    closest = error
                    placed.plain_isotope[q, k] = settings.isotope_errors[e]
            if closest <= tolerance:
                count_n, count_c, dot = _score_form(
                    base, length, peptides.n_term_mass, peptides.c_term_mass, n_rows, n_n_rows, indexed, spectra, settings, False, scratch
                )
                if count_n + count_c >= settings.minimum_matched_ions:
                    placed.plain[q, k] = hyperscore(count_n, count_c, dot)
            highest = -np.inf
            for e in range(len(settings.isotope_errors)):
                isotope = settings.isotope_errors[e]
                shift = difference - isotope * settings.isotope_spacing
                if abs(shift) <= tolerance or shift < shifts.lowest or shift > shifts.highest or mass < settings.isotope_minimum_mass[e]:
                    continue
                if isotope > 0 and difference > 0.0 and shift < 0.0:  # ignore losses that are smaller than the isotope difference
                    continue
                best = _score_places(base, length, shift, peptides, n_rows, n_n_rows, indexed, spectra, settings, scratch, sides)
                value = score[best]
                if _is_usual(shift, tolerance, shifts.usual):
                    value += _USUAL - _RARE * abs(isotope)
                elif isotope != 0:
                    value -= shifts.isotope_lead
                if counts[best] >= settings.minimum_matched_ions and value > highest:
                    highest = value
                    placed.shifted[q, k], placed.shifted_isotope[q, k], placed.place[q, k] = score[best], isotope, best + 1


@njit(nogil=True, cache=True)
def score_places(spectra, matches, peptides, settings, first, last, out_score, out_probability, stop):
    """Score each site of the rows `first:last` of `ShiftsToPlace`, and compute the probabilities of the sites.

    Parameters
    ----------
    out_score, out_probability
        (n, PLACES) float32, output; residue p is in column p - 1; -inf and 0 after the last residue.
    stop
        See `place_shifts`.
    """
    spectrum, charge, peptide, shift = matches
    scratch = new_scratch(settings, 0, 1, False, maximum_peaks(spectra, spectrum, first, last))
    base, sides = np.zeros(PLACES, np.float64), _new_sides()
    score, counts = sides.score, sides.counts
    for row in range(first, last):
        if stop[0]:
            return
        s = spectrum[row]
        indexed = index_spectrum(s, spectra, settings, False, False, scratch)
        charges = max(1, min(settings.maximum_fragment_charge, charge[row] - 1))
        n_rows, n_n_rows = list_rows(settings, charges, scratch.rows)
        position, length = np.int64(peptides.position[peptide[row]]), np.int64(peptides.length[peptide[row]])
        for i in range(length):
            base[i] = peptides.residue_mass[np.int64(peptides.residues[position + i]) - 65]
        best = _score_places(base, length, shift[row], peptides, n_rows, n_n_rows, indexed, spectra, settings, scratch, sides)
        chance = _chance(spectra, spectra.offsets[s], spectra.offsets[s + 1], settings)
        rate = (counts[best] + 1.0) / ((length - 1) * n_rows + 2.0)
        log_ratio, total = np.log(max(1.0, rate * (1.0 - chance) / (chance * (1.0 - rate)))), 0.0
        for index in range(length):
            total += np.exp(log_ratio * (counts[index] - counts[best]))
        for index in range(PLACES):
            out_score[row, index] = score[index] if index < length else -np.inf
            out_probability[row, index] = np.exp(log_ratio * (counts[index] - counts[best])) / total if index < length else 0.0
