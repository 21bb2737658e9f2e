"""Packed sequence databases: memory-mapped columns, sorted by sequence length, created once from FASTA and opened in milliseconds.

A residue needs one byte; a sequence needs eight more, plus its name and description. Databases are stored in the user's cache under the
digests of their FASTA files.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ProteinRow, Texts, row_mask, row_range, segment_offsets, take_segments
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import Proteins, read_proteins
from proteoscope.engine.formats.features import Features, open_features, write_features
from proteoscope.engine.formats.sequence_type import looks_like_nucleotides, nucleotide_counts
from proteoscope.engine.formats.translation import Translation
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.index_store import (
    IndexStore,
    checked_offsets,
    checked_texts,
    index_store,
    open_column,
    read_numbers,
    require,
)
from proteoscope.engine.sequences.matrices import SYMBOLS, encode

__all__ = ["SequenceDatabase", "cache_store", "decode", "key_parts", "open_database", "read_sequences"]

_FORMAT = 3
_NAME = "sequences"
_COLUMNS = {
    "residues": np.int8,
    "lengths": np.uint32,
    "file_index": np.uint32,
    "accessions": np.uint8,
    "accession_lengths": np.uint32,
    "descriptions": np.uint8,
    "description_lengths": np.uint32,
}
_DESCRIPTION = "database.json"
_SYMBOLS = np.frombuffer(SYMBOLS.encode(), np.uint8)


@dataclass(frozen=True)
class SequenceDatabase:
    """Protein sequences (n), sorted by length; sequences of equal length are in the order of the files.

    Attributes
    ----------
    residues : ndarray of int8, shape (total,)
        Residue codes of `proteoscope.engine.sequences.matrices`.
    offsets : ndarray of int64, shape (n + 1,)
        Sequence i is ``residues[offsets[i]:offsets[i + 1]]``.
    file_index : ndarray of uint32, shape (n,)
        Index of each sequence among all sequences of the files.
    accession_bytes, description_bytes : ndarray of uint8
        First word and rest of each header, UTF-8.
    accession_offsets, description_offsets : ndarray of int64, shape (n + 1,)
        Accession i is ``accession_bytes[accession_offsets[i]:accession_offsets[i + 1]]``; the same applies to descriptions.
    n_repeated_names : int
        Number of sequences whose accession occurs earlier in the files.
    n_nucleotides : int
        Number of sequences that look like DNA or RNA (see `proteoscope.engine.formats.sequence_type`).
    features : Features, optional
        Features of the sequences; None if the files have none.
    """

    residues: NDArray[np.int8]
    offsets: NDArray[np.int64]
    file_index: NDArray[np.uint32]
    accession_bytes: NDArray[np.uint8]
    accession_offsets: NDArray[np.int64]
    description_bytes: NDArray[np.uint8]
    description_offsets: NDArray[np.int64]
    n_repeated_names: int
    n_nucleotides: int
    features: Features | None = None

    def __len__(self) -> int:
        return len(self.file_index)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of residues of each sequence, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def n_residues(self) -> int:
        """Total number of residues."""
        return int(self.offsets[-1])

    def codes(self, i: ProteinRow) -> NDArray[np.int8]:
        """Return the residue codes of sequence `i`."""
        return self.residues[self.offsets[i] : self.offsets[i + 1]]

    def ranges(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return start and end index of the residues of the sequences with the given indices, (k, 2)."""
        return np.stack((self.offsets[numbers], self.offsets[numbers + 1]), axis=1)

    def sequences(self, numbers: NDArray[np.int64]) -> Texts:
        """Return the sequences with the given indices as texts."""
        codes, offsets = take_segments(self.residues, self.offsets, numbers)
        return Texts(_SYMBOLS[codes], offsets)

    def accession(self, i: ProteinRow) -> str:
        """Return the first word of the header of sequence `i`, or ''."""
        return bytes(self.accession_bytes[self.accession_offsets[i] : self.accession_offsets[i + 1]]).decode()

    def description(self, i: ProteinRow) -> str:
        """Return the header of sequence `i` without its first word."""
        return bytes(self.description_bytes[self.description_offsets[i] : self.description_offsets[i + 1]]).decode()


def decode(codes: NDArray[np.int8]) -> str:
    """Convert residue codes to text."""
    return _SYMBOLS[codes].tobytes().decode("ascii")


def cache_store() -> IndexStore:
    """Return the store of packed databases in the user's cache."""
    return index_store(_NAME)


def read_sequences(paths: Sequence[Path], progress: Progress, translation: Translation | None = None) -> SequenceDatabase:
    """Read all records of protein files, or the reading frames of nucleotides, into memory, sorted by length.

    Parameters
    ----------
    paths : sequence of Path
        Files.
    progress : Progress
        Progress, which receives messages and is checked for cancellation.
    translation : Translation, optional
        Translation of nucleotides; None for proteins.

    Returns
    -------
    SequenceDatabase
        All sequences of the files.

    Raises
    ------
    InputError
        If a file is missing, empty, damaged or in another format, or contains a character that is not a residue.
    Cancelled
        If the user cancels.
    """
    if translation is not None:
        return _by_length(translation.read(paths, progress))
    return _by_length(read_proteins(paths, progress=progress, every_record=True))


def open_database(
    paths: Sequence[Path], digests: Sequence[str], store: IndexStore, progress: Progress, translation: Translation | None = None
) -> SequenceDatabase:
    """Open the packed database of protein files, or of translated nucleotides; create it in `store` if it does not exist.

    Parameters
    ----------
    paths : sequence of Path
        Files.
    digests : sequence of str
        SHA-256 of each file.
    store : IndexStore
        Store of packed databases.
    progress : Progress
        Progress, which receives messages and is checked for cancellation.
    translation : Translation, optional
        Translation of nucleotides; None for proteins.

    Returns
    -------
    SequenceDatabase
        Memory-mapped sequences.

    Raises
    ------
    InputError
        If `read_sequences` fails.
    StorageError
        If the database cannot be stored.
    Cancelled
        If the user cancels.
    """
    progress.stage("Opening the database")
    title = ", ".join(path.name for path in paths)
    parts = key_parts(digests, translation)
    return store.get(parts, title, lambda folder: _write(folder, read_sequences(paths, progress, translation)), _open, progress)


def key_parts(digests: Sequence[str], translation: Translation | None = None) -> dict[str, Any]:
    """Return the values that determine the cache key of a packed database.

    Parameters
    ----------
    digests : sequence of str
        SHA-256 of the files.
    translation : Translation, optional
        Translation of a database of nucleotides.
    """
    codes = encode(np.frombuffer(SYMBOLS.encode(), np.uint8)).tolist()
    translated = {} if translation is None else {"translation": translation.content()}
    return {"format": _FORMAT, "files": list(digests), "letters": SYMBOLS, "codes": codes, **translated}


def _by_length(proteins: Proteins) -> SequenceDatabase:
    lengths = np.diff(proteins.offsets)
    order = np.argsort(lengths, kind="stable")
    residues, offsets = take_segments(encode(proteins.residues), proteins.offsets, order)
    accessions = take_segments(proteins.accession_bytes, proteins.accession_offsets, order)
    descriptions = take_segments(proteins.description_bytes, proteins.description_offsets, order)
    names = len({proteins.accession(i) for i in row_range(ProteinRow, len(proteins))})
    n_nucleotides = int(looks_like_nucleotides(lengths, nucleotide_counts(proteins.residues, proteins.offsets)).sum())
    features = None if proteins.features is None else proteins.features.take(order)
    positions = order.astype(np.uint32)
    return SequenceDatabase(residues, offsets, positions, *accessions, *descriptions, len(proteins) - names, n_nucleotides, features)


def _write(folder: Path, database: SequenceDatabase) -> None:
    if len(database) > np.iinfo(np.uint32).max or np.max(database.lengths, initial=0) > np.iinfo(np.uint32).max:
        raise InputError(folder, "has more than 4,294,967,295 sequences, or residues in a sequence", remedy="Split the database")
    columns = (
        database.residues,
        database.lengths.astype(np.uint32),
        database.file_index,
        database.accession_bytes,
        np.diff(database.accession_offsets).astype(np.uint32),
        database.description_bytes,
        np.diff(database.description_offsets).astype(np.uint32),
    )
    for name, column in zip(_COLUMNS, columns, strict=True):
        np.save(folder / f"{name}.npy", np.ascontiguousarray(column))
    if database.features is not None:
        write_features(folder, database.features)
    description = {"n_repeated_names": database.n_repeated_names, "n_nucleotides": database.n_nucleotides}
    (folder / _DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")


def _open(folder: Path) -> SequenceDatabase:
    residues, lengths, file_index, accessions, accession_lengths, descriptions, description_lengths = (
        open_column(folder / f"{name}.npy", kind) for name, kind in _COLUMNS.items()
    )
    description = read_numbers(folder / _DESCRIPTION, ("n_repeated_names", "n_nucleotides"))
    n = len(file_index)
    columns = (lengths, accession_lengths, description_lengths)
    require(n and all(len(column) == n for column in columns), f"{folder}: columns of the database have different lengths, or none")
    database = SequenceDatabase(
        residues,
        segment_offsets(lengths),
        file_index,
        accessions,
        segment_offsets(accession_lengths),
        descriptions,
        segment_offsets(description_lengths),
        description["n_repeated_names"],
        description["n_nucleotides"],
    )
    checked_offsets(database.offsets, len(residues), f"{folder}: residues")
    database = replace(database, features=open_features(folder, database.offsets))
    checked_texts(accessions, database.accession_offsets, f"{folder}: accessions")
    checked_texts(descriptions, database.description_offsets, f"{folder}: descriptions")
    require((lengths[1:] >= lengths[:-1]).all(), f"{folder}: the sequences of the database are not in order of length")
    in_bounds = residues.min(initial=0) >= 0 and residues.max(initial=0) < len(SYMBOLS)
    require(in_bounds, f"{folder}: the database contains invalid residue codes")
    is_present = row_mask(n, file_index[file_index < n])
    require(is_present.all(), f"{folder}: the positions of the sequences in their files are not unique")
    counts_are_possible = max(database.n_repeated_names, database.n_nucleotides) <= n
    require(counts_are_possible, f"{folder}: the declared number of sequences exceeds their actual number")
    return database
