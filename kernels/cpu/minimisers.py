"""Candidate positions of reads in long references, found by common minimisers (Roberts et al. 2004; Li 2016).

A word of k bases and its reverse complement are represented by the smaller of both, so that one index serves both strands. A word is a
minimiser if it has the smallest hash in a window of w words; of equal words in a window, all are minimisers. If a read and a reference
share a segment of w + k - 1 bases, they share at least one minimiser. Words with ambiguous bases, or equal to their reverse complement, are
excluded.

::

    references   each has its own range of positions, `SPACING` apart:  |--text 0--|..........|--text 1--|
    keys         of minimisers, sorted; their first bits are a bucket of `starts`
    entries      parallel to keys: 2 * position + 1 if the reverse complement was smaller

A minimiser in both a read and a reference implies a strand and a diagonal: the position of the read's first base. Minimisers of one
strand with nearby diagonals vote for one position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "CANDIDATE_FIELDS",
    "LONGEST_READ",
    "MAXIMUM_CANDIDATES",
    "MAXIMUM_TEXTS",
    "SPACING",
    "MinimiserIndex",
    "build_index",
    "find_candidates",
    "find_minimisers",
]

LONGEST_READ = (1 << 20) - 1
SPACING = 1 << 21
"""Distance between the ranges of consecutive references, so that no read extends over both."""
MAXIMUM_TEXTS = 1_000_000
"""Maximum number of references that fits into the diagonal of a hit."""
MAXIMUM_CANDIDATES = 8
CANDIDATE_FIELDS = 5
"""Number of fields of a candidate: 1 for the reverse complement, reference index, window start and end, votes."""
_MAXIMUM_ENTRIES = 64  # maximum positions used per minimiser; more frequent ones are only used if no other maps the read
_MAXIMUM_HITS = 1 << 16  # maximum hits of a read, or four per base if that is more
_NONE = np.uint64(np.iinfo(np.uint64).max)
_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)
_FACTOR_1, _FACTOR_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)  # odd, so that multiplication modulo 2^64 is invertible
_PLACE_BITS = 20  # bits of a hit that store the position in the read
_DIAGONAL_SHIFT = 1 << 21  # keeps diagonals positive if a read extends beyond the start of a text
_STRAND_BIT = 62


class MinimiserIndex(NamedTuple):
    """Minimisers of references.

    Attributes
    ----------
    keys : (n,) uint64
        Keys of the minimisers, sorted.
    entries : (n,) int64
        Position and strand of each minimiser: 2 * position, plus 1 if the reverse complement was smaller.
    starts : (2 ** bits + 1,) int64
        Start of each bucket in `keys`, followed by n.
    begins : (texts,) int64
        First position of each reference.
    lengths : (texts,) int64
        Number of bases of each reference.
    k, w
        Number of bases of a word, and number of words of a window.
    bits
        Number of leading bits of a key that select its bucket.
    """

    keys: NDArray[np.uint64]
    entries: NDArray[np.int64]
    starts: NDArray[np.int64]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    k: int
    w: int
    bits: int


@njit(nogil=True, cache=True, error_model="numpy")
def _mixed(word, bits):
    """Return the hash of a word with `bits` bits; different words have different hashes."""
    mask, half = (_1 << bits) - _1, bits >> _1
    word = (word * _FACTOR_1) & mask
    word ^= word >> half
    word = (word * _FACTOR_2) & mask
    return word ^ (word >> half)


@njit(nogil=True, cache=True, error_model="numpy")
def _hash_words(codes, begin, end, bases, k, hashes):
    """Write 2 * hash + strand of each word in `begin:end`, or `_NONE` for excluded words; return the number of words."""
    bits, top = np.uint64(2 * k), np.uint64(2 * (k - 1))
    mask = (_1 << bits) - _1
    forward, reverse, n_bases = np.uint64(0), np.uint64(0), 0
    for i in range(begin, end):
        base = bases[codes[i]]
        if base > 3:
            n_bases = 0
        else:
            n_bases += 1
            forward = ((forward << _2) | np.uint64(base)) & mask
            reverse = (reverse >> _2) | ((_3 - np.uint64(base)) << top)
        n = i - begin - k + 1
        if n >= 0:
            if n_bases < k or forward == reverse:
                hashes[n] = _NONE
            elif forward < reverse:
                hashes[n] = _mixed(forward, bits) << _1
            else:
                hashes[n] = _mixed(reverse, bits) << _1 | _1
    return max(0, end - begin - k + 1)


@njit(nogil=True, cache=True, error_model="numpy")
def _choose(hashes, n, w, chosen):
    """Write the indices of the minimisers among n words to `chosen`; return their number."""
    count, last, least, position = 0, -1, _NONE, -1
    for start in range(max(1, n - w + 1) if n else 0):
        end = min(n, start + w)
        if position < start:
            least = _NONE
            for p in range(start, end):
                if hashes[p] >> _1 <= least >> _1:
                    least, position = hashes[p], p
            if least == _NONE:
                position = end - 1
                continue
            for p in range(max(last + 1, start), end):
                if hashes[p] >> _1 == least >> _1:
                    chosen[count] = last = p
                    count += 1
        elif hashes[end - 1] >> _1 <= least >> _1 and hashes[end - 1] != _NONE:
            least, position = hashes[end - 1], end - 1
            if position > last:
                chosen[count] = last = position
                count += 1
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def find_minimisers(codes, begin, end, first, last, bases, k, w, position, hashes, entries):
    """Find the minimisers of a reference among its words `first` to `last`.

    Parameters
    ----------
    codes
        Codes of the references, int8.
    begin, end
        Range of the reference in `codes`.
    bases : (symbols,) uint8
        Base of each code: 0 to 3, or 4 for other symbols.
    position
        Position of the reference's first base.
    hashes : ndarray of uint64
        Output; must have space for ``last - first + 2 * w`` values.
    entries : ndarray of int64
        Output, like `hashes`.

    Returns
    -------
    int
        Number of minimisers.
    """
    n_words = max(0, end - begin - k + 1)
    before, after = max(0, first - w + 1), min(n_words, last + w - 1)
    chosen = np.empty(after - before, np.int64)
    n = _hash_words(codes, begin + before, begin + after + k - 1, bases, k, hashes)
    count = 0
    for c in range(_choose(hashes, n, w, chosen)):
        word = before + chosen[c]
        if first <= word < last:
            result = hashes[chosen[c]]
            entries[count] = 2 * (position + word) + np.int64(result & _1)
            hashes[count] = result >> _1
            count += 1
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_starts(keys, starts, shift):
    bucket = 0
    for i in range(len(keys)):
        while bucket <= np.int64(keys[i] >> shift):
            starts[bucket] = i
            bucket += 1
    while bucket < len(starts):
        starts[bucket] = len(keys)
        bucket += 1


def build_index(hashes: NDArray[np.uint64], entries: NDArray[np.int64], lengths: NDArray[np.int64], k: int, w: int) -> MinimiserIndex:
    """Return the index of minimisers that are given in the order of their positions."""
    bits = max(1, min(len(hashes).bit_length(), 2 * k - 1))
    # Sort by the low bits, which are uniformly distributed. The high bits are not, since a minimiser is the minimum among its neighbours.
    keys = (hashes & np.uint64((1 << bits) - 1)) << np.uint64(2 * k - bits) | hashes >> np.uint64(bits)
    order = np.argsort(keys, kind="stable")
    keys, starts = keys[order], np.zeros((1 << bits) + 1, np.int64)
    _fill_starts(keys, starts, np.uint64(2 * k - bits))
    begins = np.concatenate([[0], np.cumsum(lengths + SPACING)[:-1]]).astype(np.int64)
    return MinimiserIndex(keys, entries[order], starts, begins, lengths, k, w, bits)


@njit(nogil=True, cache=True, error_model="numpy")
def _first_entry(keys, starts, key, shift):
    """Return the first entry with a key, and the end of its bucket."""
    low, high = starts[np.int64(key >> shift)], starts[np.int64(key >> shift) + 1]
    end = high
    while high - low > 8:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    while low < high and keys[low] < key:
        low += 1
    return low, end


@njit(nogil=True, cache=True, error_model="numpy")
def _sort(values, n):
    if n > 64:
        values[:n].sort()
        return
    for i in range(1, n):
        value, j = values[i], i
        while j and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@njit(nogil=True, cache=True, error_model="numpy")
def find_candidates(codes, offsets, first, last, bases, index, rules, candidates, counts, stop):
    """Find candidate positions of the reads `first:last`.

    Parameters
    ----------
    codes : int8
        Codes of all reads.
    offsets : (n + 1,) int64
        Start of each read in `codes`.
    bases
        See `find_minimisers`.
    index
        `MinimiserIndex` of the references.
    rules : (5,) int64
        Maximum difference between neighbouring diagonals of a candidate position, and between all of them; maximum change of the score by
        one base; cost of opening a gap, and cost of each base in it.
    candidates : (n, MAXIMUM_CANDIDATES, CANDIDATE_FIELDS) int64
        Output; the positions with the most votes, in descending order; positions with equal votes are sorted by strand (+ first), then by
        position.
    counts : (n,) int64
        Output; number of positions with at least half the votes of the first position; further positions are invalid.
    """
    keys, entries, starts, begins, lengths, k, w, bits = index
    tolerance, extent = rules[0], rules[1]
    shift, low_mask, low_bits = np.uint64(2 * k - bits), (_1 << np.uint64(bits)) - _1, np.uint64(bits)
    longest = 0
    for r in range(first, last):
        longest = max(longest, offsets[r + 1] - offsets[r])
    hashes, chosen, hits = np.empty(longest, np.uint64), np.empty(longest, np.int64), np.empty(max(_MAXIMUM_HITS, 4 * longest), np.int64)
    for r in range(first, last):
        if stop[0]:
            return
        counts[r] = 0
        begin, length = offsets[r], offsets[r + 1] - offsets[r]
        n = _choose(hashes, _hash_words(codes, begin, offsets[r + 1], bases, k, hashes), w, chosen)
        for is_frequent in range(2):
            n_hits = np.int64(0)
            for c in range(n):
                result = hashes[chosen[c]] >> _1
                key = (result & low_mask) << shift | result >> low_bits
                position, end = _first_entry(keys, starts, key, shift)
                if (position + _MAXIMUM_ENTRIES < end and keys[position + _MAXIMUM_ENTRIES] == key) != (is_frequent == 1):
                    continue
                end = min(end, position + _MAXIMUM_ENTRIES)
                while position < end and keys[position] == key and n_hits < len(hits):
                    entry = entries[position]
                    is_reverse = (entry & 1) ^ np.int64(hashes[chosen[c]] & _1)
                    at = chosen[c] if is_reverse == 0 else length - k - chosen[c]
                    diagonal = (entry >> 1) - at + _DIAGONAL_SHIFT
                    hits[n_hits] = is_reverse << _STRAND_BIT | diagonal << _PLACE_BITS | at
                    n_hits += 1
                    position += 1
            _sort(hits, n_hits)
            counts[r] = _chains(hits, n_hits, tolerance, extent, length, begins, lengths, k, rules, candidates[r])
            if counts[r]:
                break


@njit(nogil=True, cache=True, error_model="numpy")
def _chains(hits, n_hits, tolerance, extent, length, begins, lengths, k, rules, candidates):
    """Combine hits to positions; write the positions with the most votes to `candidates`.

    Return the number of positions with at least half as many votes as the first position.
    """
    count, most, i = 0, 0, 0
    mask = (np.int64(1) << _PLACE_BITS) - 1
    votes_of = np.empty(n_hits, np.int64)
    n = 0
    while i < n_hits:
        base, j = hits[i] >> _PLACE_BITS, i + 1
        before, left, right = base, hits[i] & mask, hits[i] & mask
        while j < n_hits:
            diagonal = hits[j] >> _PLACE_BITS
            if diagonal - before > tolerance or diagonal - base > extent:
                break
            left, right, before = min(left, hits[j] & mask), max(right, hits[j] & mask), diagonal
            j += 1
        votes = j - i
        votes_of[n] = votes
        n += 1
        most = max(most, votes)
        if count < len(candidates) or votes > candidates[count - 1, 4]:
            at = min(count, len(candidates) - 1)
            while at and candidates[at - 1, 4] < votes:
                candidates[at] = candidates[at - 1]
                at -= 1
            is_reverse = hits[i] >> _STRAND_BIT
            begin_diagonal = (base & ((np.int64(1) << (_STRAND_BIT - _PLACE_BITS)) - 1)) - _DIAGONAL_SHIFT
            text = np.searchsorted(begins, begin_diagonal + (hits[i] & mask), side="right") - 1
            start = begin_diagonal - begins[text] - _reach(left, rules)
            end = begin_diagonal - begins[text] + before - base + length + _reach(length - right - k, rules)
            candidates[at, 0], candidates[at, 1], candidates[at, 4] = is_reverse, text, votes
            candidates[at, 2], candidates[at, 3] = max(0, start), min(lengths[text], end)
            count = min(count + 1, len(candidates))
        i = j
    total = 0
    for c in range(n):
        total += 2 * votes_of[c] >= most
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _reach(n_bases, rules):
    """Return the length of the longest gap that costs at most as much as `n_bases` matches score, limited to the tolerance."""
    spare = n_bases * rules[2] - rules[3]
    if spare <= 0:
        return np.int64(0)
    return min(rules[0], spare // rules[4]) if rules[4] else rules[0]
