"""Protein records in the blocks of files, and their conversion to one set of columns."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import row_mask, segment_offsets
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.escaped_names import escape_names
from proteoscope.engine.formats.features import Features
from proteoscope.engine.formats.proteins import Proteins

__all__ = [
    "MAXIMUM_ACCESSION_BYTES",
    "MAXIMUM_NUCLEOTIDES",
    "MAXIMUM_RESIDUES",
    "TRANSLATE",
    "ProteinRecords",
    "join_records",
    "too_long_name",
]

TRANSLATE = "Give a protein database, or translate nucleotides with translation=six-frame (identify and align)"
"""Remedy in error messages about nucleotides where proteins are expected."""
MAXIMUM_ACCESSION_BYTES = 1_000
"""Maximum length of an accession, since tables repeat it in many rows."""
MAXIMUM_RESIDUES = 1_000_000
"""Maximum number of residues of a protein; the largest known proteins have 45,000, and longer sequences are chromosomes."""
MAXIMUM_NUCLEOTIDES = 300_000_000
"""Maximum number of nucleotides of a sequence; the longest human chromosome has 249,000,000."""


@dataclass
class ProteinRecords:
    """Protein records (n) of a block.

    Attributes
    ----------
    path : Path
        File of the records.
    residues, offsets : ndarray
        Residues and offsets of the sequences, as in `Proteins`.
    accessions, descriptions : list of bytes
        First word and rest of each header, UTF-8.
    lines : ndarray of int64, shape (n,)
        Line of each header, from 1.
    digests : ndarray of uint64, shape (n,)
        Digest of each sequence.
    n_read : int
        Number of records of the block, including records without residues.
    features : Features, optional
        Features of the n proteins; None if the format has none.
    """

    path: Path
    residues: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    accessions: list[bytes]
    descriptions: list[bytes]
    lines: NDArray[np.int64]
    digests: NDArray[np.uint64]
    n_read: int
    features: Features | None = None

    def escape_accessions(self) -> int:
        """Escape the unprintable characters of accessions; return the number of changed accessions.

        Raises
        ------
        InputError
            If an accession is longer than `MAXIMUM_ACCESSION_BYTES`.
        """
        lengths = list(map(len, self.accessions))
        if (longest := max(lengths, default=0)) > MAXIMUM_ACCESSION_BYTES:
            raise too_long_name(self.path, int(self.lines[lengths.index(longest)]))
        joined = b"".join(self.accessions)
        if joined.isascii() and joined.decode("ascii").isprintable():
            return 0
        escaped, n = escape_names([accession.decode() for accession in self.accessions])
        self.accessions = list(map(str.encode, escaped))
        return n


def too_long_name(path: Path, line: int) -> InputError:
    """Return the error for a sequence whose name is too long; `line` is the line of the name in the file, from 1."""
    reason = f"the name is longer than {MAXIMUM_ACCESSION_BYTES:,} bytes"
    return InputError(path, reason, place=f"line {line}", remedy="Put a blank after the name: the name ends there")


def join_records(parts: list[ProteinRecords], *, every_record: bool) -> Proteins:
    """Join the records of all blocks to columns.

    Parameters
    ----------
    parts : list of ProteinRecords
        Records of the blocks, in the order of the file.
    every_record : bool
        False to remove repeated records with the same accession and sequence.

    Raises
    ------
    InputError
        If two records have the same accession and different sequences, unless `every_record`.
    """
    bases = np.cumsum([0] + [int(part.offsets[-1]) for part in parts])
    residues = np.concatenate([part.residues for part in parts])
    offsets = np.concatenate([*(part.offsets[:-1] + base for part, base in zip(parts, bases, strict=False)), bases[-1:]]).astype(np.int64)
    accessions = [accession for part in parts for accession in part.accessions]
    descriptions = [description for part in parts for description in part.descriptions]
    if not every_record and len(set(accessions)) < len(accessions):
        selected = _without_duplicates(parts, residues, offsets, accessions)
    else:
        selected = np.arange(len(accessions))
    features = _features(parts)
    if len(selected) < len(accessions):
        mask = row_mask(len(accessions), selected)
        lengths = np.diff(offsets)
        residues = residues[np.repeat(mask, lengths)]
        offsets = segment_offsets(lengths[mask])
        accessions, descriptions = [accessions[i] for i in selected.tolist()], [descriptions[i] for i in selected.tolist()]
        features = None if features is None else features.take(selected)
    return Proteins(residues, offsets, *_column(accessions), *_column(descriptions), features)


def _features(parts: list[ProteinRecords]) -> Features | None:
    """Return the features of all records, or None if no file has features."""
    if all(part.features is None for part in parts):
        return None
    return Features.joined([Features.none(len(part.accessions)) if part.features is None else part.features for part in parts])


def _without_duplicates(
    parts: list[ProteinRecords], residues: NDArray[np.uint8], offsets: NDArray[np.int64], accessions: list[bytes]
) -> NDArray[np.int64]:
    """Return the indices of the records that do not repeat an accession and its sequence.

    Sequences with equal digests are compared residue by residue. If an accession occurs with another sequence, an `InputError` is raised.
    """
    digests = np.concatenate([part.digests for part in parts])
    lines = np.concatenate([part.lines for part in parts])
    paths = [part.path for part in parts for _ in part.accessions]
    first: dict[bytes, int] = {}
    selected = []
    for i, accession in enumerate(accessions):
        before = first.setdefault(accession, i)
        if before == i:
            selected.append(i)
            continue
        former, sequence = (residues[offsets[k] : offsets[k + 1]] for k in (before, i))
        if digests[before] != digests[i] or not np.array_equal(former, sequence):
            where = f"line {lines[before]}" if paths[before] == paths[i] else f"{paths[before]}, line {lines[before]}"
            raise InputError(
                paths[i],
                f"the accession {shortened(accession.decode())} has a different sequence in {where}",
                place=f"line {lines[i]}",
                remedy="Rename or remove one of them, so that results are unambiguous",
            )
    return np.array(selected, dtype=np.int64)


def _column(texts: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the concatenated texts, and their offsets."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.frombuffer(b"".join(texts), dtype=np.uint8), segment_offsets(lengths)
