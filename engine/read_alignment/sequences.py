"""Texts and patterns: which are nucleotides, their codes, what their letters score, and their reverse complements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.arrays import Texts
from engine.errors import InputError, shortened
from engine.formats.fasta import read_proteins
from engine.formats.fastq import is_fastq, read_fastq
from engine.formats.sources import ByteSource
from engine.jobs.progress import Progress
from engine.read_alignment.parameters import ReadAlignmentParameters
from engine.sequences.matrices import LETTERS, Matrix, encode, read_matrix
from kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, GapRules, Sequences

__all__ = ["ALPHABET", "NamedSequences", "check_sorts", "gap_rules", "nucleotide_matrix", "read_sequences", "reverse_complements"]

_BASES = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC", "B": "CGT",
    "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
"""The bases that IUPAC's letter of a nucleotide stands for."""
_COMPLEMENT = dict(zip("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN", strict=True))
ALPHABET = np.frombuffer(LETTERS.encode(), np.uint8)
"""The letter of each code."""
_CERTAIN, _NUCLEOTIDE_SHARE = "ACGTUN", 0.9
_MODES = {"prefix": PREFIX, "within": WITHIN, "local": LOCAL}


@dataclass(frozen=True)
class NamedSequences:
    """Sequences of a file: their names, and codes by `engine.sequences.matrices.LETTERS`, a U of nucleotides as T.

    `qualities`: (letters,) uint8, the characters of the file; None where it has none. `are_mates`: whether sequences 2 i and 2 i + 1 are
    reads of one fragment.
    """

    path: Path
    names: Texts
    sequences: Sequences
    are_nucleotides: bool
    qualities: NDArray[np.uint8] | None = None
    are_mates: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,) letters of each."""
        return np.diff(self.sequences.offsets)

    def letters(self) -> NDArray[np.uint8]:
        """ASCII capitals of all."""
        return ALPHABET[self.sequences.codes]

    def mates(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """1 or 2 for each of some sequences: which of its fragment it is."""
        return rows % 2 + 1


def read_sequences(path: Path, progress: Progress) -> NamedSequences:
    """Read the sequences of a FASTA or FASTQ file, which is told by its content.

    Raises
    ------
    InputError : the file cannot be read, or holds letters that do not go together. Cancelled : the user asked to stop.
    """
    with ByteSource(path) as source:
        has_qualities = is_fastq(source)
    if has_qualities:
        reads = read_fastq(path, progress=progress)
        if reads.is_phred_64:
            progress.message(
                f"{path.name}: the qualities look as if they began at 64, as Illumina's did before 2011; scores do not use them"
            )
        if n_empty := int((np.diff(reads.offsets) == 0).sum()):
            progress.message(f"{path.name}: {n_empty:,} {'read is' if n_empty == 1 else 'reads are'} empty", "warning")
        return replace(named_sequences(path, reads.names, reads.letters, reads.offsets), qualities=reads.qualities)
    proteins = read_proteins([path], progress=progress, every_record=True, with_chromosomes=True)
    return named_sequences(path, Texts(proteins.accession_bytes, proteins.accession_offsets), proteins.residues, proteins.offsets)


def named_sequences(path: Path, names: Texts, letters: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NamedSequences:
    """Sequences by their ASCII capitals.

    They are of nucleotides where nine of ten letters are A, C, G, T, U or N; then every letter must be IUPAC's of a nucleotide.

    Raises
    ------
    InputError : nearly all letters are of nucleotides, and one is not.
    """
    counts = np.bincount(letters, minlength=256)
    total, certain = int(counts.sum()), int(counts[np.frombuffer(_CERTAIN.encode(), np.uint8)].sum())
    is_allowed = np.zeros(256, np.bool_)
    is_allowed[np.frombuffer("".join(_BASES).encode(), np.uint8)] = True
    are_nucleotides = total > 0 and certain >= _NUCLEOTIDE_SHARE * total
    codes = encode(letters)
    if are_nucleotides:
        odd = np.flatnonzero(~is_allowed[letters])
        if len(odd):
            name = names[(k := int(np.searchsorted(offsets, odd[0], side="right")) - 1) : k + 1].strings()[0]
            reason = f"'{chr(letters[odd[0]])}' at position {int(odd[0] - offsets[k]) + 1} of {shortened(name)} is no nucleotide"
            remedy = "The other letters are nucleotides: give IUPAC's letters (N for any), or proteins alone"
            raise InputError(path, reason, remedy=remedy)
        codes[codes == LETTERS.index("U")] = LETTERS.index("T")
    return NamedSequences(path, names, Sequences(codes, offsets), are_nucleotides)


def check_sorts(texts: NamedSequences, patterns: NamedSequences) -> None:
    """Refuse proteins against nucleotides.

    Raises
    ------
    InputError : one file is of nucleotides and the other is not.
    """
    if texts.are_nucleotides != patterns.are_nucleotides and len(texts.sequences.codes) and len(patterns.sequences.codes):
        proteins, others = (patterns, texts) if texts.are_nucleotides else (texts, patterns)
        reason = f"holds proteins, and {others.path.name} nucleotides"
        raise InputError(proteins.path, reason, remedy="Translate one of them: both must be of one sort")


def nucleotide_matrix(match: int, mismatch: int) -> Matrix:
    """What IUPAC's letters of nucleotides score.

    A letter that stands for several bases scores what two bases drawn from both letters score on average, rounded down: so an N is nearly a
    mismatch with anything. By the best of what it may be, a run of N would attract every read.
    """
    scores = np.full((len(LETTERS), len(LETTERS)), mismatch, np.int64)
    for one, bases in _BASES.items():
        for other, others in _BASES.items():
            same, pairs = len(set(bases) & set(others)), len(bases) * len(others)
            scores[LETTERS.index(one), LETTERS.index(other)] = (match * same + mismatch * (pairs - same)) // pairs
    return Matrix("nucleotides", scores.astype(np.int32), "".join(_BASES))


def _matrix(parameters: ReadAlignmentParameters, *, of_nucleotides: bool) -> Matrix:
    if parameters.matrix:
        return read_matrix(parameters.matrix)
    if of_nucleotides:
        return nucleotide_matrix(parameters.match, parameters.mismatch)
    scores = np.full((len(LETTERS), len(LETTERS)), parameters.mismatch, np.int32)
    np.fill_diagonal(scores, parameters.match)
    return Matrix("identity", scores, LETTERS)


def gap_rules(parameters: ReadAlignmentParameters, *, of_nucleotides: bool) -> GapRules:
    """The parameters as the kernels take them.

    Raises
    ------
    ParameterError, InputError : there is no such matrix.
    """
    return GapRules(
        _matrix(parameters, of_nucleotides=of_nucleotides).scores, parameters.gap_open, parameters.gap_extend, parameters.max_gaps,
        _MODES[parameters.mode], parameters.seed_length, parameters.recurrence == "published",
    )  # fmt: skip


def reverse_complements(sequences: Sequences) -> Sequences:
    """The other strand of each sequence of nucleotides, in their order.

    >>> codes = np.array([LETTERS.index(letter) for letter in "AACGR"], np.int8)
    >>> "".join(LETTERS[code] for code in reverse_complements(Sequences(codes, np.array([0, 2, 5]))).codes)
    'TTYCG'
    """
    complement = np.arange(len(LETTERS), dtype=np.int8)
    for one, other in _COMPLEMENT.items():
        complement[LETTERS.index(one)] = LETTERS.index(other)
    lengths = np.diff(sequences.offsets)
    ends = np.repeat(sequences.offsets[:-1] + sequences.offsets[1:] - 1, lengths)
    return Sequences(complement[sequences.codes[ends - np.arange(len(sequences.codes))]], sequences.offsets)
