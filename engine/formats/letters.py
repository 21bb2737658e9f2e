"""Which sequences are proteins and which are nucleotides, by their letters: the one place where that is judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of, pieces
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.formats.fastq import is_fastq, read_blocks
from proteoscope.engine.formats.recognition import has_entries
from proteoscope.engine.formats.sources import ByteSource, blocks
from proteoscope.engine.jobs.progress import Progress

__all__ = [
    "InputContent",
    "SequenceCount",
    "are_bases",
    "are_nucleotides",
    "content_of",
    "count_letters",
    "count_sequences",
    "kind_of_sequences",
    "letter_counts",
    "looks_like_nucleotides",
    "nucleotide_counts",
    "worth_a_warning",
]

_IS_NUCLEOTIDE = np.isin(np.arange(256), np.frombuffer(b"ACGTUN", dtype=np.uint8))
_IS_BASE = np.isin(np.arange(256), np.frombuffer(b"ACGTUNRYSWKMBDHV", dtype=np.uint8))
# Fewer letters than these may be short peptides of A, C, G, N and T by chance.
_LETTERS_TO_JUDGE_ONE, _LETTERS_TO_JUDGE_ALL = 30, 1000
_NUCLEOTIDE_SHARE = 0.95
_BASE_SHARE, _SHARE_AMONG_IUPAC, _MAXIMUM_PROTEIN_SHARE = 0.9, 0.75, 0.5
"""Share of A, C, G, T, U and N in nucleotides, in those with IUPAC symbols only, and at most in proteins."""
_MINIMUM_SHARE_OF_MANY = 0.01
"""Of a database: among millions of proteins there are some of only A, C, G, N and T."""
_MAXIMUM_COUNTED = 1 << 29
_BLOCK = 1 << 20
_MAXIMUM_JUDGED = 1 << 22
_BEGINNING = 1 << 22
"""Bytes of a file that say what sort of sequences it holds."""
_HEADERS, _REMARKS = re.compile(rb"^>.*", re.MULTILINE), re.compile(rb"^;.*", re.MULTILINE)
_NOT_RESIDUES = b" \t\n0123456789-.*"


def are_nucleotides(letters: NDArray[np.int64]) -> bool:
    """Whether a whole database is of nucleotides: it has a thousand letters, each one of a base or of several (IUPAC), and at least 95 %
    are A, C, G, T, U or N.

    Parameters
    ----------
    letters : (256,) int64, how often each ASCII capital occurs in it.
    """
    total = int(letters.sum())
    certain = int(letters[_IS_NUCLEOTIDE].sum())
    return total >= _LETTERS_TO_JUDGE_ALL and certain >= _NUCLEOTIDE_SHARE * total and not letters[~_IS_BASE].any()


def are_bases(letters: NDArray[np.int64]) -> bool:
    """Return whether all letters of a file together are of nucleotides, however short its sequences are.

    Nine of ten are A, C, G, T, U or N; three of four are enough where every letter is an IUPAC symbol of a nucleotide.

    Parameters
    ----------
    letters : ndarray of int64, shape (256,)
        How often each ASCII capital occurs.
    """
    total, certain = int(letters.sum()), int(letters[_IS_NUCLEOTIDE].sum())
    return total > 0 and certain >= (_BASE_SHARE if letters[~_IS_BASE].any() else _SHARE_AMONG_IUPAC) * total


def letter_counts(letters: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(256,) how often each character occurs; in pieces, since NumPy makes eight bytes of each."""
    counts = np.zeros(256, np.int64)
    for first in range(0, len(letters), _MAXIMUM_JUDGED):
        counts += np.bincount(letters[first : first + _MAXIMUM_JUDGED], minlength=256)
    return counts


def looks_like_nucleotides(lengths: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which sequences look like DNA or RNA: at least 95 % of their letters are A, C, G, T, U or N.

    Fewer than 30 letters may be a peptide of these by chance: sequences so short are judged as one, all of them together.

    Parameters
    ----------
    lengths, counts : (n,) int64, letters of each sequence, and those of `nucleotide_counts`.

    Returns
    -------
    (n,) bool.
    """
    is_short = lengths < _LETTERS_TO_JUDGE_ONE
    n_letters, n_found = np.where(is_short, lengths[is_short].sum(), lengths), np.where(is_short, counts[is_short].sum(), counts)
    return (lengths > 0) & (n_letters >= _LETTERS_TO_JUDGE_ONE) & (n_found >= _NUCLEOTIDE_SHARE * n_letters)


def nucleotide_counts(residues: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many letters of each sequence are A, C, G, T, U or N.

    Parameters
    ----------
    residues : (total,) uint8, ASCII capitals. offsets : (n + 1,) int64, where each sequence begins in it.

    Returns
    -------
    (n,) int64.
    """
    counts = np.zeros(len(offsets) - 1, np.int64)
    filled = np.flatnonzero(np.diff(offsets))
    for some in pieces(offsets[filled]):
        first, last = filled[some.start], filled[some.stop - 1]
        is_nucleotide = _IS_NUCLEOTIDE[residues[offsets[first] : offsets[last + 1]]]
        counts[filled[some]] = np.add.reduceat(is_nucleotide, offsets[filled[some]] - offsets[first], dtype=np.int64)
    return counts


def worth_a_warning(n_nucleotides: int, n_sequences: int, *, is_each_meant: bool) -> bool:
    """Whether so many sequences that look like nucleotides, among all of them, are worth a word.

    Parameters
    ----------
    is_each_meant : each sequence was chosen by somebody, as a query; among the many of a database some look so by chance.
    """
    return n_nucleotides > 0 and (is_each_meant or n_nucleotides >= _MINIMUM_SHARE_OF_MANY * n_sequences)


@dataclass(frozen=True)
class SequenceCount:
    """Content of a FASTA or FASTQ file.

    `n_nucleotides`: sequences that look like DNA or RNA. `is_whole` is false where only its beginning was counted. `letters`: pairs of an
    ASCII capital and how often it occurs.
    """

    n_sequences: int
    n_residues: int
    n_nucleotides: int
    is_whole: bool = True
    letters: tuple[tuple[int, int], ...] = ()

    @property
    def letter_counts(self) -> NDArray[np.int64]:
        """(256,) how often each ASCII capital occurs."""
        counts = np.zeros(256, np.int64)
        for letter, count in self.letters:
            counts[letter] = count
        return counts


def kind_of_sequences(counts: Iterable[SequenceCount]) -> str:
    """Return ``nucleotides``, ``proteins``, or '' if the letters of all files together do not decide; see `are_bases`."""
    letters = sum((count.letter_counts for count in counts), np.zeros(256, np.int64))
    if are_bases(letters):
        return "nucleotides"
    return "proteins" if letters[_IS_NUCLEOTIDE].sum() < _MAXIMUM_PROTEIN_SHARE * letters.sum() else ""


def _occurring(counts: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Return pairs of a letter and its count."""
    return tuple((letter, int(counts[letter])) for letter in np.flatnonzero(counts).tolist())


def count_sequences(
    path: Path, maximum_bytes: int = _MAXIMUM_COUNTED, is_wanted: Callable[[], bool] = lambda: True
) -> SequenceCount | None:
    """Count the sequences and residues of a FASTA or FASTQ file, up to so many bytes.

    None where it cannot be read or is not wanted any more, and of formats whose sequences are known only by parsing their entries.
    """
    n_read = 0
    try:
        with ByteSource(path) as source:
            if has_entries(source):
                return None
            if is_fastq(source):
                return _count_reads(source, maximum_bytes, is_wanted)
            counter = _Counter()
            for block in blocks(source, lambda text: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1, _BLOCK):
                if not is_wanted():
                    return None
                counter.add(block.text)
                n_read += len(block.text)
                if n_read >= maximum_bytes and not block.is_last:
                    return counter.result(is_whole=False)
    except (ProteoscopeError, OSError):
        return None
    return counter.result()


def _count_reads(source: ByteSource, maximum_bytes: int, is_wanted: Callable[[], bool]) -> SequenceCount | None:
    """Count the reads of a FASTQ file as the reader finds them; see `count_sequences`."""
    lengths, found, letters, n_bytes, is_whole = [], [], np.zeros(256, np.int64), 0, True
    for block in read_blocks(source, Progress(), _BLOCK):
        if not is_wanted():
            return None
        lengths.append(block.lengths)
        found.append(nucleotide_counts(block.letters, offsets_of(block.lengths)))
        letters += letter_counts(block.letters)
        n_bytes += block.n_bytes
        if n_bytes >= maximum_bytes and not block.is_last:
            is_whole = False
            break
    every = np.concatenate(lengths)
    n_nucleotides = int(looks_like_nucleotides(every, np.concatenate(found)).sum())
    return SequenceCount(len(every), int(every.sum()), n_nucleotides, is_whole, _occurring(letters))


@dataclass(frozen=True)
class InputContent:
    """What is known of the sequences of an input before a search reads them: how many, maybe of a part, and whether they have qualities."""

    count: SequenceCount
    has_qualities: bool


def content_of(paths: Sequence[Path]) -> InputContent | None:
    """The sequences of the first file, by its beginning; None where there is none, or it cannot be read, or be read twice."""
    if not paths or not paths[0].is_file():
        return None
    count = count_sequences(paths[0], _BEGINNING)
    if count is None:
        return None
    with ByteSource(paths[0]) as source:
        return InputContent(count, is_fastq(source))


def count_letters(fasta: bytes) -> SequenceCount:
    """Count what a FASTA text holds."""
    counter = _Counter()
    counter.add(fasta)
    return counter.result()


class _Counter:
    """Counts what a FASTA text holds that comes in pieces of whole lines."""

    def __init__(self) -> None:
        self._n_sequences = self._n_residues = 0
        self._lengths, self._counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        self._unfinished = b""
        self._letters = np.zeros(256, np.int64)

    def add(self, text: bytes) -> None:
        """Count a piece."""
        text = _REMARKS.sub(b"", text.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        self._n_sequences += text.count(b"\n>") + text.startswith(b">")
        letters = _HEADERS.sub(b">", text).translate(None, _NOT_RESIDUES)
        counts = letter_counts(np.frombuffer(letters.upper(), np.uint8))
        counts[ord(">")] = 0
        self._letters += counts
        self._n_residues += int(counts.sum())
        finished, mark, rest = (self._unfinished + letters).rpartition(b">")
        self._count(finished)
        # So many letters say what a sequence is, also a chromosome.
        self._unfinished = (mark + rest)[:_MAXIMUM_JUDGED]

    def result(self, *, is_whole: bool = True) -> SequenceCount:
        """Counts."""
        self._count(self._unfinished)
        self._unfinished = b""
        n_nucleotides = int(looks_like_nucleotides(np.concatenate(self._lengths), np.concatenate(self._counts)).sum())
        return SequenceCount(self._n_sequences, self._n_residues, n_nucleotides, is_whole, _occurring(self._letters))

    def _count(self, letters: bytes) -> None:
        """Count the letters of finished sequences, each behind a ``>``."""
        read = np.frombuffer(letters.upper(), np.uint8)
        starts = np.flatnonzero(read == ord(">"))
        # What is no letter is refused by the search, which says where it stands.
        is_residue = (read >= ord("A")) & (read <= ord("Z"))
        offsets = np.append(0, np.cumsum(is_residue))[np.append(starts, len(read))]
        self._lengths.append(np.diff(offsets))
        self._counts.append(nucleotide_counts(read[is_residue], offsets))
