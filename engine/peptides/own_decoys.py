"""Decoys that a database already holds: found by their names, and by sequences of the same residues in another order.

Reversing a reversed protein gives the target back, so that a search that makes decoys of decoys compares targets with themselves: nearly
every match is a target, and every error rate is too low. If a part f of all proteins is a target or its mirror, a false match is a target
with the chance f + (1 - f) / 2 and a decoy with (1 - f) / 2, so that 1 % is truly (1 + f) / (1 - f) %: 1.1 % for f = 5 %, 1.5 % for 20 %.
From these two come the limits below.

Names. A tag is one of the words that programs of the field use, with what separates it from the accession, in front or at the end of the
accession or of a part of it (``rev_sp|P1|N``, ``sp|rev_P1|N``, ``sp|P1_REVERSED|N``, ``##P1``). Real names have such words too:
``sp|P04618|REV_HV1H2`` is the protein Rev of HIV. So a tag counts only if `_FEWEST` proteins and `_SMALL_SHARE` of the database, or of the
contaminants, carry it, or if the name without it is the name of another protein, for `_FEWEST` proteins or `_SMALL_SHARE`. UniProt's entry
names behind two bars never count, and as whole accessions only with such another protein.

Sequences. Reversal keeps the counts of residues, also if the first methionine or the residues at which an enzyme cuts stay in their places.
Two natural proteins of `_LONG` residues or more have practically never the same counts of all residues; those that do are near copies of
each other, with two residues exchanged. So proteins with the same counts that differ at two fifths of their places, where a fifth of the
words of four residues is found backward in the other, are a target and its mirror, whatever the enzyme. Of shorter ones, down to
`_SHORTEST`, only the exact mirror counts. Shuffled proteins are not mirrors: a search takes them as proteins that are not in the sample,
its error rates stay true, and entrapment needs them. Only their names show that they are decoys.

A few mirrors are an accident that changes nothing; they matter if they are `_FEWEST` and with their targets `_SMALL_SHARE` of all proteins
or residues, or of the contaminants, or, long ones, `_LARGE_SHARE` however few they are. No pair was found in 15 natural databases (101,000
proteins).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, offsets_of, pieces, ranges, take_runs
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.row_numbers import ProteinRow

__all__ = ["DecoyTag", "OwnDecoys", "are_tagged", "decoy_pattern", "find_own_decoys", "without_tag"]

_WORDS = "decoy|reversed|reverse|rev|xxx|shuffled|shuffle|shuf|scrambled"
# Only in front: unplaced contigs of genomes end with _random.
_WORDS_IN_FRONT = f"{_WORDS}|random|rnd"
_TAG_IN_FRONT = rf"#{{2,4}}(?:(?:{_WORDS_IN_FRONT})#{{1,4}})?|(?:{_WORDS_IN_FRONT})(?:[_:.~-]{{1,3}}|\|)"
_PREFIX = rf"(?i)^(?P<before>(?:.*?\|)??)(?P<tag>{_TAG_IN_FRONT})(?P<rest>.*)$"
_SUFFIX = rf"(?i)^(?P<before>.*?)(?P<tag>[_:.~-]{{1,3}}(?:{_WORDS})_?|#{{2,4}})(?P<rest>(?:\|.*)?)$"
# A tag like REV_ before up to five capitals and digits makes an entry name of UniProt, as REV_HV1H2.
_ENTRY_TAG, _ENTRY_REST = "^[A-Z0-9]{1,5}_$", r"^[A-Z0-9]{1,5}(?:\||$)"
# Tags of later parts, as of sp|rev_P1|rev_N, which belong to the same decoy.
_LATER_PREFIX = rf"(?i)(\|)(?:(?:{_WORDS_IN_FRONT})[_:.~-]{{1,3}}|#{{2,4}})"
_LATER_SUFFIX = rf"(?i)(?:[_:.~-]{{1,3}}(?:{_WORDS})_?|#{{2,4}})(\||$)"

_FEWEST = 10
_SMALL_SHARE = 0.05
_LARGE_SHARE = 0.2
_LONG = 30
_SHORTEST = 10
_DIFFERENT = 0.4
"""Part of the places at which a mirror differs from its target: a reversed protein differs at 94 %, one whose tryptic stretches are
reversed at some 75 %, near copies with exchanged residues at a few places."""
_WORD = 4
_BACKWARD = 0.2
"""Part of the words of a mirror that are backward in its target: 1 of a reversed protein, above one half of one whose tryptic stretches are
reversed, and of a shuffled protein of n residues n / 160,000."""
_TABLE_BITS = 24
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SAMPLE = 1000
_BLOCK = 1 << 20
_RESIDUES = 1 << 18
_MOST_LETTERS = 40
_MOST_TAGS = 50
_REVERSED_ORDER = 0.2
_SEED = 20141


class DecoyTag(NamedTuple):
    """Text that names decoys: in front of an accession or of a part of it, or at its end."""

    text: str
    is_suffix: bool

    @property
    def parameter(self) -> str:
        """The parameter that names it."""
        return f"decoy_suffix={self.text}" if self.is_suffix else f"decoy_prefix={self.text}"

    @property
    def pattern(self) -> str:
        """Regular expression of accessions that carry it."""
        return decoy_pattern("" if self.is_suffix else self.text, self.text if self.is_suffix else "")


@dataclass(frozen=True, eq=False)
class OwnDecoys:
    """Decoys among n proteins.

    Attributes
    ----------
    is_decoy : (n,) bool.
    n_by_name, n_by_sequence : number of those that their name and that their sequence shows.
    tag : the tag that all of them carry, and no other protein; None if there is no such tag.
    example : number of a decoy.
    """

    is_decoy: NDArray[np.bool_]
    n_by_name: int
    n_by_sequence: int
    tag: DecoyTag | None
    example: ProteinRow

    def __len__(self) -> int:
        return self.n_by_name + self.n_by_sequence


def decoy_pattern(prefix: str, suffix: str = "") -> str:
    """Return the regular expression of the accessions of decoys that a database brings.

    Parameters
    ----------
    prefix : text in front of the accession, or of a part of it between bars. suffix : text at the end of either; used in place of `prefix`
        unless it is empty.

    Examples
    --------
    >>> decoy_pattern("rev_")
    '(?:^|\\\\|)rev_'
    >>> [bool(re.search(decoy_pattern("REV_"), name)) for name in ("sp|REV_P04618|X", "sp|P04618|REV_HV1H2", "sp|P04618|REV_REV_HV1H2")]
    [True, False, True]
    """
    if suffix:
        return rf"{re.escape(suffix)}(?:\||$)"
    text = re.escape(prefix)
    if not re.match(_ENTRY_TAG, prefix):
        return rf"(?:^|\|){text}"
    # RE2 has no look-ahead: behind the tag comes something that is not the rest of an entry name.
    return rf"^(?:[^|]*\|)?{text}|^[^|]*\|.*\|{text}(?:[A-Z0-9]{{0,5}}[^A-Z0-9|]|[A-Z0-9]{{6}})"


def are_tagged(accessions: Texts, prefix: str, suffix: str = "") -> NDArray[np.bool_]:
    """Return (n,) bool, the accessions that `decoy_pattern` finds; none if both texts are empty."""
    return _matches(accessions, decoy_pattern(prefix, suffix)) if prefix or suffix else np.zeros(len(accessions), np.bool_)


def without_tag(accessions: Texts, prefix: str, suffix: str = "") -> list[pa.Array]:
    """Return the accessions without the tag, in three ways: at the accession, at its second part, and at all parts."""
    text = re.escape(suffix or prefix)
    if suffix:
        ways = ((f"{text}$", ""), (rf"^([^|]*\|[^|]*){text}(\||$)", r"\1\2"), (rf"{text}(\||$)", r"\1"))
    else:
        ways = ((f"^{text}", ""), (rf"^([^|]*\|){text}", r"\1"), (rf"(^|\|){text}", r"\1"))
    column = accessions.arrow()
    return [pa.compute.replace_substring_regex(column, pattern=pattern, replacement=replacement) for pattern, replacement in ways]


def find_own_decoys(
    residues: NDArray[np.uint8], offsets: NDArray[np.int64], accessions: Texts, *, n_database: int | None = None, prefix: str = ""
) -> OwnDecoys | None:
    """Find the decoys among n proteins; None if there are no more than chance explains.

    Parameters
    ----------
    residues, offsets : (total,) uint8 capitals and (n + 1,) int64.
    accessions : of the n proteins.
    n_database : proteins of the database, which come first; those of contaminants follow, whose share is computed separately too.
    prefix : text in front of accessions that names a decoy even if only one protein carries it.
    """
    of_source = np.zeros(len(accessions), np.int64)
    of_source[len(accessions) if n_database is None else n_database :] = 1
    is_named, tags = _named(accessions, of_source)
    if prefix and (begins := _matches(accessions, f"^{re.escape(prefix)}")).any():
        is_named, tags = is_named | begins, [DecoyTag(prefix, is_suffix=False), *tags]
    # Mirrors among the others only: a named decoy is the mirror of its target anyway.
    others = np.flatnonzero(~is_named)
    residues, offsets = (residues, offsets) if len(others) == len(is_named) else take_runs(residues, offsets, others)
    mirrors, pairs = _mirrors(residues, offsets)
    if not _matter(mirrors, np.diff(offsets), of_source[others]):
        mirrors = mirrors[:0]
    is_decoy = is_named.copy()
    is_decoy[others[mirrors]] = True
    if not is_decoy.any():
        return None
    if not is_named.any():
        tags = _tags_of_pairs(*(accessions.take(others[some[:_SAMPLE]]).strings() for some in pairs))
    of_all = next((tag for tag in tags[:_MOST_TAGS] if np.array_equal(_matches(accessions, tag.pattern), is_decoy)), None)
    return OwnDecoys(is_decoy, int(np.count_nonzero(is_named)), len(mirrors), of_all, ProteinRow(int(np.argmax(is_decoy))))


def _matches(accessions: Texts, pattern: str) -> NDArray[np.bool_]:
    found = np.zeros(len(accessions), np.bool_)
    for first in range(0, len(accessions), _BLOCK):
        found[first : first + _BLOCK] = _truths(pa.compute.match_substring_regex(accessions[first : first + _BLOCK].arrow(), pattern))
    return found


def _truths(column: pa.BooleanArray) -> NDArray[np.bool_]:
    truths: NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return truths


class _Tagged(NamedTuple):
    """Proteins whose accession carries a tag.

    `protein` : numbers. `tag` : behind ``<`` if it is in front, behind ``>`` if it is at the end. `stripped` : accession without the tag.
    `all_stripped` : without those of later parts too. `is_unsure` : the accession may be an entry name of UniProt.
    """

    protein: NDArray[np.int64]
    tag: NDArray[np.str_]
    stripped: NDArray[np.object_]
    all_stripped: NDArray[np.object_]
    is_unsure: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> _Tagged:
        """Return some rows."""
        return _Tagged(self.protein[rows], self.tag[rows], self.stripped[rows], self.all_stripped[rows], self.is_unsure[rows])


def _tagged(accessions: Texts, *, is_suffix: bool) -> Iterator[_Tagged]:
    """The accessions that carry a tag, in blocks."""
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
        one, both = (column.to_numpy(zero_copy_only=False) for column in (stripped, all_stripped))
        may_be_decoy = np.flatnonzero(~is_entry | (n_bars < 2))
        yield _Tagged(protein + first, marked, one, both, is_entry & (n_bars == 0)).take(may_be_decoy)


def _named(accessions: Texts, of_source: NDArray[np.int64]) -> tuple[NDArray[np.bool_], list[DecoyTag]]:
    """The proteins whose name shows a decoy, and the tags that they carry, most frequent first."""
    is_named = np.zeros(len(accessions), np.bool_)
    blocks = [*_tagged(accessions, is_suffix=False), *_tagged(accessions, is_suffix=True)]
    if not any(len(block.protein) for block in blocks):
        return is_named, []
    every = _Tagged(*(np.concatenate(columns) for columns in zip(*blocks, strict=True)))
    # One tag for each protein: one that is sure before another, one in front before one at the end.
    order = np.argsort(every.is_unsure, kind="stable")
    tagged = every.take(order[np.unique(every.protein[order], return_index=True)[1]])
    is_tagged = np.zeros(len(accessions), np.bool_)
    is_tagged[tagged.protein] = True
    targets = accessions.take(np.flatnonzero(~is_tagged)).arrow()
    has_target = np.zeros(len(tagged.protein), np.bool_)
    for names in (tagged.stripped, tagged.all_stripped):
        has_target |= _truths(pa.compute.is_in(pa.array(names, pa.string()), value_set=targets))
    n_paired = int(np.count_nonzero(has_target))
    are_paired = n_paired >= _FEWEST or (n_paired > 0 and _largest_share(tagged.protein[has_target], of_source) >= _SMALL_SHARE)
    _, of_tag, counts = np.unique(tagged.tag, return_inverse=True, return_counts=True)
    for number in np.argsort(-counts, kind="stable")[:_MOST_TAGS].tolist():
        carries = of_tag == number
        sure = tagged.protein[carries & ~tagged.is_unsure]
        if len(sure) >= _FEWEST and _largest_share(sure, of_source) >= _SMALL_SHARE:
            is_named[sure] = True
        elif are_paired and 2 * np.count_nonzero(carries & has_target) >= np.count_nonzero(carries):
            is_named[tagged.protein[carries]] = True
        if are_paired:
            is_named[tagged.protein[carries & has_target]] = True
    frequent = Counter(tagged.tag[is_named[tagged.protein]].tolist()).most_common()
    return is_named, [DecoyTag(text[1:], is_suffix=text[0] == ">") for text, _ in frequent]


def _largest_share(protein: NDArray[np.int64], of_source: NDArray[np.int64]) -> float:
    """Share of these proteins among all, or among those of one source, whichever is larger."""
    counts, totals = (np.bincount(source, minlength=2) for source in (of_source[protein], of_source))
    return float(max(len(protein) / len(of_source), *(counts / np.maximum(totals, 1))))


def _mirrors(residues: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], ...]]:
    """Proteins that are mirrors of others, and pairs of a mirror and its target.

    A protein takes part as a whole, and without a methionine at its begin, which some programs leave where it is or leave out.
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
    is_first = np.append(True, key[1:] != key[:-1])[: len(key)]
    group = np.cumsum(is_first) - 1
    first = np.flatnonzero(is_first)[group]
    row = np.flatnonzero(~is_first & (length == length[first]))
    row = row[_are_mirrored(residues, begin[first[row]], begin[row], length[row])]
    target, mirror = protein[first[row]], protein[row]
    # The first of two is the target, but where decoys come first: most proteins begin with methionine, and few mirrors do.
    n_more = np.count_nonzero(begins_with_m[mirror]) - np.count_nonzero(begins_with_m[target])
    if n_more <= _REVERSED_ORDER * len(row):
        return np.unique(mirror), (mirror, target)
    is_mirrored = np.zeros(len(first), np.bool_)
    is_mirrored[first[row]] = True
    is_later = np.zeros(len(first), np.bool_)
    is_later[row] = True
    return np.unique(protein[is_mirrored[first] & ~is_later]), (target, mirror)


def _sums(weight: NDArray[np.uint64], residues: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """(n,) sums of the weights of the residues of each protein, modulo 2**64: equal for equal counts, whatever the order."""
    sums = np.zeros(len(offsets) - 1, np.uint64)
    for some in pieces(offsets[:-1], _RESIDUES):
        start, stop = int(offsets[some.start]), int(offsets[some.stop])
        proteins = some.start + np.flatnonzero(np.diff(offsets[some.start : some.stop + 1]))
        if len(proteins):
            # Clipped, and in pieces that fit the cache: a third of the time of weight[residues].
            weights = np.take(weight, residues[start:stop].astype(np.intp), mode="clip")
            sums[proteins] = np.add.reduceat(weights, offsets[proteins] - start)
    return sums


def _are_mirrored(
    residues: NDArray[np.uint8], one: NDArray[np.int64], other: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(pairs,) bool: stretches with the same counts of residues that are mirrors, not copies. `one`, `other` : where they begin."""
    found = np.zeros(len(length), np.bool_)
    for some in pieces(offsets_of(length)[:-1], _BLOCK):
        begin, end = one[some], one[some] + length[some]
        offsets, there = ranges(begin, end)
        here = residues[there + np.repeat(other[some] - begin, length[some])]
        n_different = np.add.reduceat(residues[there] != here, offsets[:-1], dtype=np.int64)
        n_unmirrored = np.add.reduceat(residues[np.repeat(begin + end - 1, length[some]) - there] != here, offsets[:-1], dtype=np.int64)
        differ = n_different >= _DIFFERENT * length[some]
        found[some] = differ & (n_unmirrored == 0)
        unsure = some.start + np.flatnonzero(differ & (n_unmirrored > 0) & (length[some] >= _LONG))
        if len(unsure):
            found[unsure] = _share_backward_words(residues, one[unsure], other[unsure], length[unsure])
    return found


def _share_backward_words(
    residues: NDArray[np.uint8], one: NDArray[np.int64], other: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(pairs,) bool: stretches in which `_BACKWARD` of the words of one are found backward in the other."""

    def words(begin: NDArray[np.int64], order: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Place in the table of each word of each pair, and offsets of the pairs."""
        offsets, there = ranges(begin, begin + length - (_WORD - 1))
        word: NDArray[np.uint64] = np.repeat(np.arange(len(begin), dtype=np.uint64), np.diff(offsets))
        for place in order:
            word = (word << np.uint64(5)) | (residues[there + place] & 31).astype(np.uint64)
        return ((word * _FACTOR) >> np.uint64(64 - _TABLE_BITS)).astype(np.int64), offsets

    # In place of sorted words: of a table of 16 million places so few are taken that one word in sixteen is there by chance.
    known = np.zeros(1 << _TABLE_BITS, np.bool_)
    known[words(one, tuple(range(_WORD)))[0]] = True
    asked, offsets = words(other, tuple(reversed(range(_WORD))))
    return np.add.reduceat(known[asked], offsets[:-1], dtype=np.int64) >= _BACKWARD * np.diff(offsets)


def _matter(mirrors: NDArray[np.int64], lengths: NDArray[np.int64], of_source: NDArray[np.int64]) -> bool:
    """True if there are so many mirrors that error rates are wrong, or that they are no accident."""
    if not len(mirrors):
        return False
    is_long = lengths[mirrors] >= _LONG
    shares = [2 * max(len(some) / len(lengths), int(lengths[some].sum()) / int(lengths.sum())) for some in (mirrors, mirrors[is_long])]
    of_one_source = _largest_share(mirrors, of_source)
    return (len(mirrors) >= _FEWEST and max(shares[0], of_one_source) >= _SMALL_SHARE) or shares[1] >= _LARGE_SHARE


def _tags_of_pairs(mirrors: list[str], targets: list[str]) -> list[DecoyTag]:
    """What the names of mirrors have more than those of their targets, in front or at the end of the first part that differs."""
    counts = Counter[DecoyTag]()
    for mirror, target in zip(mirrors, targets, strict=True):
        parts = list(zip(mirror.split("|"), target.split("|"), strict=False))
        for name, plain in ((mirror, target), *parts):
            if name != plain and name.endswith(plain):
                counts[DecoyTag(name.removesuffix(plain), is_suffix=False)] += 1
            elif name != plain and name.startswith(plain):
                counts[DecoyTag(name.removeprefix(plain), is_suffix=True)] += 1
    return [tag for tag, _ in counts.most_common() if len(tag.text) <= _MOST_LETTERS]
