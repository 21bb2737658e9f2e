"""Postings of a fragment-ion index: (ion, peptidoform) pairs sorted by mass, built and searched by threads.

`proteoscope.kernels.layouts` describes the arrays. Peptidoforms with adjacent masses form a chunk, so that the counters of a chunk stay in
the cache of a core, and its postings, which many queries visit in turn, in the shared cache of the CPU.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.arrangements import add_modifications, find_arrangement, first_arrangement, next_arrangement
from proteoscope.kernels.cpu.candidates import bin_of_rounded, lower_bound
from proteoscope.kernels.cpu.peptidoforms import arrangement_workspace, peptidoform_code
from proteoscope.kernels.cpu.scores import PROTON_MASS
from proteoscope.kernels.cpu.segments import HEAVIEST_END, LAST_KEY, fragment_key
from proteoscope.kernels.layouts import (
    C_TERMINAL,
    ISOTOPE_BITS,
    KEYS_OF_DALTON,
    PEPTIDOFORMS_OF_CHUNK,
    FragmentIndexArrays,
    ModificationArrays,
    PeptideArrays,
    ScoringSettings,
)

__all__ = ["BIN_SHIFT", "build_chunks", "empty_index", "search_chunks"]

BIN_SHIFT = 16
"""Number of low bits of a key that its bin does not include, stored in `FragmentIndexArrays.key`: bins are an eighth of a dalton.

Narrower bins are not faster.
"""

_LONGEST = 64
_DIGIT_BITS = 8
_BLOCK, _GROUP, _HISTOGRAMS = 4096, 64, 4  # forms ranked together, forms compared together, and partial histograms


def empty_index(
    peptides: PeptideArrays,
    modifications: ModificationArrays,
    settings: ScoringSettings,
    form_mass: NDArray[np.float64],
    form_codes: NDArray[np.int64],
    *,
    bin_shift: int = BIN_SHIFT,
) -> FragmentIndexArrays:
    """Return an index of the peptidoforms from `list_peptidoforms`, with space for the postings that `build_chunks` writes."""
    code = peptidoform_code(peptides, modifications)
    n_chunks = -(-len(form_mass) // PEPTIDOFORMS_OF_CHUNK)
    peptide = (form_codes >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)
    ions = (peptides.length[peptide].astype(np.int64) - 1) * (len(settings.n_term_series) + len(settings.c_term_series))
    of_chunk = np.add.reduceat(ions, np.arange(n_chunks) * PEPTIDOFORMS_OF_CHUNK) if n_chunks else np.zeros(0, np.int64)
    chunk_start = np.concatenate((np.zeros(1, np.int64), np.cumsum(of_chunk)))
    heaviest = (float(form_mass[-1]) if n_chunks else 0.0) + HEAVIEST_END
    n_bins = (min(LAST_KEY, int(heaviest * KEYS_OF_DALTON)) >> bin_shift) + 1
    return FragmentIndexArrays(
        form_mass,
        form_codes,
        chunk_start,
        np.empty((n_chunks, n_bins + 1), np.uint32),
        bin_shift,
        np.empty(chunk_start[-1], np.uint16),
        np.empty(chunk_start[-1], np.uint16),
    )


@njit(nogil=True, cache=True)
def build_chunks(peptides, modifications, settings, code, index, first, last, stop):
    """Write the postings of the chunks `first:last` to an index from `empty_index`; `code` is from `peptidoform_code`.

    The function ends between two chunks once `stop` (1,) uint8 is set.

    The ions are sorted by radix (Knuth, volume 3, section 5.2.5): by the digits of a key below its bin, then by the bin.
    """
    most = np.int64(0)
    for chunk in range(first, last):
        most = max(most, index.chunk_start[chunk + 1] - index.chunk_start[chunk])
    workspace = arrangement_workspace(peptides, modifications)
    shift, base = np.empty(_LONGEST, np.float64), np.empty(_LONGEST, np.float64)
    key, other_key = np.empty(most, np.uint32), np.empty(most, np.uint32)
    form, other_form = np.empty(most, np.uint16), np.empty(most, np.uint16)
    counts = np.empty((1 << _DIGIT_BITS) + 1, np.int64)
    for chunk in range(first, last):
        if stop[0]:
            return
        n = _list_ions(chunk, peptides, modifications, settings, code, index, workspace, shift, base, key, form)
        bits = 0
        while bits < index.bin_shift:
            _sort_by_digit(n, bits, min(_DIGIT_BITS, index.bin_shift - bits), key, form, other_key, other_form, counts)
            key, other_key, form, other_form = other_key, key, other_form, form
            bits += _DIGIT_BITS
        _sort_by_bin(chunk, n, key, form, index)


@njit(nogil=True, cache=True, _nrt=False)
def _list_ions(chunk, peptides, modifications, settings, code, index, workspace, shift, base, key, form):
    """Write the keys and the peptidoforms of all ions of a chunk, peptidoform by peptidoform; return the number of ions."""
    sites, n_sites, slot_modification, slot_choice, slot_site = workspace
    n_term_series, c_term_series = settings.n_term_series, settings.c_term_series
    n, slots, previous = 0, np.int64(0), np.int64(-2)
    length, position = np.int64(0), np.int64(0)
    start = chunk * PEPTIDOFORMS_OF_CHUNK
    for i in range(start, min(len(index.form_mass), start + PEPTIDOFORMS_OF_CHUNK)):
        number = index.form_code[i]
        arrangement = number & ((1 << code.arrangement_bits) - 1)
        if arrangement > 0 and number == previous + 1:
            next_arrangement(slots, slot_modification, slot_choice, n_sites)
            find_arrangement(np.int64(0), slots, slot_modification, slot_choice, sites, n_sites, slot_site)
        else:
            c = number >> (code.isotope_shift + ISOTOPE_BITS)
            peptide = (number >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)
            slots = first_arrangement(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice)
            find_arrangement(arrangement, slots, slot_modification, slot_choice, sites, n_sites, slot_site)
            position, length = np.int64(peptides.position[peptide]), np.int64(peptides.length[peptide])
            for r in range(length):
                base[r] = peptides.residue_mass[np.int64(peptides.residues[position + r]) - 65]
        previous = number
        for r in range(length):
            shift[r] = base[r]
        n_term, c_term = add_modifications(
            shift, length, slots, slot_site, slot_modification, modifications.mass, peptides.n_term_mass, peptides.c_term_mass
        )
        total = n_term
        for r in range(length):
            total += shift[r]
            shift[r] = total
        total += c_term
        for series in range(len(n_term_series)):
            for r in range(length - 1):
                key[n] = fragment_key(n_term_series[series] - PROTON_MASS + shift[r])
                form[n] = i - start
                n += 1
        for series in range(len(c_term_series)):
            for r in range(length - 1):
                key[n] = fragment_key(c_term_series[series] - PROTON_MASS + total - shift[r])
                form[n] = (i - start) | C_TERMINAL
                n += 1
    return n


@njit(nogil=True, cache=True, _nrt=False)
def _sort_by_digit(n, bits, width, key, form, out_key, out_form, counts):
    """Sort ions stably by `width` bits of their keys from bit `bits`."""
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
    """Sort the ions of a chunk stably into the index by bin."""
    start, position = index.chunk_start[chunk], index.bin_start[chunk]
    last = len(position) - 2
    position[:] = 0
    # Counts are stored shifted by one element: after the postings are placed, the cursors of the bins are their start indices.
    for i in range(n):
        b = min(last, np.int64(key[i]) >> index.bin_shift)
        if b + 2 <= last + 1:
            position[b + 2] += 1
    for b in range(1, last + 2):
        position[b] += position[b - 1]
    for i in range(n):
        b = min(last, np.int64(key[i]) >> index.bin_shift)
        at = start + position[b + 1]
        index.key[at] = key[i] & 0xFFFF
        index.form[at] = form[i]
        position[b + 1] += 1


class _Workspace(NamedTuple):
    """Workspace of a thread: counters of the peptidoforms of a chunk, ranges of postings, and scores of a block of counters."""

    counter: NDArray[np.uint32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    of_counts: NDArray[np.float32]
    score: NDArray[np.float32]
    bin: NDArray[np.uint8]
    good: NDArray[np.int32]
    histogram: NDArray[np.int32]


@njit(nogil=True, cache=True)
def _new_workspace(segments, tables, bins):
    most = np.int64(0)
    for q in range(len(segments.offsets) - 1):
        most = max(most, segments.offsets[q + 1] - segments.offsets[q])
    of_counts = np.empty(1 << 16, np.float32)
    for c in range(len(tables.of_count)):
        for n in range(len(tables.of_count)):
            of_counts[c << 8 | n] = tables.of_count[n] + tables.of_count[c]
    return _Workspace(
        np.zeros(PEPTIDOFORMS_OF_CHUNK, np.uint32),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        of_counts,
        np.empty(_BLOCK, np.float32),
        np.empty(_BLOCK, np.uint8),
        np.empty(_BLOCK // _GROUP, np.int32),
        np.zeros((_HISTOGRAMS, bins), np.int32),
    )


@njit(nogil=True, cache=True)
def search_chunks(index, segments, windows, tables, code, settings, first, last, hits, stop):
    """Search the queries `first:last` in an index; update their best candidates, histograms and numbers of candidates.

    Row 0 of `segments` and `windows` (q, e, 2) belongs to query `first`; `hits` (`IndexHits`) has rows for all
    queries, and at most 256 bins. Queries without peaks have no candidates. `stop` (1,) uint8 ends the search.
    """
    histogram, n_candidates = hits.histogram, hits.n_candidates
    workspace = _new_workspace(segments, tables, histogram.shape[1])
    for chunk in range(len(index.chunk_start) - 1):
        start = chunk * PEPTIDOFORMS_OF_CHUNK
        end = min(len(index.form_mass), start + PEPTIDOFORMS_OF_CHUNK)
        for q in range(last - first):
            if stop[0]:
                return
            inside = 0
            for e in range(windows.shape[1]):
                inside += max(0, min(end, windows[q, e, 1]) - max(start, windows[q, e, 0]))
            if inside > 0 and segments.offsets[q + 1] > segments.offsets[q]:
                _visit(chunk, index, segments, segments.offsets[q], segments.offsets[q + 1], workspace)
                low, high = _clear_outside(windows[q], start, end, workspace.counter)
                n_candidates[first + q] += inside
                # Remove the forms outside the windows from the count of forms that score zero.
                histogram[first + q, 0] -= high - low - inside
                _rank(
                    first + q,
                    low,
                    high,
                    start,
                    windows[q],
                    index.form_code,
                    tables.of_dot,
                    code.isotope_shift,
                    settings.minimum_matched_ions,
                    workspace,
                    hits,
                )
                workspace.counter[:] = 0


@njit(nogil=True, cache=True, _nrt=False)
def _find(chunk, index, target):
    """Return the first posting of a chunk whose key is not below `target`."""
    b = np.int64(target) >> index.bin_shift
    start = index.chunk_start[chunk]
    if b >= index.bin_start.shape[1] - 1:
        return index.chunk_start[chunk + 1]
    return lower_bound(index.key, start + index.bin_start[chunk, b], start + index.bin_start[chunk, b + 1], target & 0xFFFF)


@njit(nogil=True, cache=True, _nrt=False)
def _visit(chunk, index, segments, first, last, workspace):
    """For each segment of a query, add its weight to the counters of the peptidoforms that have an ion in the segment."""
    begin, end, counter, form = workspace.begin, workspace.end, workspace.counter, index.form
    # Do all searches before visiting postings, so that their memory accesses overlap.
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
    """Set the counters of peptidoforms outside all windows to 0.

    Return the range of counters, in multiples of `_GROUP`, that contains all windows.
    """
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
def _rank(q, low, high, start, windows, form_code, of_dot, isotope_shift, minimum_matched_ions, workspace, hits):
    """Add the scores of the peptidoforms `low:high` of a chunk to the histogram and the best candidates of query q.

    The range consists of complete groups. Each step processes a whole block with vector instructions; only groups with a sufficient score
    are processed one by one. There are four histograms, since successive increments of the same bin would wait for each other.
    """
    counter, of_counts, score = workspace.counter, workspace.of_counts, workspace.score
    bin_of, good, counts = workspace.bin, workspace.good, workspace.histogram
    best, histogram = hits.best, hits.histogram
    inverse, last_bin = np.float32(1.0 / hits.histogram_width), np.float32(histogram.shape[1] - 1)
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
                    if score[i] >= best.score[q, k - 1] and (value & 0xFF) + ((value >> 8) & 0xFF) >= minimum_matched_ions:
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
    """Insert a candidate into the best candidates of query q: by descending score, then by ascending number."""
    k = best.score.shape[1]
    position = k
    while position > 0 and (
        best.code[q, position - 1] < 0
        or score > best.score[q, position - 1]
        or (score == best.score[q, position - 1] and number < best.code[q, position - 1])
    ):
        position -= 1
    if position == k:
        return
    for j in range(k - 1, position, -1):
        best.score[q, j] = best.score[q, j - 1]
        best.code[q, j] = best.code[q, j - 1]
    best.score[q, position] = score
    best.code[q, position] = number
