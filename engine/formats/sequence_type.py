"""Classification of sequences as proteins or nucleotides by their symbols, used in the whole program."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import batch_segments, segment_offsets
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
    "are_nucleotides_suspicious",
    "character_counts",
    "classify_sequences",
    "count_fasta",
    "count_sequences",
    "inspect_sequences",
    "looks_like_nucleotides",
    "nucleotide_counts",
]

_IS_NUCLEOTIDE = np.isin(np.arange(256), np.frombuffer(b"ACGTUN", dtype=np.uint8))
_IS_BASE = np.isin(np.arange(256), np.frombuffer(b"ACGTUNRYSWKMBDHV", dtype=np.uint8))
# Shorter sequences may be peptides that happen to consist of A, C, G, N and T.
_MINIMUM_RESIDUES, _MINIMUM_OF_DATABASE = 30, 1000
_NUCLEOTIDE_SHARE = 0.95
_BASE_SHARE, _SHARE_AMONG_IUPAC, _MAXIMUM_PROTEIN_SHARE = 0.9, 0.75, 0.5
"""Limits of the fraction of A, C, G, T, U and N: minimum of nucleotides, minimum if all symbols are IUPAC bases, maximum of proteins."""
_MINIMUM_SHARE_OF_MANY = 0.01
"""Minimum fraction of suspicious sequences for a warning about a database, since some proteins consist of A, C, G, N and T by chance."""
_MAXIMUM_COUNTED = 1 << 29
_BLOCK = 1 << 20
_MAXIMUM_INSPECTED = 1 << 22
_BEGINNING = 1 << 22
"""Number of bytes at the beginning of a file that suffice to classify its sequences."""
_HEADERS, _REMARKS = re.compile(rb"^>.*", re.MULTILINE), re.compile(rb"^;.*", re.MULTILINE)
_NOT_RESIDUES = b" \t\n0123456789-.*"


def are_nucleotides(counts: NDArray[np.int64]) -> bool:
    """Return True if a whole database consists of nucleotides.

    It must have at least 1,000 residues, all of them IUPAC symbols of bases, and at least 95 % A, C, G, T, U or N.

    Parameters
    ----------
    counts : ndarray of int64, shape (256,)
        Number of occurrences of each ASCII capital in the database.
    """
    total = int(counts.sum())
    certain = int(counts[_IS_NUCLEOTIDE].sum())
    return total >= _MINIMUM_OF_DATABASE and certain >= _NUCLEOTIDE_SHARE * total and not counts[~_IS_BASE].any()


def are_bases(counts: NDArray[np.int64]) -> bool:
    """Return True if a file consists of nucleotides, even if its sequences are short.

    At least 90 % of all residues must be A, C, G, T, U or N, or 75 % if all are IUPAC symbols of bases.

    Parameters
    ----------
    counts : ndarray of int64, shape (256,)
        Number of occurrences of each ASCII capital in the file.
    """
    total, certain = int(counts.sum()), int(counts[_IS_NUCLEOTIDE].sum())
    return total > 0 and certain >= (_BASE_SHARE if counts[~_IS_BASE].any() else _SHARE_AMONG_IUPAC) * total


def character_counts(residues: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of occurrences of each character, shape (256,).

    Characters are counted in chunks, since NumPy converts each of them to eight bytes.

    Parameters
    ----------
    residues : ndarray of uint8, shape (length,)
        Characters.
    """
    counts = np.zeros(256, np.int64)
    for first in range(0, len(residues), _MAXIMUM_INSPECTED):
        counts += np.bincount(residues[first : first + _MAXIMUM_INSPECTED], minlength=256)
    return counts


def looks_like_nucleotides(lengths: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for each sequence that looks like DNA or RNA: at least 95 % A, C, G, T, U or N.

    A peptide of fewer than 30 residues may consist of these symbols by chance; all short sequences are therefore classified together.

    Parameters
    ----------
    lengths : ndarray of int64, shape (n,)
        Number of residues of each sequence.
    counts : ndarray of int64, shape (n,)
        Number of nucleotides of each sequence, from `nucleotide_counts`.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for nucleotides.
    """
    is_short = lengths < _MINIMUM_RESIDUES
    totals, bases = np.where(is_short, lengths[is_short].sum(), lengths), np.where(is_short, counts[is_short].sum(), counts)
    return (lengths > 0) & (totals >= _MINIMUM_RESIDUES) & (bases >= _NUCLEOTIDE_SHARE * totals)


def nucleotide_counts(residues: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of A, C, G, T, U and N in each sequence.

    Parameters
    ----------
    residues : ndarray of uint8, shape (total,)
        ASCII capitals of all sequences.
    offsets : ndarray of int64, shape (n + 1,)
        Sequence i is ``residues[offsets[i]:offsets[i + 1]]``.

    Returns
    -------
    ndarray of int64, shape (n,)
        Counts.
    """
    counts = np.zeros(len(offsets) - 1, np.int64)
    filled = np.flatnonzero(np.diff(offsets))
    for batch in batch_segments(offsets[filled]):
        first, last = filled[batch.start], filled[batch.stop - 1]
        is_nucleotide = _IS_NUCLEOTIDE[residues[offsets[first] : offsets[last + 1]]]
        counts[filled[batch]] = np.add.reduceat(is_nucleotide, offsets[filled[batch]] - offsets[first], dtype=np.int64)
    return counts


def are_nucleotides_suspicious(n_nucleotides: int, n_sequences: int, *, is_any_suspicious: bool) -> bool:
    """Return True if enough sequences look like nucleotides for a warning.

    Parameters
    ----------
    n_nucleotides, n_sequences : int
        Number of sequences that look like nucleotides, and number of all sequences.
    is_any_suspicious : bool
        True if a single such sequence is enough, as for queries, which the user selected one by one; False for a database, in which some
        proteins look like nucleotides by chance.
    """
    return n_nucleotides > 0 and (is_any_suspicious or n_nucleotides >= _MINIMUM_SHARE_OF_MANY * n_sequences)


@dataclass(frozen=True)
class SequenceCount:
    """Counts of a FASTA or FASTQ file.

    Attributes
    ----------
    n_sequences, n_residues : int
        Number of sequences and of residues.
    n_nucleotides : int
        Number of sequences that look like DNA or RNA.
    is_whole : bool
        False if only the beginning of the file was counted.
    symbols : tuple of (int, int)
        ASCII code and number of occurrences of each capital in the file.
    """

    n_sequences: int
    n_residues: int
    n_nucleotides: int
    is_whole: bool = True
    symbols: tuple[tuple[int, int], ...] = ()

    @property
    def character_counts(self) -> NDArray[np.int64]:
        """Number of occurrences of each ASCII capital, shape (256,)."""
        counts = np.zeros(256, np.int64)
        for symbol, count in self.symbols:
            counts[symbol] = count
        return counts


def classify_sequences(counts: Iterable[SequenceCount]) -> str:
    """Return the type of the sequences in all files together (see `are_bases`).

    Parameters
    ----------
    counts : iterable of SequenceCount
        Counts of each file.

    Returns
    -------
    str
        ``nucleotides``, ``proteins``, or '' if the residues are inconclusive.
    """
    total = sum((count.character_counts for count in counts), np.zeros(256, np.int64))
    if are_bases(total):
        return "nucleotides"
    return "proteins" if total[_IS_NUCLEOTIDE].sum() < _MAXIMUM_PROTEIN_SHARE * total.sum() else ""


def _occurring(counts: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Return (character, number of occurrences) for each character that occurs."""
    return tuple((character, int(counts[character])) for character in np.flatnonzero(counts).tolist())


def count_sequences(
    path: Path, maximum_bytes: int = _MAXIMUM_COUNTED, is_wanted: Callable[[], bool] = lambda: True
) -> SequenceCount | None:
    """Count the sequences and residues of a FASTA or FASTQ file.

    Parameters
    ----------
    path : Path
        File to read.
    maximum_bytes : int
        Maximum number of bytes to read.
    is_wanted : callable
        Function that returns False to stop counting.

    Returns
    -------
    SequenceCount or None
        Counts; None if the file cannot be read, if counting was stopped, or if the format has entries that must be parsed.
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
    """Count the reads of a FASTQ file with its reader; return None if counting was stopped (see `count_sequences`)."""
    lengths, bases, characters, n_bytes, is_whole = [], [], np.zeros(256, np.int64), 0, True
    for block in read_blocks(source, Progress(), _BLOCK):
        if not is_wanted():
            return None
        lengths.append(block.lengths)
        bases.append(nucleotide_counts(block.bases, segment_offsets(block.lengths)))
        characters += character_counts(block.bases)
        n_bytes += block.n_bytes
        if n_bytes >= maximum_bytes and not block.is_last:
            is_whole = False
            break
    every = np.concatenate(lengths)
    n_nucleotides = int(looks_like_nucleotides(every, np.concatenate(bases)).sum())
    return SequenceCount(len(every), int(every.sum()), n_nucleotides, is_whole, _occurring(characters))


@dataclass(frozen=True)
class InputContent:
    """Properties of input sequences that are known before a search reads them.

    Attributes
    ----------
    count : SequenceCount
        Counts of the beginning of the first file.
    has_qualities : bool
        True for FASTQ.
    """

    count: SequenceCount
    has_qualities: bool


def inspect_sequences(paths: Sequence[Path]) -> InputContent | None:
    """Return the properties of the first file, from the sequences at its beginning; None if it is not a regular file or cannot be read."""
    if not paths or not paths[0].is_file():
        return None
    count = count_sequences(paths[0], _BEGINNING)
    if count is None:
        return None
    with ByteSource(paths[0]) as source:
        return InputContent(count, is_fastq(source))


def count_fasta(fasta: bytes) -> SequenceCount:
    """Count the sequences and residues of FASTA text."""
    counter = _Counter()
    counter.add(fasta)
    return counter.result()


class _Counter:
    """Counter of sequences and residues in a FASTA file; `add` takes the text in chunks of complete lines."""

    def __init__(self) -> None:
        self._n_sequences = self._n_residues = 0
        self._lengths, self._counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        self._unfinished = b""
        self._characters = np.zeros(256, np.int64)

    def add(self, text: bytes) -> None:
        """Count the sequences and residues of a chunk."""
        text = _REMARKS.sub(b"", text.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        self._n_sequences += text.count(b"\n>") + text.startswith(b">")
        residues = _HEADERS.sub(b">", text).translate(None, _NOT_RESIDUES)
        counts = character_counts(np.frombuffer(residues.upper(), np.uint8))
        counts[ord(">")] = 0
        self._characters += counts
        self._n_residues += int(counts.sum())
        finished, mark, rest = (self._unfinished + residues).rpartition(b">")
        self._count(finished)
        # The beginning of a sequence, even of a chromosome, suffices to classify it.
        self._unfinished = (mark + rest)[:_MAXIMUM_INSPECTED]

    def result(self, *, is_whole: bool = True) -> SequenceCount:
        """Return the counts of all chunks."""
        self._count(self._unfinished)
        self._unfinished = b""
        n_nucleotides = int(looks_like_nucleotides(np.concatenate(self._lengths), np.concatenate(self._counts)).sum())
        return SequenceCount(self._n_sequences, self._n_residues, n_nucleotides, is_whole, _occurring(self._characters))

    def _count(self, residues: bytes) -> None:
        """Count the residues of complete sequences, each after a ``>``."""
        characters = np.frombuffer(residues.upper(), np.uint8)
        starts = np.flatnonzero(characters == ord(">"))
        # Ignore other characters: the search reports them with their positions.
        is_residue = (characters >= ord("A")) & (characters <= ord("Z"))
        offsets = np.append(0, np.cumsum(is_residue))[np.append(starts, len(characters))]
        self._lengths.append(np.diff(offsets))
        self._counts.append(nucleotide_counts(characters[is_residue], offsets))
