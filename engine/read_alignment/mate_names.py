"""Names of mates (the two reads of a fragment): their tags, and pairs of reads found by name.

SAM gives both mates one name (specification, section 1.4: records with one QNAME come from one template). Files give them either one name
or names with a tag at the end: X/1 and X/2, X.1 and X.2 (SRA with --readids), X_1 and X_2, X/R1 and X/R2, X/f and X/r. Text after the first
blank, such as ``1:N:0`` of Casava 1.8, does not belong to the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, read_only, take_segments
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.spooling import release_pages

__all__ = ["Interleaving", "find_mates", "inspect_interleaving", "other_names", "template_names", "trimmed"]

_SEPARATORS = "/._-"
_PAIRS = (("1", "2"), ("R1", "R2"), ("r1", "r2"), ("f", "r"), ("F", "R"), ("fwd", "rev"), ("forward", "reverse"))
_TAGS = [tag.encode() for mark in _SEPARATORS for pair in _PAIRS for tag in (mark + pair[0], mark + pair[1])]
"""Tags by number; the numbers of the tags of two mates differ only in the last bit."""
_TAG_CODES = np.array([int.from_bytes(tag) for tag in _TAGS], np.int64)
_IS_SEPARATOR = np.isin(np.arange(256), np.frombuffer(_SEPARATORS.encode(), np.uint8))
_NO_TAG, _WITH_SLASH = -1, 2 * len(_PAIRS)
"""Tag number of names without a tag, and number of the first tag without a slash."""
_NAMES_OF_BATCH = 1 << 16
_NAMES_INSPECTED = 1 << 16
"""Number of names at the beginning of a file from which tags of interleaved mates are determined."""
_MINIMUM_INTERLEAVED = 0.9
"""Minimum fraction of reads next to their mate in a file that is probably interleaved."""


class _Tagged(NamedTuple):
    """Tags of n names: length of each tag in characters, 0 without a tag, and number of each tag, -1 without a tag, each (n,)."""

    length: NDArray[np.int64]
    number: NDArray[np.int64]


def _tagged(names: Texts) -> _Tagged:
    """Return the tags of names."""
    length, number = np.empty(len(names), np.int64), np.empty(len(names), np.int64)
    kernels.cpu.mate_names.find_tags(read_only(names.characters), names.offsets, _TAG_CODES, _IS_SEPARATOR, length, number)
    return _Tagged(length, number)


def trimmed(names: Texts, lengths: NDArray[np.int64]) -> Texts:
    """Return the beginnings of names.

    Parameters
    ----------
    names : Texts
        The n names.
    lengths : ndarray of int64, shape (n,)
        Number of characters to keep, at most the length of the name.

    Examples
    --------
    >>> trimmed(Texts.from_strings(["abc", "de"]), np.array([1, 2])).strings()
    ['a', 'de']
    """
    if np.array_equal(lengths, np.diff(names.offsets)):
        return names
    bounds = np.stack([names.offsets[:-1], names.offsets[:-1] + lengths], axis=1).ravel()
    return Texts(*take_segments(names.characters, np.append(bounds, names.offsets[-1:]), 2 * np.arange(len(names))))


def _are_same(ones: Texts, others: Texts, lengths: NDArray[np.int64], other_lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for each pair of strings whose beginnings, of the given lengths, are equal.

    Parameters
    ----------
    ones, others : Texts
        Strings to compare, n each.
    lengths, other_lengths : ndarray of int64, shape (n,)
        Number of characters of each beginning; beginnings of different lengths are not equal.
    """
    same = np.empty(len(ones), np.bool_)
    kernels.cpu.mate_names.are_same(
        read_only(ones.characters), ones.offsets[:-1], lengths, read_only(others.characters), others.offsets[:-1], other_lengths, same
    )
    return same


def _are_tags(numbers: NDArray[np.int64], kind: int) -> NDArray[np.bool_]:
    """Return True for each tag number whose tag has a slash or belongs to the pair of tags `kind`."""
    are_tags: NDArray[np.bool_] = (numbers >= 0) & ((numbers < _WITH_SLASH) | (numbers >> 1 == kind))
    return are_tags


def _are_mates(ones: Texts, others: Texts, kind: int | None = None) -> NDArray[np.bool_]:
    """Return True for each pair of names that are names of mates.

    Such names are equal, or equal except for tags that form a pair, such as ``/1`` and ``/2``. If `kind` is given, only tags that
    `_are_tags` accepts are considered as tags.
    """
    tags, of_others = _tagged(ones), _tagged(others)
    is_pair = (tags.number >= 0) & (tags.number ^ 1 == of_others.number)
    if kind is not None:
        is_pair &= _are_tags(tags.number, kind)
    cut = (np.diff(names.offsets) - np.where(is_pair, tagged.length, 0) for names, tagged in ((ones, tags), (others, of_others)))
    return _are_same(ones, others, *cut)


def _common_tag(names: Texts, first: int = 0, step: int = 1) -> int:
    """Return the number of the tag that more than half of the names have, or -1.

    Parameters
    ----------
    names : Texts
        Names to inspect.
    first, step : int
        Only every `step`-th name from index `first` is inspected.
    """
    counts = np.zeros(len(_TAGS) + 1, np.int64)
    for k, chunk in enumerate(_batches(names)):
        numbers = _tagged(chunk).number[(first - k * _NAMES_OF_BATCH) % step :: step]
        counts += np.bincount(numbers + 1, minlength=len(counts))
    most = int(counts.argmax())
    return most - 1 if 2 * counts[most] > counts.sum() else _NO_TAG


def _classify_tags(first: int, other: int) -> int:
    """Return the number of the pair of tags that consists of `first` and `other`, the common tags of two files; -1 without such a pair.

    Both files need a common tag. A tag that is common in one file only may be a number: X_1 may be the first of several numbered reads.
    """
    return first >> 1 if first >= 0 and first ^ 1 == other else _NO_TAG


def _batches(names: Texts) -> Iterator[Texts]:
    """Yield names in batches; after each batch, free the memory of names mapped from a file."""
    for first in range(0, len(names), _NAMES_OF_BATCH):
        yield names[first : first + _NAMES_OF_BATCH]
        release_pages(names.characters)


def other_names(ones: Texts, others: Texts) -> NDArray[np.int64]:
    """Return, ascending, the rows in which two files of mates have names that do not belong together (see `_are_mates`).

    Examples
    --------
    >>> other_names(Texts.from_strings(["a/1", "b/1"]), Texts.from_strings(["a/2", "c/2"])).tolist()
    [1]
    >>> other_names(Texts.from_strings(["r_1", "r_2", "r_3"]), Texts.from_strings(["r_2", "r_3", "r_1"])).tolist()  # numbered reads
    [0, 1, 2]
    """
    kind = _classify_tags(_common_tag(ones), _common_tag(others))
    result = [np.empty(0, np.int64)]
    for k, pair in enumerate(zip(_batches(ones), _batches(others), strict=True)):
        result.append(k * _NAMES_OF_BATCH + np.flatnonzero(~_are_mates(*pair, kind)))
    return np.concatenate(result)


def template_names(names: Texts) -> Texts:
    """Return the common name of each pair of mates, once for each of the two mates.

    The common name is the name without the tag. If the names differ even without their tags, it is the name of the first mate.

    Parameters
    ----------
    names : Texts
        Names of reads; rows 2 i and 2 i + 1 are mates.

    Examples
    --------
    >>> template_names(Texts.from_strings(["a.1", "a.2", "b", "c"])).strings()
    ['a', 'a', 'b', 'b']
    """
    first = np.arange(0, len(names), 2)
    ones, others = names.take(first), names.take(first + 1)
    tags = _tagged(ones)
    has_tag = _are_mates(ones, others) & ~_are_same(ones, others, np.diff(ones.offsets), np.diff(others.offsets))
    has_tag |= _are_tags(tags.number, -1)
    lengths = np.diff(ones.offsets)
    # A name that consists only of a tag is not shortened.
    is_shorter = has_tag & (tags.length < lengths)
    return trimmed(ones, lengths - np.where(is_shorter, tags.length, 0)).take(np.repeat(np.arange(len(first)), 2))


def _keys(names: Texts, kind: int) -> pa.ChunkedArray:
    """Return the names without tags, as keys by which mates are found."""
    chunks = []
    for chunk in _batches(names):
        tags = _tagged(chunk)
        chunks.append(trimmed(chunk, np.diff(chunk.offsets) - np.where(_are_tags(tags.number, kind), tags.length, 0)).arrow())
    return pa.chunked_array(chunks, pa.string())


def find_mates(ones: Texts, others: Texts) -> NDArray[np.int64]:
    """Return, for each name in `ones`, the row of the first name in `others` that is the name of its mate; -1 without such a name.

    Examples
    --------
    >>> find_mates(Texts.from_strings(["a/1", "b/1", "c/1"]), Texts.from_strings(["b/2", "a/2"])).tolist()
    [1, 0, -1]
    """
    kind = _classify_tags(_common_tag(ones), _common_tag(others))
    keys, values = _keys(ones, kind), _keys(others, kind)
    result = pa.compute.index_in(keys, value_set=values.combine_chunks())
    return np.asarray(pa.compute.fill_null(result, -1).to_numpy(), np.int64)


class Interleaving(NamedTuple):
    """Result of testing whether the reads of a file are interleaved mates.

    Attributes
    ----------
    are_pairs : bool
        True if the reads 2 i and 2 i + 1 are mates for all i.
    are_mostly_pairs : bool
        True if nearly all reads precede or follow their mate.
    n_alone : int
        Number of reads that neither precede nor follow their mate.
    first_alone : int
        Row of the first of these reads; -1 if there is no such read.
    """

    are_pairs: bool
    are_mostly_pairs: bool
    n_alone: int
    first_alone: int


def inspect_interleaving(names: Texts) -> Interleaving:
    """Test whether the reads of a file are mates that follow each other.

    Examples
    --------
    >>> inspect_interleaving(Texts.from_strings(["a", "a", "b", "b"])).are_pairs
    True
    >>> inspect_interleaving(Texts.from_strings(["a", "a", "a", "a"])).are_pairs
    False
    """
    n = len(names)
    kind = _classify_tags(*(_common_tag(names[:_NAMES_INSPECTED], end, 2) for end in (0, 1)))
    is_next = np.zeros(max(n, 1), np.bool_)  # mask of reads followed by their mate
    for first in range(0, n - 1, _NAMES_OF_BATCH):
        last = min(n - 1, first + _NAMES_OF_BATCH)
        is_next[first:last] = _are_mates(names[first:last], names[first + 1 : last + 1], kind)
        release_pages(names.characters)
        if first == 0 and last > 2 and 4 * int(is_next[:last].sum()) < last:
            break  # the beginning shows that the reads are not interleaved
    are_pairs = n >= 4 and n % 2 == 0 and bool(is_next[::2].all() and not is_next[1::2].any())
    has_mate = is_next[:n].copy()
    has_mate[1:] |= is_next[: n - 1]
    has_repeats = bool((is_next[1:] & is_next[:-1]).any())
    alone = np.flatnonzero(~has_mate)
    are_mostly_pairs = are_pairs or (n >= 4 and not has_repeats and int(has_mate.sum()) >= _MINIMUM_INTERLEAVED * n)
    return Interleaving(are_pairs, are_mostly_pairs, len(alone), int(alone[0]) if len(alone) else -1)
