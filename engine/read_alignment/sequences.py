"""References and reads: sequence type, codes, substitution scores and reverse complements."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, row_mask, segment_offsets, take_segments
from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.formats.fastq import is_fastq, read_fastq
from proteoscope.engine.formats.protein_files import read_proteins
from proteoscope.engine.formats.sequence_type import are_bases, character_counts
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.mate_names import find_mates, inspect_interleaving, other_names
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.sequences.matrices import SYMBOLS, Matrix, encode, read_matrix
from proteoscope.engine.spectra.spooling import GrowingColumn, iterate_chunks, release_pages
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, GapRules, Sequences

__all__ = [
    "ALPHABET",
    "AlignedSequences",
    "NamedSequences",
    "bases",
    "check_sequence_types",
    "complement_table",
    "gap_rules",
    "load_reads",
    "nucleotide_matrix",
    "other_strand",
    "read_sequences",
    "with_interleaved_mates",
    "with_other_strands",
]

_BASES = {
    "A": "A",
    "C": "C",
    "G": "G",
    "T": "T",
    "U": "T",
    "R": "AG",
    "Y": "CT",
    "S": "CG",
    "W": "AT",
    "K": "GT",
    "M": "AC",
    "B": "CGT",
    "D": "AGT",
    "H": "ACT",
    "V": "ACG",
    "N": "ACGT",
}
"""Bases of each IUPAC nucleotide symbol."""
_COMPLEMENT = dict(zip("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN", strict=True))
ALPHABET = np.frombuffer(SYMBOLS.encode(), np.uint8)
"""ASCII character of each code."""
_MODES = {"prefix": PREFIX, "within": WITHIN, "local": LOCAL}
_PAIRS_OF_BATCH = 1 << 16


@dataclass(frozen=True)
class NamedSequences:
    """Sequences of a file; large arrays may be memory-mapped.

    Attributes
    ----------
    path : Path
        File of the sequences.
    names : Texts
        Names of the sequences.
    sequences : Sequences
        Codes of the symbols, see `proteoscope.engine.sequences.matrices.SYMBOLS`; U of nucleotides is encoded as T.
    are_nucleotides : bool
        True for nucleotides, False for proteins.
    qualities : ndarray of uint8, shape (bases,) or None
        Characters of the qualities in the file.
    are_mates : bool
        True if sequences 2 i and 2 i + 1 are mates.
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
    def unknown(self) -> int:
        """Code of the nucleotide N, which matches no symbol, not even itself (as in ``samtools calmd``); -1 for proteins."""
        return SYMBOLS.index("N") if self.are_nucleotides else -1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each sequence, shape (n,)."""
        return np.diff(self.sequences.offsets)

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lengths of the given sequences."""
        return self.sequences.offsets[rows + 1] - self.sequences.offsets[rows]

    def release(self) -> None:
        """Free the memory of arrays mapped from a file until they are next used."""
        for column in (self.sequences.codes, self.names.characters, self.qualities):
            if column is not None:
                release_pages(column)

    def mates(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of each of the given reads in its fragment, 1 or 2."""
        return rows % 2 + 1


class AlignedSequences(NamedTuple):
    """Sequences to align and the rules of their alignment.

    Attributes
    ----------
    references, reads : NamedSequences
        References and reads.
    rules : GapRules
        Scores and limits of the alignments.
    has_places : bool
        True if reads are mapped onto the references.
    """

    references: NamedSequences
    reads: NamedSequences
    rules: GapRules
    has_places: bool


def load_reads(
    path: Path, mates: Path | None, parameters: ReadAlignmentParameters, progress: Progress, spool: Path | None = None
) -> NamedSequences:
    """Load the reads of a file. If a file of mates is given, return both files as one, in which each read is followed by its mate.

    Parameters
    ----------
    path : Path
        File of the reads.
    mates : Path or None
        File of their mates.
    parameters : ReadAlignmentParameters
        Parameters of the search.
    progress : Progress
        Progress of the run.
    spool : Path, optional
        Folder of temporary files, see `read_sequences`.

    Raises
    ------
    InputError
        If a file cannot be read, or the two files do not match.
    Cancelled
        If the user cancels.
    """
    ones = read_sequences(path, progress, spool)
    if mates is None:
        return ones
    others = read_sequences(mates, progress, spool)
    if parameters.mate_pairing == "name":
        others = _paired_by_name(ones, others, spool)
    if len(ones) != len(others):
        longer, shorter = (ones, others) if len(ones) > len(others) else (others, ones)
        n = len(shorter)
        reason = f"holds {len(longer):,} reads, but {shorter.path.name} {n:,}: {_get_name(longer, n)} (record {n + 1:,}) has no mate"
        raise InputError(longer.path, reason, remedy="Give both files of one run, with the reads in the same order")
    if (ones.qualities is None) != (others.qualities is None):
        plain, other = (ones, others) if ones.qualities is None else (others, ones)
        raise InputError(plain.path, f"has no qualities, but {other.path.name} has", remedy="Give two FASTQ files, or two FASTA files")
    check_sequence_types(ones, others)
    _warn_other_names(ones, others, progress)
    both = ones.sequences, others.sequences
    codes, offsets = _alternating((both[0].codes, both[1].codes), (both[0].offsets, both[1].offsets), spool)
    qualities = None
    if ones.qualities is not None and others.qualities is not None:
        qualities, _ = _alternating((ones.qualities, others.qualities), (both[0].offsets, both[1].offsets), spool)
    names = Texts(*_alternating((ones.names.characters, others.names.characters), (ones.names.offsets, others.names.offsets), spool))
    are_nucleotides = ones.are_nucleotides or others.are_nucleotides
    return NamedSequences(path, names, Sequences(codes, offsets), are_nucleotides, qualities, are_mates=True)


def with_interleaved_mates(
    reads: NamedSequences, parameters: ReadAlignmentParameters, progress: Progress, *, can_be_mates: bool
) -> NamedSequences:
    """Return the reads of one FASTQ file; if mates follow each other, mark the reads as mates and report it.

    Parameters
    ----------
    reads : NamedSequences
        Reads.
    parameters : ReadAlignmentParameters
        Parameters of the search.
    progress : Progress
        Progress that shows the messages.
    can_be_mates : bool
        True if the reads can be mates, since they are mapped on both strands.

    Raises
    ------
    ParameterError
        If interleaved mates are requested in addition to a file of mates.
    InputError
        If interleaved mates are requested and the number of reads is odd.
    """
    wanted = parameters.interleaved
    if reads.are_mates and wanted == "yes":
        raise ParameterError("interleaved=yes is for one file that holds both mates; leave out --mates")
    if reads.are_mates or wanted == "no":
        return reads
    if wanted == "yes":
        if len(reads) % 2:
            reason = f"holds {len(reads):,} reads, an odd number: {_get_name(reads, len(reads) - 1)}, the last, has no mate"
            raise InputError(
                reads.path, reason, remedy="An interleaved file needs both mates of each fragment; for other files, give interleaved=no"
            )
        ones, others = (replace(reads, names=reads.names.take(np.arange(end, len(reads), 2))) for end in (0, 1))
        _warn_other_names(ones, others, progress)
        return replace(reads, are_mates=True)
    if reads.qualities is None or not can_be_mates:
        return reads
    result = inspect_interleaving(reads.names)
    if result.are_pairs:
        progress.message(
            f"{reads.path.name}: {len(reads) // 2:,} pairs of mates follow each other (interleaved) and are aligned as pairs;"
            " interleaved=no aligns each read separately"
        )
    elif result.are_mostly_pairs:
        n, k = result.n_alone, result.first_alone
        alone = f"{n:,} {'read has' if n == 1 else 'reads have'} no mate, the first in record {k + 1:,}: {_get_name(reads, k)}"
        progress.message(
            f"{reads.path.name}: is probably interleaved, but {alone}; all reads are aligned as single reads. Remove reads without"
            " a mate to align pairs, or give interleaved=no",
            "warning",
        )
    return replace(reads, are_mates=result.are_pairs)


def _get_name(reads: NamedSequences, row: int) -> str:
    return shortened(reads.names[row : row + 1].strings()[0])


def _paired_by_name(ones: NamedSequences, others: NamedSequences, spool: Path | None) -> NamedSequences:
    """Return the reads of the second file in the order of their mates in the first file.

    Raises
    ------
    InputError
        If a read has no mate of the same name, or several reads of a file have the same name.
    """
    order, back = find_mates(ones.names, others.names), find_mates(others.names, ones.names)
    for reads, mates, rows in ((ones, others, order), (others, ones, back)):
        alone = np.flatnonzero(rows < 0)
        if len(alone):
            n, k = len(alone), int(alone[0])
            reason = (
                f"{n:,} {'read has' if n == 1 else 'reads have'} no mate of this name in {mates.path.name}, the first in record {k + 1:,}"
            )
            remedy = "Remove reads without a mate, or pair in the order of the files with mate_pairing=order"
            raise InputError(reads.path, f"{reason}: {_get_name(reads, k)}", remedy=remedy)
    for reads, rows, targets in ((ones, back, order), (others, order, back)):
        # Only the first of several reads with the same name is found, so the others do not map back to themselves.
        repeated = np.flatnonzero(rows[targets] != np.arange(len(targets)))
        if len(repeated):
            n, k = len(repeated), int(repeated[0])
            reason = f"{n:,} {'read has a name' if n == 1 else 'reads have names'} that another read has, the first in record {k + 1:,}"
            remedy = "Pair in the order of the files with mate_pairing=order, or give each read a different name"
            raise InputError(reads.path, f"{reason}: {_get_name(reads, k)}", remedy=remedy)
    codes, offsets = _reordered(others.sequences.codes, others.sequences.offsets, order, spool)
    qualities = None if others.qualities is None else _reordered(others.qualities, others.sequences.offsets, order, spool)[0]
    names = Texts(*_reordered(others.names.characters, others.names.offsets, order, spool))
    return replace(others, names=names, sequences=Sequences(codes, offsets), qualities=qualities)


def _reordered(
    values: NDArray[Any], offsets: NDArray[np.int64], order: NDArray[np.int64], spool: Path | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the segments of `values` (delimited by `offsets`) in the order `order`, and their new offsets."""
    taken = GrowingColumn(values.dtype.type, spool)
    for first in range(0, len(order), _PAIRS_OF_BATCH):
        taken.append(take_segments(values, offsets, order[first : first + _PAIRS_OF_BATCH])[0])
        release_pages(values)
    return taken.finish(), segment_offsets(np.diff(offsets)[order])


def _alternating(
    columns: tuple[NDArray[Any], NDArray[Any]], offsets: tuple[NDArray[np.int64], NDArray[np.int64]], spool: Path | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the segments of two arrays alternately (first segment of the first array, first of the second, …), and their offsets."""
    taken = GrowingColumn(columns[0].dtype.type, spool)
    for first in range(0, len(offsets[0]) - 1, _PAIRS_OF_BATCH):
        positions = [starts[first : first + _PAIRS_OF_BATCH + 1] for starts in offsets]
        order = np.arange(2 * (len(positions[0]) - 1)).reshape(2, -1).T.ravel()
        runs = np.concatenate([column[where[0] : where[-1]] for column, where in zip(columns, positions, strict=True)])
        taken.append(take_segments(runs, segment_offsets(np.concatenate([np.diff(where) for where in positions])), order)[0])
        for column in columns:
            release_pages(column)
    return taken.finish(), segment_offsets(np.stack([np.diff(starts) for starts in offsets], axis=1).ravel())


def _warn_other_names(ones: NamedSequences, others: NamedSequences, progress: Progress) -> None:
    """Warn if mates have names of different fragments."""
    rows = other_names(ones.names, others.names)
    if len(rows):
        n = int(rows[0])
        has = "mate has another name than its read" if len(rows) == 1 else "mates have other names than their reads"
        message = f"{len(rows):,} {has}, the first in record {n + 1:,}: {_get_name(ones, n)} and {_get_name(others, n)}"
        paired = "SAM contains the read's name for both. If the order of the files differs, give --set mate_pairing=name"
        progress.message(f"{others.path.name}: {message}. {paired}", "warning")


def read_sequences(path: Path, progress: Progress, spool: Path | None = None) -> NamedSequences:
    """Read the sequences of a FASTA or FASTQ file; the format is detected by content.

    Parameters
    ----------
    path : Path
        File to read.
    progress : Progress
        Progress of the run.
    spool : Path, optional
        Folder for unnamed temporary files, which store arrays of more than several hundred megabytes (memory-mapped).

    Raises
    ------
    InputError
        If the file cannot be read, or mixes nucleotides with other characters.
    StorageError
        If the temporary files cannot be written.
    Cancelled
        If the user cancels.
    """
    with ByteSource(path) as source:
        has_qualities = is_fastq(source)
    if has_qualities:
        reads = read_fastq(path, progress=progress, spool=spool)
        if reads.is_phred_64:
            progress.message(
                f"{path.name}: the qualities seem to begin at 64, as in Illumina files before 2011. Scores do not use them; in"
                " SAM they begin at 33"
            )
        if n_empty := int((np.diff(reads.offsets) == 0).sum()):
            progress.message(f"{path.name}: {n_empty:,} {'read is' if n_empty == 1 else 'reads are'} empty", "warning")
        return replace(named_sequences(path, reads.names, reads.bases, reads.offsets, spool), qualities=reads.qualities)
    proteins = read_proteins([path], progress=progress, every_record=True, with_chromosomes=True)
    names = Texts(proteins.accession_bytes, proteins.accession_offsets)
    return named_sequences(path, names, proteins.residues, proteins.offsets, spool)


def named_sequences(
    path: Path, names: Texts, characters: NDArray[np.uint8], offsets: NDArray[np.int64], spool: Path | None = None
) -> NamedSequences:
    """Return sequences from upper-case ASCII characters.

    The sequences are nucleotides if `are_bases` returns True for them; every character must then be an IUPAC nucleotide symbol.

    Parameters
    ----------
    path : Path
        File of the sequences.
    names : Texts
        Names of the sequences, n of them.
    characters : ndarray of uint8
        Characters of all sequences.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each sequence in `characters`.
    spool : Path, optional
        Folder of temporary files, see `read_sequences`.

    Raises
    ------
    InputError
        If the sequences are nucleotides, but a character is not an IUPAC symbol.
    """
    counts = sum((character_counts(chunk) for chunk in iterate_chunks(characters)), np.zeros(256, np.int64))
    is_allowed = row_mask(256, np.frombuffer("".join(_BASES).encode(), np.uint8))
    are_nucleotides = are_bases(counts)
    if are_nucleotides and counts[~is_allowed].any():
        odd = _find_first(characters, ~is_allowed)
        name = names[(k := int(np.searchsorted(offsets, odd, side="right")) - 1) : k + 1].strings()[0]
        reason = f"'{chr(characters[odd])}' at position {int(odd - offsets[k]) + 1} of {shortened(name)} is not a nucleotide"
        remedy = "The other characters are nucleotides: use IUPAC codes (N for any base), or give only proteins"
        raise InputError(path, reason, remedy=remedy)
    codes = GrowingColumn(np.int8, spool)
    for chunk in iterate_chunks(characters):
        encoded = encode(chunk)
        if are_nucleotides:
            encoded[encoded == SYMBOLS.index("U")] = SYMBOLS.index("T")
        codes.append(encoded)
    return NamedSequences(path, names, Sequences(codes.finish(), offsets), are_nucleotides)


def _find_first(characters: NDArray[np.uint8], is_one: NDArray[np.bool_]) -> int:
    """Return the index of the first character c for which ``is_one[c]`` is True; `is_one` has 256 values.

    Raises
    ------
    ValueError
        If there is no such character.
    """
    first = 0
    for chunk in iterate_chunks(characters):
        result = is_one[chunk]
        if result.any():
            return first + int(result.argmax())
        first += len(chunk)
    raise ValueError("none of the characters occurs")


def check_sequence_types(references: NamedSequences, reads: NamedSequences) -> None:
    """Raise InputError unless references and reads are both nucleotides or both proteins.

    Raises
    ------
    InputError
        If one file contains nucleotides and the other proteins.
    """
    if references.are_nucleotides != reads.are_nucleotides and len(references.sequences.codes) and len(reads.sequences.codes):
        proteins, others = (reads, references) if references.are_nucleotides else (references, reads)
        reason = f"contains proteins, but {others.path.name} nucleotides"
        raise InputError(proteins.path, reason, remedy="Translate one of them: both must be of the same type")


def nucleotide_matrix(match: int, mismatch: int) -> Matrix:
    """Return the substitution scores of IUPAC nucleotide symbols.

    The score of an ambiguous symbol is the average over its bases, rounded down, so that the score of N is nearly that of a mismatch. If
    the score were the maximum over the bases, a segment of N would match every read.
    """
    scores = np.full((len(SYMBOLS), len(SYMBOLS)), mismatch, np.int64)
    for symbol, bases in _BASES.items():
        for other, others in _BASES.items():
            same, pairs = len(set(bases) & set(others)), len(bases) * len(others)
            scores[SYMBOLS.index(symbol), SYMBOLS.index(other)] = (match * same + mismatch * (pairs - same)) // pairs
    return Matrix("nucleotides", scores.astype(np.int32), "".join(_BASES))


def _matrix(parameters: ReadAlignmentParameters, *, of_nucleotides: bool) -> Matrix:
    if parameters.matrix:
        return read_matrix(parameters.matrix)
    if of_nucleotides:
        return nucleotide_matrix(parameters.match, parameters.mismatch)
    scores = np.full((len(SYMBOLS), len(SYMBOLS)), parameters.mismatch, np.int32)
    np.fill_diagonal(scores, parameters.match)
    return Matrix("identity", scores, SYMBOLS)


def gap_rules(parameters: ReadAlignmentParameters, *, of_nucleotides: bool) -> GapRules:
    """Return the parameters of alignments in the form that kernels use.

    Raises
    ------
    ParameterError, InputError
        If the matrix does not exist or cannot be read.
    """
    return GapRules(
        _matrix(parameters, of_nucleotides=of_nucleotides).scores,
        parameters.gap_open,
        parameters.gap_extend,
        parameters.maximum_gaps,
        _MODES[parameters.mode],
        parameters.seed_length,
        parameters.recurrence == "published",
    )


def bases() -> NDArray[np.uint8]:
    """Return the base of each code, uint8 of shape (codes,): 0 to 3 for A, C, G and T, 4 for other symbols."""
    result = np.full(len(SYMBOLS) + 1, 4, np.uint8)
    for number, symbol in enumerate("ACGT"):
        result[SYMBOLS.index(symbol)] = number
    return result


def complement_table() -> NDArray[np.uint8]:
    """Return the complement of each ASCII character, uint8 of shape (256,), for upper-case nucleotides; others are unchanged."""
    partners = np.arange(256, dtype=np.uint8)
    for symbol, other in _COMPLEMENT.items():
        partners[ord(symbol)] = ord(other)
    return partners


def other_strand(strand: str) -> str:
    """Return the reverse complement of upper-case nucleotides.

    Raises
    ------
    ValueError
        If there are characters other than ASCII.

    Examples
    --------
    >>> other_strand("AACGR")
    'YCGTT'
    """
    return strand.encode("ascii").translate(complement_table().tobytes())[::-1].decode("ascii")


def with_other_strands(sequences: Sequences) -> Sequences:
    """Return nucleotide sequences, followed by their reverse complements in the same order.

    Examples
    --------
    >>> codes = np.array([SYMBOLS.index(base) for base in "AACGR"], np.int8)
    >>> "".join(SYMBOLS[code] for code in with_other_strands(Sequences(codes, np.array([0, 2, 5]))).codes)
    'AACGRTTYCG'
    """
    complement = np.arange(len(SYMBOLS), dtype=np.int8)
    for symbol, other in _COMPLEMENT.items():
        complement[SYMBOLS.index(symbol)] = SYMBOLS.index(other)
    first, last = int(sequences.offsets[0]), int(sequences.offsets[-1])
    codes = np.empty(2 * (last - first), np.int8)
    codes[: last - first] = sequences.codes[first:last]
    kernels.cpu.strands.write_reverse_complements(sequences.codes, sequences.offsets, complement, codes[last - first :])
    offsets = sequences.offsets - first
    return Sequences(codes, np.concatenate([offsets, offsets[1:] + (last - first)]))
