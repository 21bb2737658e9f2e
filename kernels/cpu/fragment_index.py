"""Fragment-ion index: wide precursor windows are searched by looking up a spectrum's peaks among the ions of all forms.

The idea is MSFragger's (Kong 2017, Nature Methods 14:513): instead of computing the ions of every candidate and looking for a peak at each,
the ions of all candidates stand in order of mass, and each peak visits those it matches. The scores are those of `kernels.cpu.scoring`:
counters of whole numbers give them to about a thousandth, which is enough to choose a few more candidates than are wanted, and
`kernels.cpu.scoring.score_candidates` computes those exactly. `kernels.layouts` describes the arrays.

Forms next in mass make a chunk, so that the counters of a chunk stay in a core's own cache while the postings of a chunk, which many
queries visit one after the other, stay in the cache of the processor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kernels.cpu.scoring import (
    bin_of_rounded,
    find_arrangement,
    first_arrangement,
    is_possible,
    lower_bound,
    next_arrangement,
    place_modifications,
)
from kernels.layouts import (
    C_TERMINAL,
    FORMS_OF_CHUNK,
    HYPERSCORE,
    ISOTOPE_BITS,
    KEYS_OF_DALTON,
    SDP,
    BestArrays,
    FormCode,
    FragmentIndexArrays,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoreTables,
    ScoringSettings,
    SpectrumArrays,
)

__all__ = [
    "BIN_SHIFT",
    "arrangement_room",
    "arrangements_of",
    "build_chunks",
    "count_forms",
    "empty_best",
    "empty_index",
    "form_code",
    "list_forms",
    "make_segments",
    "precursor_windows",
    "score_tables",
    "search_chunks",
    "why_unsupported",
]

BIN_SHIFT = 16
"""Bits of a key below its bin, all that `FragmentIndexArrays.key` tells: bins of an eighth of a dalton. Narrower ones are no faster."""

_PROTON_MASS = 1.007276466621
_LONGEST = 64
_MOST_MATCHES = 255  # from one end, in a counter
_MOST_DOT = (1 << 16) - 1  # in a counter
_LAST_KEY = (1 << 32) - 1
_DIGIT_BITS = 8
_CODE_BITS = 63
_BLOCK, _GROUP, _HISTOGRAMS = 4096, 64, 4  # forms that are ranked together, and looked at together
_HEAVIEST_END = 100.0  # dalton that an ion series adds to the residues, and more


def form_code(peptides: PeptideArrays, modifications: ModificationArrays) -> FormCode:
    """How candidates of these peptides and modifications are numbered.

    Raises ValueError where the numbers would not fit 63 bits.
    """
    peptide_bits = max(1, (len(peptides.mass) - 1).bit_length())
    arrangement_bits = max(1, (modifications.max_forms - 1).bit_length())
    combination_bits = (len(modifications.combination_mass) - 1).bit_length()
    if peptide_bits + arrangement_bits + combination_bits + ISOTOPE_BITS > _CODE_BITS:
        raise ValueError("too many peptides, combinations and arrangements for one number")
    return FormCode(peptide_bits, arrangement_bits, peptide_bits + arrangement_bits)


def why_unsupported(spectra: SpectrumArrays, peptides: PeptideArrays, modifications: ModificationArrays, settings: ScoringSettings) -> str:
    """Why these cannot be searched with a fragment index; empty where they can."""
    if settings.score not in (SDP, HYPERSCORE):
        return "the score is not a sum over matching ions"
    if settings.min_matched_ions < 1:
        return "forms without matching ions are wanted"
    if len(settings.isotope_errors) > 1 << ISOTOPE_BITS:
        return "too many isotope errors"
    try:
        form_code(peptides, modifications)
    except ValueError as error:
        return str(error)
    series, charges = max(len(settings.n_term_series), len(settings.c_term_series)), settings.max_fragment_charge
    if (int(peptides.length.max(initial=1)) - 1) * series * charges > _MOST_MATCHES:
        return "a form has more ions than a counter counts"
    heaviest_peak = charges * (settings.max_mz + settings.fragment_absolute) * (1 + 2 * settings.fragment_relative)
    heaviest_ion = peptides.mass.max(initial=0.0) + modifications.combination_mass.max(initial=0.0) + _HEAVIEST_END
    if min(heaviest_peak, heaviest_ion) * KEYS_OF_DALTON >= _LAST_KEY:
        return "fragments are heavier than a key tells"
    if spectra.mz.min(initial=np.inf) * (1 - settings.fragment_relative) - settings.fragment_absolute < 2 * _PROTON_MASS:
        return "peaks lie below the masses of fragments"
    lightest = np.nanmin(peptides.residue_mass) + modifications.combination_mass.min(initial=0.0)
    widest = settings.fragment_absolute + settings.fragment_relative * settings.max_mz
    if lightest / charges <= 2.1 * widest:
        return "a peak matches several ions of one series"
    return ""


def _weight_scale(spectra: SpectrumArrays, settings: ScoringSettings) -> float:
    """Units to a weight of one, a power of two: as many as leave a counter room for every dot product that can be.

    A peak matches at most one ion of a series and charge, and a peptide has at most 62 ions of each; the sum of 62 weights is at most
    the root of 62 times the sum of all squares (Cauchy and Schwarz).
    """
    rows = (len(settings.n_term_series) + len(settings.c_term_series)) * settings.max_fragment_charge
    most = rows * _largest_sum(spectra.offsets, spectra.weight, _LONGEST - 2) * (1 + 1e-6)
    # Up to a unit more for each ion, by rounding.
    room = _MOST_DOT - rows * (_LONGEST - 2)
    return float(2.0 ** np.floor(np.log2(room / most))) if most > 0.0 else 1.0


@njit(nogil=True, cache=True)
def _largest_sum(offsets, weight, n):
    """What the sum of n peaks of a spectrum cannot exceed."""
    largest = 0.0
    for s in range(len(offsets) - 1):
        total, squares = 0.0, 0.0
        for i in range(offsets[s], offsets[s + 1]):
            total += weight[i]
            squares += np.float64(weight[i]) * weight[i]
        largest = max(largest, min(total, np.sqrt(n * squares)))
    return largest


def score_tables(spectra: SpectrumArrays, settings: ScoringSettings) -> ScoreTables:
    """Tables from counters to the score that `settings` names, in units of weight that suit the spectra."""
    scale = _weight_scale(spectra, settings)
    dot = np.arange(_MOST_DOT + 1) / scale
    counts = np.zeros(_MOST_MATCHES + 1)
    if settings.score == HYPERSCORE:
        counts[1:] = np.cumsum(np.log(np.arange(1.0, _MOST_MATCHES + 1)))
        dot = np.log(1.0 + 100.0 * dot)
    return ScoreTables(counts.astype(np.float32), dot.astype(np.float32), scale)


@njit(nogil=True, cache=True)
def arrangement_room(modifications):
    """Room for the arrangements of one peptide: sites (m, 64), numbers of sites (m,), modification, choice and site of each slot; int64."""
    n, slots = max(1, len(modifications.mass)), 1
    for c in range(len(modifications.combination_count)):
        slots = max(slots, modifications.combination_count[c].sum())
    return (
        np.zeros((n, _LONGEST), np.int64),
        np.zeros(n, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
    )


@njit(nogil=True, cache=True, _nrt=False)
def _count_arrangements(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice, slot_site):
    """Forms of a peptide with combination `c`."""
    slots = first_arrangement(
        c, peptide, peptides.residues, peptides.position, peptides.length, peptides.flags, peptides.letters,
        modifications.combination_count, modifications.residue_mask, modifications.place, sites, n_sites, slot_modification, slot_choice,
    )  # fmt: skip
    if slots <= 0:
        return 1 + slots
    forms = 0
    while True:
        forms += is_possible(slots, slot_modification, slot_choice, sites, slot_site)
        if forms >= modifications.max_forms or not next_arrangement(slots, slot_modification, slot_choice, n_sites):
            return forms


@njit(nogil=True, cache=True)
def count_forms(peptides, modifications, first, last, bucket_width, n_forms, n_residues):
    """Count the forms of peptides `first:last` by total mass, in buckets of `bucket_width` dalton: the pre-calculation of an index.

    Added to `n_forms` (b,) int64, and to `n_residues` (b,) int64 the places between residues of the forms: postings of each ion series.
    Heavier forms than the buckets reach count in the last one, lighter ones in the first.
    """
    sites, n_sites, slot_modification, slot_choice, slot_site = arrangement_room(modifications)
    for peptide in range(first, last):
        for c in range(len(modifications.combination_mass)):
            forms = _count_arrangements(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice, slot_site)
            if forms:
                mass = peptides.mass[peptide] + modifications.combination_mass[c]
                b = min(len(n_forms) - 1, max(0, np.int64(mass / bucket_width)))
                n_forms[b] += forms
                n_residues[b] += forms * (np.int64(peptides.length[peptide]) - 1)


@njit(nogil=True, cache=True)
def arrangements_of(peptides, modifications, c, first, last, out):
    """Number of forms of each peptide `first:last` with combination `c`, into `out` (last - first,) int64."""
    sites, n_sites, slot_modification, slot_choice, slot_site = arrangement_room(modifications)
    for peptide in range(first, last):
        out[peptide - first] = _count_arrangements(
            c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice, slot_site
        )


def list_forms(
    peptides: PeptideArrays, modifications: ModificationArrays, low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Mass and number of every form whose mass is at least `low` and below `high` (dalton), in order of mass, then of number."""
    code = form_code(peptides, modifications)
    masses, codes, counts = [], [], []
    for c, added in enumerate(modifications.combination_mass.tolist()):
        # Rounding may move a mass across a border by a unit in the last place: look a little further, then compare sums.
        first, last = np.searchsorted(peptides.mass, (low - added - 1e-6, high - added + 1e-6))
        mass = peptides.mass[first:last] + added
        inside = (mass >= low) & (mass < high)
        n = np.zeros(last - first, np.int64)
        arrangements_of(peptides, modifications, c, int(first), int(last), n)
        inside &= n > 0
        masses.append(mass[inside])
        counts.append(n[inside])
        start = (c << ISOTOPE_BITS + code.isotope_shift) + (np.arange(first, last, dtype=np.int64) << code.arrangement_bits)
        codes.append(start[inside])
    mass, number, count = np.concatenate(masses), np.concatenate(codes), np.concatenate(counts)
    order = np.argsort(mass, kind="stable")
    mass, number, count = mass[order], number[order], count[order]
    before = np.cumsum(count) - count
    arrangement = np.arange(int(count.sum())) - np.repeat(before, count)
    return np.repeat(mass, count), np.repeat(number, count) + arrangement


def empty_index(
    peptides: PeptideArrays,
    modifications: ModificationArrays,
    settings: ScoringSettings,
    form_mass: NDArray[np.float64],
    form_codes: NDArray[np.int64],
    *,
    bin_shift: int = BIN_SHIFT,
) -> FragmentIndexArrays:
    """The index of forms, in order of mass as `list_forms` gives them, with room for the postings; `build_chunks` fills it."""
    code = form_code(peptides, modifications)
    n_chunks = -(-len(form_mass) // FORMS_OF_CHUNK)
    peptide = (form_codes >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)
    ions = (peptides.length[peptide].astype(np.int64) - 1) * (len(settings.n_term_series) + len(settings.c_term_series))
    of_chunk = np.add.reduceat(ions, np.arange(n_chunks) * FORMS_OF_CHUNK) if n_chunks else np.zeros(0, np.int64)
    chunk_start = np.concatenate((np.zeros(1, np.int64), np.cumsum(of_chunk)))
    heaviest = (float(form_mass[-1]) if n_chunks else 0.0) + _HEAVIEST_END
    n_bins = (min(_LAST_KEY, int(heaviest * KEYS_OF_DALTON)) >> bin_shift) + 1
    return FragmentIndexArrays(
        form_mass, form_codes, chunk_start, np.empty((n_chunks, n_bins + 1), np.uint32), bin_shift,
        np.empty(chunk_start[-1], np.uint16), np.empty(chunk_start[-1], np.uint16),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def build_chunks(peptides, modifications, settings, code, index, first, last):
    """Fill the postings of chunks `first:last` of an index that `empty_index` made. `code` is that of `form_code`.

    The ions are sorted by radix (Knuth, volume 3, section 5.2.5): by the digits of a key below its bin, then by the bin.
    """
    most = np.int64(0)
    for chunk in range(first, last):
        most = max(most, index.chunk_start[chunk + 1] - index.chunk_start[chunk])
    room = arrangement_room(modifications)
    shift, base = np.empty(_LONGEST, np.float64), np.empty(_LONGEST, np.float64)
    key, other_key = np.empty(most, np.uint32), np.empty(most, np.uint32)
    form, other_form = np.empty(most, np.uint16), np.empty(most, np.uint16)
    counts = np.empty((1 << _DIGIT_BITS) + 1, np.int64)
    for chunk in range(first, last):
        n = _list_ions(chunk, peptides, modifications, settings, code, index, room, shift, base, key, form)
        bits = 0
        while bits < index.bin_shift:
            _sort_by_digit(n, bits, min(_DIGIT_BITS, index.bin_shift - bits), key, form, other_key, other_form, counts)
            key, other_key, form, other_form = other_key, key, other_form, form
            bits += _DIGIT_BITS
        _sort_by_bin(chunk, n, key, form, index)


@njit(nogil=True, cache=True, _nrt=False)
def _list_ions(chunk, peptides, modifications, settings, code, index, room, shift, base, key, form):
    """Keys and forms of the ions of a chunk, form by form; how many."""
    sites, n_sites, slot_modification, slot_choice, slot_site = room
    n_term_series, c_term_series = settings.n_term_series, settings.c_term_series
    n, slots, previous = 0, np.int64(0), np.int64(-2)
    length, position = np.int64(0), np.int64(0)
    start = chunk * FORMS_OF_CHUNK
    for i in range(start, min(len(index.form_mass), start + FORMS_OF_CHUNK)):
        number = index.form_code[i]
        arrangement = number & ((1 << code.arrangement_bits) - 1)
        if arrangement > 0 and number == previous + 1:
            next_arrangement(slots, slot_modification, slot_choice, n_sites)
            find_arrangement(0, slots, slot_modification, slot_choice, sites, n_sites, slot_site)
        else:
            c = number >> (code.isotope_shift + ISOTOPE_BITS)
            peptide = (number >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)
            slots = first_arrangement(
                c, peptide, peptides.residues, peptides.position, peptides.length, peptides.flags, peptides.letters,
                modifications.combination_count, modifications.residue_mask, modifications.place, sites, n_sites, slot_modification,
                slot_choice,
            )  # fmt: skip
            find_arrangement(arrangement, slots, slot_modification, slot_choice, sites, n_sites, slot_site)
            position, length = np.int64(peptides.position[peptide]), np.int64(peptides.length[peptide])
            for r in range(length):
                base[r] = peptides.residue_mass[np.int64(peptides.residues[position + r]) - 65]
        previous = number
        n_term, c_term = place_modifications(
            base, length, slots, slot_site, slot_modification, modifications.mass, peptides.n_term_mass, peptides.c_term_mass, shift
        )
        total = n_term
        for r in range(length):
            total += shift[r]
            shift[r] = total
        total += c_term
        for series in range(len(n_term_series)):
            for r in range(length - 1):
                key[n] = _key(n_term_series[series] - _PROTON_MASS + shift[r])
                form[n] = i - start
                n += 1
        for series in range(len(c_term_series)):
            for r in range(length - 1):
                key[n] = _key(c_term_series[series] - _PROTON_MASS + total - shift[r])
                form[n] = (i - start) | C_TERMINAL
                n += 1
    return n


@njit(nogil=True, cache=True, _nrt=False)
def _key(mass):
    """Key of a neutral mass (dalton); heavier ones than a key tells get the last, which no segment holds."""
    return np.uint32(min(_LAST_KEY, max(0, np.int64(mass * KEYS_OF_DALTON))))


@njit(nogil=True, cache=True, _nrt=False)
def _sort_by_digit(n, bits, width, key, form, out_key, out_form, counts):
    """Sort ions by `width` bits of their keys from bit `bits` on; equal ones keep their order."""
    mask = (1 << width) - 1
    counts[:] = 0
    for i in range(n):
        counts[((np.int64(key[i]) >> bits) & mask) + 1] += 1
    for d in range(mask):
        counts[d + 1] += counts[d]
    for i in range(n):
        d = (np.int64(key[i]) >> bits) & mask
        out_key[counts[d]] = key[i]
        out_form[counts[d]] = form[i]
        counts[d] += 1


@njit(nogil=True, cache=True, _nrt=False)
def _sort_by_bin(chunk, n, key, form, index):
    """Put the ions of a chunk into the index by bin; equal ones keep their order."""
    start, place = index.chunk_start[chunk], index.bin_start[chunk]
    last = len(place) - 2
    place[:] = 0
    # An element later than where they belong, so that the cursors of the bins are their starts when all is done.
    for i in range(n):
        b = min(last, np.int64(key[i]) >> index.bin_shift)
        if b + 2 <= last + 1:
            place[b + 2] += 1
    for b in range(1, last + 2):
        place[b] += place[b - 1]
    for i in range(n):
        b = min(last, np.int64(key[i]) >> index.bin_shift)
        at = start + place[b + 1]
        index.key[at] = key[i] & 0xFFFF
        index.form[at] = form[i]
        place[b + 1] += 1


@njit(nogil=True, cache=True)
def make_segments(spectra, queries, settings, tables, first, last):
    """Segments of the queries `first:last`, as a tuple of the columns of `SegmentArrays`.

    An ion at m/z t matches a peak at m when abs(m - t) <= absolute + relative t. The axis of t is cut where the tolerances of peaks begin
    and end, and a piece belongs to the heaviest peak that covers it, as in the exhaustive search. With fragment charge z an ion at t has
    the neutral mass z (t - proton). The key that a cut divides belongs to the heavier side as a whole, so that pieces share no ion and
    leave none out; what that counts too much, the exact scores of the best take back.
    """
    n, most = last - first, 0
    for q in range(first, last):
        s = queries.spectrum[q]
        most += 2 * (spectra.offsets[s + 1] - spectra.offsets[s]) * max(1, min(settings.max_fragment_charge, queries.charge[q] - 1))
    offsets = np.zeros(n + 1, np.int64)
    low, high, weight = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most, np.uint16)
    used = 0
    for q in range(first, last):
        s = queries.spectrum[q]
        for z in range(1, max(1, min(settings.max_fragment_charge, queries.charge[q] - 1)) + 1):
            used = _cut_axis(spectra, spectra.offsets[s], spectra.offsets[s + 1], settings, tables.weight_scale, z, used, low, high, weight)
        offsets[q - first + 1] = used
    return offsets, low[:used], high[:used], weight[:used]


@njit(nogil=True, cache=True, _nrt=False)
def _cut_axis(spectra, first_peak, last_peak, settings, scale, z, used, low, high, weight):
    """Segments of one spectrum for fragments of charge `z`; how many there are with those before."""
    mz = spectra.mz
    absolute, relative = settings.fragment_absolute, settings.fragment_relative
    begin, end = first_peak, first_peak  # peaks whose tolerance has begun, and whose tolerance has ended
    at = 0.0
    own = used
    while end < last_peak:
        ends = (mz[end] + absolute) / (1.0 - relative)
        begins = (mz[begin] - absolute) / (1.0 + relative) if begin < last_peak else np.inf
        if begin > end:  # between the last cut and the next one, peaks end:begin cover the axis
            heaviest = end
            for k in range(end + 1, begin):
                if spectra.weight[k] > spectra.weight[heaviest]:
                    heaviest = k
            left, right = _key(z * (at - _PROTON_MASS)), min(_LAST_KEY, _key(z * (min(begins, ends) - _PROTON_MASS)) + 1)
            value = np.float64(spectra.weight[heaviest])
            units = max(1, np.int64(value * scale + 0.5)) if value > 0.0 else 0
            if used > own and high[used - 1] > left:  # a key that an edge divides belongs to the heavier side
                if weight[used - 1] >= units:
                    left = high[used - 1]
                else:
                    high[used - 1] = left
                    if low[used - 1] == left:
                        used -= 1
            if right > left:
                if used > own and high[used - 1] == left and weight[used - 1] == units:
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
    """Forms in the mass windows of the queries `first:last`: (q, e, 2) int64, first and last of each isotope error, disjoint.

    Isotope errors come largest first, so that windows ascend; where they overlap, forms belong to the larger error.
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


def empty_best(n: int, kept: int) -> BestArrays:
    """Room for the best `kept` candidates of n queries."""
    return BestArrays(np.full((n, kept), -np.inf, np.float32), np.full((n, kept), -1, np.int64))


class _Room(NamedTuple):
    """What a thread needs while searching: counters of a chunk, the postings of segments, and what becomes of a block of counters."""

    counter: NDArray[np.uint32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    of_counts: NDArray[np.float32]
    score: NDArray[np.float32]
    bin: NDArray[np.uint8]
    good: NDArray[np.int32]
    histogram: NDArray[np.int32]


@njit(nogil=True, cache=True)
def _room(segments, tables, bins):
    most = np.int64(0)
    for q in range(len(segments.offsets) - 1):
        most = max(most, segments.offsets[q + 1] - segments.offsets[q])
    of_counts = np.empty(1 << 16, np.float32)
    for c in range(len(tables.of_count)):
        for n in range(len(tables.of_count)):
            of_counts[c << 8 | n] = tables.of_count[n] + tables.of_count[c]
    return _Room(
        np.zeros(FORMS_OF_CHUNK, np.uint32),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        of_counts,
        np.empty(_BLOCK, np.float32),
        np.empty(_BLOCK, np.uint8),
        np.empty(_BLOCK // _GROUP, np.int32),
        np.zeros((_HISTOGRAMS, bins), np.int32),
    )


@njit(nogil=True, cache=True)
def search_chunks(index, segments, windows, tables, code, settings, first, last, best, histogram, histogram_width, n_candidates):
    """Search the queries `first:last` in an index; add to their best candidates, histograms and numbers of candidates.

    `segments` and `windows` (q, e, 2) are those of these queries alone, so that row 0 is query `first`; `best`, `histogram` (q, b) int32
    and `n_candidates` (q,) int64 of all queries; b is at most 256. Queries without peaks have no candidates.
    """
    room = _room(segments, tables, histogram.shape[1])
    for chunk in range(len(index.chunk_start) - 1):
        start = chunk * FORMS_OF_CHUNK
        stop = min(len(index.form_mass), start + FORMS_OF_CHUNK)
        for q in range(last - first):
            inside = 0
            for e in range(windows.shape[1]):
                inside += max(0, min(stop, windows[q, e, 1]) - max(start, windows[q, e, 0]))
            if inside > 0 and segments.offsets[q + 1] > segments.offsets[q]:
                _visit(chunk, index, segments, segments.offsets[q], segments.offsets[q + 1], room)
                low, high = _clear_outside(windows[q], start, stop, room.counter)
                n_candidates[first + q] += inside
                # Forms outside the windows scored nothing.
                histogram[first + q, 0] -= high - low - inside
                _rank(
                    first + q, low, high, start, windows[q], index.form_code, tables.of_dot, code.isotope_shift, settings.min_matched_ions,
                    room, best, histogram, histogram_width,
                )  # fmt: skip
                room.counter[:] = 0


@njit(nogil=True, cache=True, _nrt=False)
def _find(chunk, index, target):
    """First posting of a chunk whose key is not below `target`."""
    b = np.int64(target) >> index.bin_shift
    start = index.chunk_start[chunk]
    if b >= index.bin_start.shape[1] - 1:
        return index.chunk_start[chunk + 1]
    return lower_bound(index.key, start + index.bin_start[chunk, b], start + index.bin_start[chunk, b + 1], target & 0xFFFF)


@njit(nogil=True, cache=True, _nrt=False)
def _visit(chunk, index, segments, first, last, room):
    """Add the weights of a query's segments to the counters of the forms that have ions in them."""
    begin, end, counter, form = room.begin, room.end, room.counter, index.form
    # All searches before all visits: they do not wait for one another.
    for s in range(first, last):
        begin[s - first] = _find(chunk, index, segments.low[s])
        end[s - first] = _find(chunk, index, segments.high[s])
    for s in range(first, last):
        added = (np.int64(segments.weight[s]) << 16) + 1
        for i in range(begin[s - first], end[s - first]):
            f = np.int64(form[i])
            counter[f & (C_TERMINAL - 1)] += added + 255 * (f >> 15)


@njit(nogil=True, cache=True, _nrt=False)
def _clear_outside(windows, start, stop, counter):
    """Set the counters of forms outside all windows to zero; the range, in whole groups, that holds the others."""
    first, done = -1, 0
    for e in range(windows.shape[0]):
        low, high = max(start, windows[e, 0]) - start, min(stop, windows[e, 1]) - start
        if low < high:
            if first < 0:
                first = low // _GROUP * _GROUP
                done = first
            counter[done:low] = 0
            done = high
    last = -(-done // _GROUP) * _GROUP
    counter[done:last] = 0
    return first, last


@njit(nogil=True, cache=True, _nrt=False)
def _rank(
    q, low, high, start, windows, form_code, of_dot, isotope_shift, min_matched_ions, room, best, histogram, histogram_width
):  # fmt: skip
    """Scores of the forms `low:high` (whole groups) of a chunk into the histogram of query q, and the best ones among its best.

    In blocks, and each step for a whole block, so that the compiler makes vector instructions of most; only groups that hold a score good
    enough are looked at one by one. Four histograms, for increments of the same bin have to wait for one another.
    """
    counter, of_counts, score, bin_of, good, counts = room.counter, room.of_counts, room.score, room.bin, room.good, room.histogram
    inverse, last_bin = np.float32(1.0 / histogram_width), np.float32(histogram.shape[1] - 1)
    smallest = np.float32(1e-30)  # zero is the score of forms without matching ions
    k = best.score.shape[1]
    for block in range(low, high, _BLOCK):
        n = min(_BLOCK, high - block)
        for i in range(n):
            value = counter[block + i]
            score[i] = of_counts[value & np.uint32(0xFFFF)] + of_dot[value >> np.uint32(16)]
        for i in range(n):
            bin_of[i] = np.uint8(bin_of_rounded(score[i], inverse, last_bin))
        worst = max(best.score[q, k - 1], smallest)
        for g in range(n // _GROUP):
            n_good = np.int32(0)
            for i in range(_GROUP):
                n_good = np.int32(n_good + np.int32(score[g * _GROUP + i] >= worst))
            good[g] = n_good
        for i in range(0, n, _HISTOGRAMS):
            counts[0, bin_of[i]] += 1
            counts[1, bin_of[i + 1]] += 1
            counts[2, bin_of[i + 2]] += 1
            counts[3, bin_of[i + 3]] += 1
        for g in range(n // _GROUP):
            if good[g] > 0:
                for i in range(g * _GROUP, (g + 1) * _GROUP):
                    value = np.int64(counter[block + i])
                    if score[i] >= best.score[q, k - 1] and (value & 0xFF) + ((value >> 8) & 0xFF) >= min_matched_ions:
                        e = 0
                        while start + block + i >= windows[e, 1] or start + block + i < windows[e, 0]:
                            e += 1
                        _keep(q, score[i], form_code[start + block + i] + (np.int64(e) << isotope_shift), best)
    for b in range(histogram.shape[1]):
        for h in range(_HISTOGRAMS):
            histogram[q, b] += counts[h, b]
            counts[h, b] = 0


@njit(nogil=True, cache=True, _nrt=False)
def _keep(q, score, number, best):
    """Keep a candidate among the best of query q: higher scores first, of equal ones the lower number."""
    k = best.score.shape[1]
    place = k
    while place > 0 and (
        best.code[q, place - 1] < 0
        or score > best.score[q, place - 1]
        or (score == best.score[q, place - 1] and number < best.code[q, place - 1])
    ):
        place -= 1
    if place == k:
        return
    for j in range(k - 1, place, -1):
        best.score[q, j] = best.score[q, j - 1]
        best.code[q, j] = best.code[q, j - 1]
    best.score[q, place] = score
    best.code[q, place] = number
