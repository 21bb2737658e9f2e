"""Input of a fragment-ion index search: key ranges of queries, peptidoforms in precursor windows, and tables of scores by counter."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.peptidoforms import peptidoform_code
from proteoscope.kernels.cpu.scores import PROTON_MASS
from proteoscope.kernels.layouts import (
    ISOTOPE_BITS,
    KEYS_OF_DALTON,
    BestArrays,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoreTables,
    ScoringSettings,
    SpectrumArrays,
)
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = [
    "HEAVIEST_END",
    "LAST_KEY",
    "empty_best",
    "fragment_key",
    "make_segments",
    "precursor_windows",
    "score_tables",
    "unsupported_reason",
]

HEAVIEST_END = 100.0
"""Upper limit of the mass (Da) that an ion series adds to the residues."""
LAST_KEY = (1 << 32) - 1
_LONGEST = 64
_MAXIMUM_MATCHES = 255  # maximum number of matches from one end that a counter can store
_MAXIMUM_DOT = (1 << 16) - 1  # maximum weight sum that a counter can store


def unsupported_reason(
    spectra: SpectrumArrays, peptides: PeptideArrays, modifications: ModificationArrays, settings: ScoringSettings
) -> str:
    """Return the reason why a search cannot use a fragment index; '' if it can."""
    if SCORE_KINDS[settings.score].in_index is None:
        return "the score is not a sum over matching ions"
    if settings.minimum_matched_ions < 1:
        return "forms without matching ions are requested"
    if len(settings.isotope_errors) > 1 << ISOTOPE_BITS:
        return "too many isotope errors"
    try:
        peptidoform_code(peptides, modifications)
    except ValueError as error:
        return str(error)
    series, charges = max(len(settings.n_term_series), len(settings.c_term_series)), settings.maximum_fragment_charge
    if (int(peptides.length.max(initial=1)) - 1) * series * charges > _MAXIMUM_MATCHES:
        return "a form has more ions than a counter can count"
    heaviest_peak = charges * (settings.maximum_mz + settings.fragment_absolute) * (1 + 2 * settings.fragment_relative)
    heaviest_ion = peptides.mass.max(initial=0.0) + modifications.combination_mass.max(initial=0.0) + HEAVIEST_END
    if min(heaviest_peak, heaviest_ion) * KEYS_OF_DALTON >= LAST_KEY:
        return "fragments are heavier than a key can represent"
    if spectra.mz.min(initial=np.inf) * (1 - settings.fragment_relative) - settings.fragment_absolute < 2 * PROTON_MASS:
        return "peaks lie below the masses of fragments"
    lightest = np.nanmin(peptides.residue_mass) + modifications.combination_mass.min(initial=0.0)
    lightest += modifications.mass[len(modifications.residue_mask) :].min(initial=0.0)  # at most one at a known residue
    widest = settings.fragment_absolute + settings.fragment_relative * settings.maximum_mz
    if lightest / charges <= 2.1 * widest:
        return "a peak matches several ions of one series"
    return ""


def _weight_scale(spectra: SpectrumArrays, settings: ScoringSettings) -> float:
    """Return the number of integer units per unit of weight: the largest power of two for which no dot product overflows a counter.

    A peak matches at most one ion per series and charge, and a peptide has at most 62 ions of each; the sum of 62 weights is at most the
    square root of 62 times their sum of squares (Cauchy-Schwarz).
    """
    rows = (len(settings.n_term_series) + len(settings.c_term_series)) * settings.maximum_fragment_charge
    most = rows * _largest_sum(spectra.offsets, spectra.weight, _LONGEST - 2) * (1 + 1e-6)
    # Rounding may add up to one unit per ion.
    workspace = _MAXIMUM_DOT - rows * (_LONGEST - 2)
    return float(2.0 ** np.floor(np.log2(workspace / most))) if most > 0.0 else 1.0


@njit(nogil=True, cache=True)
def _largest_sum(offsets, weight, n):
    """Return an upper limit of the sum of the n largest peaks of a spectrum."""
    largest = 0.0
    for s in range(len(offsets) - 1):
        total, squares = 0.0, 0.0
        for i in range(offsets[s], offsets[s + 1]):
            total += weight[i]
            squares += np.float64(weight[i]) * weight[i]
        largest = max(largest, min(total, np.sqrt(n * squares)))
    return largest


def score_tables(spectra: SpectrumArrays, settings: ScoringSettings) -> ScoreTables:
    """Return the tables that convert counters to the score of `settings`, with units of weight that suit the spectra."""
    scale = _weight_scale(spectra, settings)
    dot = np.arange(_MAXIMUM_DOT + 1) / scale
    terms = SCORE_KINDS[settings.score].in_index
    assert terms is not None, "this score has no index terms; see `unsupported_reason`"
    of_count, of_dot = terms.of_count(np.arange(_MAXIMUM_MATCHES + 1.0)), terms.of_dot(dot)
    return ScoreTables(of_count.astype(np.float32), of_dot.astype(np.float32), scale)


@njit(nogil=True, cache=True, _nrt=False)
def fragment_key(mass):
    """Return the key of a neutral mass (dalton); masses above the range get the last key, which no segment contains."""
    return np.uint32(min(LAST_KEY, max(0, np.int64(mass * KEYS_OF_DALTON))))


@njit(nogil=True, cache=True)
def make_segments(spectra, queries, settings, tables, first, last):
    """Return the segments of the queries `first:last` as a tuple of the columns of `SegmentArrays`.

    An ion at m/z t matches a peak at m if abs(m - t) <= absolute + relative t. The t axis is divided at the ends of the tolerances, and
    each interval belongs to the peak with the largest weight that covers it, as in the exhaustive search. With fragment charge z, an ion at
    t has the neutral mass z (t - proton). If rounding puts a key into two intervals, it belongs to the interval with the larger weight, so
    that no ion is omitted or counted twice. The resulting excess is corrected when the best candidates are scored exactly.
    """
    n, most = last - first, 0
    for q in range(first, last):
        s = queries.spectrum[q]
        most += 2 * (spectra.offsets[s + 1] - spectra.offsets[s]) * max(1, min(settings.maximum_fragment_charge, queries.charge[q] - 1))
    offsets = np.zeros(n + 1, np.int64)
    low, high, weight = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most, np.uint16)
    used = 0
    for q in range(first, last):
        s = queries.spectrum[q]
        for z in range(1, max(1, min(settings.maximum_fragment_charge, queries.charge[q] - 1)) + 1):
            used = _cut_axis(spectra, spectra.offsets[s], spectra.offsets[s + 1], settings, tables.weight_scale, z, used, low, high, weight)
        offsets[q - first + 1] = used
    return offsets, low[:used], high[:used], weight[:used]


@njit(nogil=True, cache=True, _nrt=False)
def _cut_axis(spectra, first_peak, last_peak, settings, scale, z, used, low, high, weight):
    """Write the segments of a spectrum for fragments of charge `z` after the `used` segments of lower charges; return the new number."""
    mz = spectra.mz
    absolute, relative = settings.fragment_absolute, settings.fragment_relative
    begin, end = first_peak, first_peak  # indices of the next peak whose tolerance range starts, and whose tolerance range ends
    at = 0.0
    start = used
    while end < last_peak:
        ends = (mz[end] + absolute) / (1.0 - relative)
        begins = (mz[begin] - absolute) / (1.0 + relative) if begin < last_peak else np.inf
        if begin > end:  # between two boundaries, the tolerance ranges of the peaks end:begin overlap
            heaviest = end
            for k in range(end + 1, begin):
                if spectra.weight[k] > spectra.weight[heaviest]:
                    heaviest = k
            left, right = fragment_key(z * (at - PROTON_MASS)), min(LAST_KEY, fragment_key(z * (min(begins, ends) - PROTON_MASS)) + 1)
            value = np.float64(spectra.weight[heaviest])
            units = max(1, np.int64(value * scale + 0.5)) if value > 0.0 else 0
            if used > start and high[used - 1] > left:  # a key that contains a boundary belongs to the segment with the higher weight
                if weight[used - 1] >= units:
                    left = high[used - 1]
                else:
                    high[used - 1] = left
                    if low[used - 1] == left:
                        used -= 1
            if right > left:
                if used > start and high[used - 1] == left and weight[used - 1] == units:
                    high[used - 1] = right
                else:
                    low[used] = left
                    high[used] = right
                    weight[used] = units
                    used += 1
        if begins <= ends:
            at = begins
            begin += 1
        else:
            at = ends
            end += 1
    return used


def precursor_windows(
    form_mass: NDArray[np.floating], queries: QueryArrays, settings: ScoringSettings, first: int, last: int
) -> NDArray[np.int64]:
    """Return the disjoint ranges of peptidoforms in the mass windows of the queries `first:last`, (q, e, 2) int64, by isotope error.

    Isotope errors are in descending order, so that windows ascend. A peptidoform in two windows is assigned to the window of the larger
    error.
    """
    mass = queries.mass[first:last]
    windows = np.zeros((len(mass), len(settings.isotope_errors), 2), np.int64)
    done = np.zeros(len(mass), np.int64)
    for e, (error, least) in enumerate(zip(settings.isotope_errors.tolist(), settings.isotope_minimum_mass.tolist(), strict=True)):
        observed = mass - error * settings.isotope_spacing
        tolerance = settings.precursor_absolute + settings.precursor_relative * observed
        low = np.maximum(np.searchsorted(form_mass, observed - tolerance), done)
        high = np.maximum(np.searchsorted(form_mass, np.nextafter(observed + tolerance, np.inf)), low)
        tried = mass >= least
        windows[tried, e, 0], windows[tried, e, 1] = low[tried], high[tried]
        done = np.where(tried, np.maximum(done, high), done)
    return windows


def empty_best(n: int, limit: int) -> BestArrays:
    """Return empty arrays for the best `limit` candidates of n queries."""
    return BestArrays(np.full((n, limit), -np.inf, np.float32), np.full((n, limit), -1, np.int64))
