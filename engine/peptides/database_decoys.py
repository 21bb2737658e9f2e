"""Decoys by reversal or shuffling, and detection of decoys in a database by their names or by rearranged sequences of other proteins.

Reversing a reversed protein (a mirror image) gives its target again. If a database contains mirror images, a search that generates decoys
by reversal generates targets instead; too few matches are decoys, and all error rates are too low. Let f be the fraction of proteins that
are mirror images or their targets. A false match is then a target with probability f + (1 - f) / 2 and a decoy with probability (1 - f) /
2, so that an estimate of 1 % is actually (1 + f) / (1 - f) %: 1.1 % for f = 5 %, 1.5 % for f = 20 %. The limits below follow from this.

Names. A tag is a word that programs of the field use, with its separator, at the start or the end of the accession or of a part of it
(``rev_sp|P1|N``, ``sp|rev_P1|N``, ``sp|P1_REVERSED|N``, ``##P1``). Real names contain such words too: ``sp|P04618|REV_HV1H2`` is the
protein Rev of HIV. A tag therefore counts only in two cases. In the first, at least `_MINIMUM_NUMBER` proteins have the tag, and they are
at least the fraction `_SMALL_SHARE` of the database, of the contaminants or of both. In the second, at least `_MINIMUM_NUMBER` proteins or
at least the fraction `_SMALL_SHARE` have a tag and a target: another protein whose name is their name without the tag. UniProt's entry
names after two bars never count; as whole accessions, they count only in the second case.

Sequences. Reversal conserves the counts of residues, even if the first methionine or the residues at which an enzyme cuts stay in place.
Natural proteins of `_LONG` residues or more practically never have the same counts of all residues, except near copies with two exchanged
residues. Two proteins with the same counts are therefore a target and its mirror image, for any enzyme, if they differ at two fifths of
their positions, and if a fifth of the words of four residues in one protein occur reversed in the other. Shorter proteins, down to
`_SHORTEST`, have to be exact mirror images. Shuffled proteins are not detected by their sequences, only by their names. A search treats
them as proteins that are absent from the sample. Its error rates remain correct, and entrapment needs shuffled proteins.

A few mirror images occur by chance and do no harm. They matter if there are at least `_MINIMUM_NUMBER`, and together with their targets
they are at least the fraction `_SMALL_SHARE` of all proteins or residues, or they alone are this fraction of the database or the
contaminants. They also matter, regardless of their number, if those with `_LONG` residues or more and their targets are at least the
fraction `_LARGE_SHARE` of all proteins or residues. No mirror image was found in 15 natural databases (101,000 proteins).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import ProteinRow, Texts, batch_segments, is_group_start, ranges, row_mask, segment_offsets, take_segments
from proteoscope.engine.lazy_pyarrow import pa

__all__ = [
    "DECOY_METHODS",
    "DECOY_SEED",
    "DatabaseDecoys",
    "DecoyTag",
    "are_tagged",
    "decoy_pattern",
    "find_database_decoys",
    "make_decoys",
    "targets_of_decoys",
    "without_tag",
]

DECOY_METHODS = ("reverse", "pseudo-reverse", "shuffle", "existing", "none")
DECOY_SEED = 20141


def make_decoys(
    residues: NDArray[np.uint8], offsets: NDArray[np.int64], method: str, cleaves: NDArray[np.bool_], *, with_origin: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the residues of decoys, which have the same offsets as their targets.

    Parameters
    ----------
    residues : ndarray of uint8, shape (total,)
        Residues of the targets.
    offsets : ndarray of int64, shape (n + 1,)
        Target i is ``residues[offsets[i]:offsets[i + 1]]``.
    method : str
        ``reverse``, ``pseudo-reverse`` or ``shuffle``.
    cleaves : ndarray of bool, shape (26, 26)
        True for bonds that the enzyme cuts, by the residues before and after the bond; pseudo-reversal and shuffling do not move the
        residues before such bonds.
    with_origin : bool
        True to return the original positions, which take eight times the memory of the residues.

    Returns
    -------
    decoys : ndarray of uint8, shape (total,)
        Residues of the decoys.
    origin : ndarray of int64, shape (total,) or (0,)
        Position of each decoy residue in `residues`; empty without `with_origin`.
    """
    decoys, origin = np.empty_like(residues), np.empty(len(residues) if with_origin else 0, np.int64)
    kernels.cpu.peptides.write_decoys(residues, offsets, DECOY_METHODS.index(method), cleaves, DECOY_SEED, decoys, origin)
    return decoys, origin


_WORDS = "decoy|reversed|reverse|rev|xxx|shuffled|shuffle|shuf|scrambled"
# These are only prefixes, since unplaced contigs of genomes end with _random.
_WORDS_IN_FRONT = f"{_WORDS}|random|rnd"
_TAG_IN_FRONT = rf"#{{2,4}}(?:(?:{_WORDS_IN_FRONT})#{{1,4}})?|(?:{_WORDS_IN_FRONT})(?:[_:.~-]{{1,3}}|\|)"
_PREFIX = rf"(?i)^(?P<before>(?:.*?\|)??)(?P<tag>{_TAG_IN_FRONT})(?P<rest>.*)$"
_SUFFIX = rf"(?i)^(?P<before>.*?)(?P<tag>[_:.~-]{{1,3}}(?:{_WORDS})_?|#{{2,4}})(?P<rest>(?:\|.*)?)$"
# A tag like REV_ before up to five capitals and digits is an entry name of UniProt, such as REV_HV1H2.
_ENTRY_TAG, _ENTRY_REST = "^[A-Z0-9]{1,5}_$", r"^[A-Z0-9]{1,5}(?:\||$)"
# Tags of further parts of the same accession, as in sp|rev_P1|rev_N.
_LATER_PREFIX = rf"(?i)(\|)(?:(?:{_WORDS_IN_FRONT})[_:.~-]{{1,3}}|#{{2,4}})"
_LATER_SUFFIX = rf"(?i)(?:[_:.~-]{{1,3}}(?:{_WORDS})_?|#{{2,4}})(\||$)"

_MINIMUM_NUMBER = 10
_SMALL_SHARE = 0.05
_LARGE_SHARE = 0.2
_LONG = 30
_SHORTEST = 10
_DIFFERENT = 0.4
"""Minimum fraction of positions at which a mirror image differs from its target.

It is 94 % for a reversed protein, about 75 % for reversed tryptic peptides, and small for near copies.
"""
_WORD = 4
_BACKWARD = 0.2
"""Minimum fraction of the words of a mirror image that occur reversed in its target.

It is 1 for a reversed protein, more than a half for reversed tryptic peptides, and n / 160,000 for a shuffled protein of n residues.
"""
_TABLE_BITS = 24
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SAMPLE = 1000
_BLOCK = 1 << 20
_RESIDUES = 1 << 18
_MAXIMUM_CHARACTERS = 40
_MAXIMUM_TAGS = 50
_REVERSED_ORDER = 0.2
_SEED = 20141


class DecoyTag(NamedTuple):
    """Prefix or suffix of the accessions of decoys, or of a part of each accession.

    Attributes
    ----------
    text : str
        Prefix or suffix.
    is_suffix : bool
        True for a suffix.
    """

    text: str
    is_suffix: bool

    @property
    def parameter(self) -> str:
        """Parameter setting that selects decoys by this tag."""
        return f"decoy_suffix={self.text}" if self.is_suffix else f"decoy_prefix={self.text}"

    @property
    def pattern(self) -> str:
        """Regular expression that matches the accessions with this tag."""
        return decoy_pattern("" if self.is_suffix else self.text, self.text if self.is_suffix else "")


@dataclass(frozen=True, eq=False)
class DatabaseDecoys:
    """Decoys found among n proteins.

    Attributes
    ----------
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    n_by_name, n_by_sequence : int
        Number of decoys identified by name, and by sequence.
    tag : DecoyTag, optional
        Tag that all decoys and no other proteins have; None if there is none.
    example : ProteinRow
        Index of one decoy.
    """

    is_decoy: NDArray[np.bool_]
    n_by_name: int
    n_by_sequence: int
    tag: DecoyTag | None
    example: ProteinRow

    def __len__(self) -> int:
        return self.n_by_name + self.n_by_sequence


def decoy_pattern(prefix: str, suffix: str = "") -> str:
    r"""Return the regular expression of the accessions of a database's own decoys.

    Parameters
    ----------
    prefix : str
        Prefix of the accession, or of a part of it between bars.
    suffix : str
        Suffix of the accession, or of a part of it; used instead of `prefix` unless empty.

    Examples
    --------
    >>> decoy_pattern("rev_")
    '(?:^|\\|)rev_'
    >>> [bool(re.search(decoy_pattern("REV_"), name)) for name in ("sp|REV_P04618|X", "sp|P04618|REV_HV1H2", "sp|P04618|REV_REV_HV1H2")]
    [True, False, True]
    """
    if suffix:
        return rf"{re.escape(suffix)}(?:\||$)"
    text = re.escape(prefix)
    if not re.match(_ENTRY_TAG, prefix):
        return rf"(?:^|\|){text}"
    # RE2 has no look-ahead: match characters after the tag that cannot be the rest of an entry name.
    return rf"^(?:[^|]*\|)?{text}|^[^|]*\|.*\|{text}(?:[A-Z0-9]{{0,5}}[^A-Z0-9|]|[A-Z0-9]{{6}})"


def are_tagged(accessions: Texts, prefix: str, suffix: str = "") -> NDArray[np.bool_]:
    """Return True for each accession that matches `decoy_pattern`.

    Parameters
    ----------
    accessions : Texts
        Accessions of n proteins.
    prefix, suffix : str
        Prefix or suffix of decoys, see `decoy_pattern`; if both are empty, no accession matches.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for decoys.
    """
    return _matches(accessions, decoy_pattern(prefix, suffix)) if prefix or suffix else np.zeros(len(accessions), np.bool_)


def without_tag(accessions: Texts, prefix: str, suffix: str = "") -> list[pa.Array]:
    """Return the accessions without the prefix or suffix of decoys.

    Parameters
    ----------
    accessions : Texts
        Accessions of n proteins.
    prefix, suffix : str
        Prefix or suffix of decoys, see `decoy_pattern`.

    Returns
    -------
    list of Array of string, length n
        Three variants: without the tag of the whole accession, of its second part between bars, and of all its parts.
    """
    text = re.escape(suffix or prefix)
    if suffix:
        ways = ((f"{text}$", ""), (rf"^([^|]*\|[^|]*){text}(\||$)", r"\1\2"), (rf"{text}(\||$)", r"\1"))
    else:
        ways = ((f"^{text}", ""), (rf"^([^|]*\|){text}", r"\1"), (rf"(^|\|){text}", r"\1"))
    column = accessions.arrow()
    return [pa.compute.replace_substring_regex(column, pattern=pattern, replacement=replacement) for pattern, replacement in ways]


def targets_of_decoys(targets: pa.Array, decoys: Texts, prefix: str, suffix: str = "") -> NDArray[np.int64]:
    """Return the index of the target of each decoy by accession, (n,) int64; -1 without one.

    Parameters
    ----------
    targets : Array of string, length m
        Accessions of targets.
    decoys : Texts
        Accessions of n decoys.
    prefix, suffix : str
        Prefix or suffix of decoys, see `decoy_pattern`.
    """
    result = np.full(len(decoys), -1, np.int64)
    for stripped in without_tag(decoys, prefix, suffix):
        target = pa.compute.fill_null(pa.compute.index_in(stripped, value_set=targets), -1).to_numpy().astype(np.int64)
        result = np.where(result < 0, target, result)
    return result


def find_database_decoys(
    residues: NDArray[np.uint8], offsets: NDArray[np.int64], accessions: Texts, *, n_database: int | None = None, prefix: str = ""
) -> DatabaseDecoys | None:
    """Find the decoys among n proteins.

    Parameters
    ----------
    residues : ndarray of uint8, shape (total,)
        Residues of all proteins in ASCII capitals.
    offsets : ndarray of int64, shape (n + 1,)
        Protein i is ``residues[offsets[i]:offsets[i + 1]]``.
    accessions : Texts
        Accessions of the n proteins.
    n_database : int, optional
        Number of proteins of the database, which come first; contaminants follow. Fractions are also calculated for the database alone and
        for the contaminants alone. By default, there are no contaminants.
    prefix : str
        Prefix that marks a decoy even if only one protein has it.

    Returns
    -------
    DatabaseDecoys or None
        Decoys; None if there are no more than expected by chance.
    """
    source = np.zeros(len(accessions), np.int64)
    source[len(accessions) if n_database is None else n_database :] = 1
    is_named, tags = _named(accessions, source)
    if prefix and (begins := _matches(accessions, f"^{re.escape(prefix)}")).any():
        is_named, tags = is_named | begins, [DecoyTag(prefix, is_suffix=False), *tags]
    # Compare only the other proteins: a named decoy is the mirror image of its target anyway.
    others = np.flatnonzero(~is_named)
    residues, offsets = (residues, offsets) if len(others) == len(is_named) else take_segments(residues, offsets, others)
    mirrors, pairs = _mirrors(residues, offsets)
    if not _matter(mirrors, np.diff(offsets), source[others]):
        mirrors = mirrors[:0]
    is_decoy = is_named.copy()
    is_decoy[others[mirrors]] = True
    if not is_decoy.any():
        return None
    if not is_named.any():
        tags = _find_pair_tags(*(accessions.take(others[rows[:_SAMPLE]]).strings() for rows in pairs))
    common_tag = next((tag for tag in tags[:_MAXIMUM_TAGS] if np.array_equal(_matches(accessions, tag.pattern), is_decoy)), None)
    return DatabaseDecoys(is_decoy, int(np.count_nonzero(is_named)), len(mirrors), common_tag, ProteinRow(int(np.argmax(is_decoy))))


def _matches(accessions: Texts, pattern: str) -> NDArray[np.bool_]:
    matches = np.zeros(len(accessions), np.bool_)
    for first in range(0, len(accessions), _BLOCK):
        matches[first : first + _BLOCK] = _truths(pa.compute.match_substring_regex(accessions[first : first + _BLOCK].arrow(), pattern))
    return matches


def _truths(column: pa.BooleanArray) -> NDArray[np.bool_]:
    truths: NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return truths


class _Tagged(NamedTuple):
    """Proteins whose accessions have a tag, m of them.

    Attributes
    ----------
    protein : ndarray of int64, shape (m,)
        Indices of the proteins.
    tag : ndarray of str, shape (m,)
        Tag of each protein: ``<`` and a prefix, or ``>`` and a suffix.
    stripped : ndarray of object, shape (m,)
        Accession without the tag.
    all_stripped : ndarray of object, shape (m,)
        Accession without the tag in any of its parts.
    is_unsure : ndarray of bool, shape (m,)
        True if the accession may be an entry name of UniProt.
    """

    protein: NDArray[np.int64]
    tag: NDArray[np.str_]
    stripped: NDArray[np.object_]
    all_stripped: NDArray[np.object_]
    is_unsure: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> _Tagged:
        """Return the proteins in the rows `rows`."""
        return _Tagged(self.protein[rows], self.tag[rows], self.stripped[rows], self.all_stripped[rows], self.is_unsure[rows])


def _tagged(accessions: Texts, *, is_suffix: bool) -> Iterator[_Tagged]:
    """Yield the proteins whose accessions have a tag, in several parts."""
    pattern, later = (_SUFFIX, _LATER_SUFFIX) if is_suffix else (_PREFIX, _LATER_PREFIX)
    for first in range(0, len(accessions), _BLOCK):
        block = accessions[first : first + _BLOCK]
        protein = np.flatnonzero(_matches(block, pattern))
        before, tag, rest = pa.compute.extract_regex(block.take(protein).arrow(), pattern).flatten()
        stripped = pa.compute.binary_join_element_wise(before, rest, "")
        all_stripped = pa.compute.replace_substring_regex(stripped, pattern=later, replacement=r"\1")
        is_entry = np.zeros(len(protein), np.bool_)
        if not is_suffix:
            is_entry = _truths(pa.compute.match_substring_regex(tag, _ENTRY_TAG))
            is_entry &= _truths(pa.compute.match_substring_regex(rest, _ENTRY_REST))
        n_bars = pa.compute.count_substring(before, "|").to_numpy(zero_copy_only=False)
        marked = pa.compute.binary_join_element_wise(">" if is_suffix else "<", tag, "").to_numpy(zero_copy_only=False).astype(np.str_)
        first_stripped, every_stripped = (column.to_numpy(zero_copy_only=False) for column in (stripped, all_stripped))
        may_be_decoy = np.flatnonzero(~is_entry | (n_bars < 2))
        yield _Tagged(protein + first, marked, first_stripped, every_stripped, is_entry & (n_bars == 0)).take(may_be_decoy)


def _named(accessions: Texts, source: NDArray[np.int64]) -> tuple[NDArray[np.bool_], list[DecoyTag]]:
    """Return True for each protein that its accession identifies as a decoy, and the tags of these proteins, the most frequent first."""
    is_named = np.zeros(len(accessions), np.bool_)
    blocks = [*_tagged(accessions, is_suffix=False), *_tagged(accessions, is_suffix=True)]
    if not any(len(block.protein) for block in blocks):
        return is_named, []
    every = _Tagged(*(np.concatenate(columns) for columns in zip(*blocks, strict=True)))
    # Select one tag per protein: certain tags are preferred, then prefixes.
    order = np.argsort(every.is_unsure, kind="stable")
    tagged = every.take(order[np.unique(every.protein[order], return_index=True)[1]])
    is_tagged = row_mask(len(accessions), tagged.protein)
    targets = accessions.take(np.flatnonzero(~is_tagged)).arrow()
    has_target = np.zeros(len(tagged.protein), np.bool_)
    for names in (tagged.stripped, tagged.all_stripped):
        has_target |= _truths(pa.compute.is_in(pa.array(names, pa.string()), value_set=targets))
    n_paired = int(np.count_nonzero(has_target))
    are_paired = n_paired >= _MINIMUM_NUMBER or (n_paired > 0 and _largest_share(tagged.protein[has_target], source) >= _SMALL_SHARE)
    _, tag_number, counts = np.unique(tagged.tag, return_inverse=True, return_counts=True)
    for number in np.argsort(-counts, kind="stable")[:_MAXIMUM_TAGS].tolist():
        carries = tag_number == number
        sure = tagged.protein[carries & ~tagged.is_unsure]
        if len(sure) >= _MINIMUM_NUMBER and _largest_share(sure, source) >= _SMALL_SHARE:
            is_named[sure] = True
        elif are_paired and 2 * np.count_nonzero(carries & has_target) >= np.count_nonzero(carries):
            is_named[tagged.protein[carries]] = True
        if are_paired:
            is_named[tagged.protein[carries & has_target]] = True
    frequent = Counter(tagged.tag[is_named[tagged.protein]].tolist()).most_common()
    return is_named, [DecoyTag(text[1:], is_suffix=text[0] == ">") for text, _ in frequent]


def _largest_share(protein: NDArray[np.int64], source: NDArray[np.int64]) -> float:
    """Return the largest of three fractions: of all proteins, of the database and of the contaminants, the fraction that is in `protein`.

    `protein` are indices of proteins. `source` is 0 for each protein of the database, and 1 for each contaminant.
    """
    counts, totals = (np.bincount(source, minlength=2) for source in (source[protein], source))
    return float(max(len(protein) / len(source), *(counts / np.maximum(totals, 1))))


def _mirrors(residues: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], ...]]:
    """Return the proteins that are mirror images of others, and the pairs of a mirror image and its target.

    Proteins are compared as a whole and without an initial methionine, which some programs leave in place or remove.
    """
    starts, lengths = offsets[:-1], np.diff(offsets)
    weight = np.random.default_rng(_SEED).integers(1 << 64, size=256, dtype=np.uint64)
    key = _sums(weight, residues, offsets)
    begins_with_m = np.zeros(len(starts), np.bool_)
    begins_with_m[lengths > 0] = residues[starts[lengths > 0]] == ord("M")
    whole, clipped = np.flatnonzero(lengths >= _SHORTEST), np.flatnonzero(begins_with_m & (lengths > _SHORTEST))
    protein = np.concatenate((whole, clipped))
    is_clipped = np.repeat([0, 1], [len(whole), len(clipped)])
    key = np.concatenate((key[whole], key[clipped] - weight[ord("M")]))
    order = np.lexsort((protein, key))
    protein, key = protein[order], key[order]
    begin, length = starts[protein] + is_clipped[order], lengths[protein] - is_clipped[order]
    is_first = is_group_start(key)
    group = np.cumsum(is_first) - 1
    first = np.flatnonzero(is_first)[group]
    row = np.flatnonzero(~is_first & (length == length[first]))
    row = row[_are_mirrored(residues, begin[first[row]], begin[row], length[row])]
    target, mirror = protein[first[row]], protein[row]
    # The first protein of a pair is the target unless decoys come first, which initial methionines show: few mirror images have one.
    n_more = np.count_nonzero(begins_with_m[mirror]) - np.count_nonzero(begins_with_m[target])
    if n_more <= _REVERSED_ORDER * len(row):
        return np.unique(mirror), (mirror, target)
    is_mirrored = row_mask(len(first), first[row])
    is_later = row_mask(len(first), row)
    return np.unique(protein[is_mirrored[first] & ~is_later]), (target, mirror)


def _sums(weight: NDArray[np.uint64], residues: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the sum, modulo 2**64, of the weights of the residues of each protein, (n,); proteins with equal counts have equal sums."""
    sums = np.zeros(len(offsets) - 1, np.uint64)
    for batch in batch_segments(offsets[:-1], _RESIDUES):
        start, stop = int(offsets[batch.start]), int(offsets[batch.stop])
        proteins = batch.start + np.flatnonzero(np.diff(offsets[batch.start : batch.stop + 1]))
        if len(proteins):
            # `take` with clipping in batches that fit the CPU cache needs a third of the time of weight[residues].
            weights = np.take(weight, residues[start:stop].astype(np.intp), mode="clip")
            sums[proteins] = np.add.reduceat(weights, offsets[proteins] - start)
    return sums


def _are_mirrored(
    residues: NDArray[np.uint8], first: NDArray[np.int64], second: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return True for each pair of segments that are mirror images, and not copies, of each other; their counts of residues are equal.

    `first` and `second` are the positions at which the segments of each pair begin; both have the length `length`.
    """
    are_mirrored = np.zeros(len(length), np.bool_)
    for batch in batch_segments(segment_offsets(length)[:-1], _BLOCK):
        begin, end = first[batch], first[batch] + length[batch]
        offsets, first_index = ranges(begin, end)
        second_residues = residues[first_index + np.repeat(second[batch] - begin, length[batch])]
        n_different = np.add.reduceat(residues[first_index] != second_residues, offsets[:-1], dtype=np.int64)
        n_unmirrored = np.add.reduceat(
            residues[np.repeat(begin + end - 1, length[batch]) - first_index] != second_residues, offsets[:-1], dtype=np.int64
        )
        differ = n_different >= _DIFFERENT * length[batch]
        are_mirrored[batch] = differ & (n_unmirrored == 0)
        unsure = batch.start + np.flatnonzero(differ & (n_unmirrored > 0) & (length[batch] >= _LONG))
        if len(unsure):
            are_mirrored[unsure] = _share_backward_words(residues, first[unsure], second[unsure], length[unsure])
    return are_mirrored


def _share_backward_words(
    residues: NDArray[np.uint8], first: NDArray[np.int64], second: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return True for each pair if at least the fraction `_BACKWARD` of the words of one segment occurs reversed in the other, (pairs,)."""

    def words(begin: NDArray[np.int64], order: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the hashes of all words of the segments that begin at `begin`, and the offsets of the segments (CSR).

        `order` is the order in which the residues of a word are read.
        """
        offsets, index = ranges(begin, begin + length - (_WORD - 1))
        word: NDArray[np.uint64] = np.repeat(np.arange(len(begin), dtype=np.uint64), np.diff(offsets))
        for position in order:
            word = (word << np.uint64(5)) | (residues[index + position] & 31).astype(np.uint64)
        return ((word * _FACTOR) >> np.uint64(64 - _TABLE_BITS)).astype(np.int64), offsets

    # A hash table is faster than sorted words; at most one word in sixteen is found by chance in its 16 million entries.
    is_present = row_mask(1 << _TABLE_BITS, words(first, tuple(range(_WORD)))[0])
    reversed_words, offsets = words(second, tuple(reversed(range(_WORD))))
    return np.add.reduceat(is_present[reversed_words], offsets[:-1], dtype=np.int64) >= _BACKWARD * np.diff(offsets)


def _matter(mirrors: NDArray[np.int64], lengths: NDArray[np.int64], source: NDArray[np.int64]) -> bool:
    """Return True if the mirror images are so numerous that they distort error rates (see the module description)."""
    if not len(mirrors):
        return False
    is_long = lengths[mirrors] >= _LONG
    shares = [2 * max(len(rows) / len(lengths), int(lengths[rows].sum()) / int(lengths.sum())) for rows in (mirrors, mirrors[is_long])]
    source_share = _largest_share(mirrors, source)
    return (len(mirrors) >= _MINIMUM_NUMBER and max(shares[0], source_share) >= _SMALL_SHARE) or shares[1] >= _LARGE_SHARE


def _find_pair_tags(mirrors: list[str], targets: list[str]) -> list[DecoyTag]:
    """Return the tags, most frequent first, by which accessions of mirror images (or parts of them) differ from those of their targets."""
    counts = Counter[DecoyTag]()
    for mirror, target in zip(mirrors, targets, strict=True):
        parts = list(zip(mirror.split("|"), target.split("|"), strict=False))
        # Compare the whole accessions, then their parts.
        for name, plain in ((mirror, target), *parts):
            if name != plain and name.endswith(plain):
                counts[DecoyTag(name.removesuffix(plain), is_suffix=False)] += 1
            elif name != plain and name.startswith(plain):
                counts[DecoyTag(name.removeprefix(plain), is_suffix=True)] += 1
    return [tag for tag, _ in counts.most_common() if len(tag.text) <= _MAXIMUM_CHARACTERS]
