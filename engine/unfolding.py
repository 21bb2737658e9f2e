"""Limits of the expanded content of files, for all readers.

A small untrusted file may refer to a long text a million times, decompress to gigabytes, or be a database that computes its columns.
Readers count the expanded content, and reject a file if the count exceeds a fixed amount plus a multiple of the file's size on disk.
"""

from collections import Counter
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from proteoscope.engine.errors import InputError

__all__ = [
    "ANNOTATED",
    "ANNOTATION_BYTES",
    "ATOMS",
    "ATTRIBUTES",
    "BOUNDS",
    "CELLS",
    "CHARACTERS",
    "CIF_CHARACTERS",
    "CIF_ROWS",
    "CIF_VALUES",
    "COMPUTING_STEPS",
    "ENTRIES",
    "FEATURES",
    "LIBRARY_PEAKS",
    "LINES",
    "MATCHES",
    "NOISE",
    "PACKED_BYTES",
    "PEAKS",
    "READS",
    "RECORDS",
    "REFERENCES",
    "RUN_PEAKS",
    "SCORES",
    "SCORE_NAMES",
    "SEARCHED",
    "SPECTRA",
    "TABLE_BYTES",
    "TAGS",
    "WORDS",
    "Bound",
    "Unfolding",
]


class Bound(NamedTuple):
    """Limit of one type of expanded content: at most `free` plus `times` per byte of the file's size on disk.

    Attributes
    ----------
    where
        Files to which the limit applies, as worded in the manual.
    what
        Name of the counted content.
    remedy
        Remedy for a file that exceeds the limit.
    """

    where: str
    what: str
    times: float
    free: int
    remedy: str

    def most(self, n_bytes: int) -> int:
        """Return the maximum count for a file of `n_bytes` bytes."""
        return self.free + int(self.times * n_bytes)

    def check(self, path: str | Path, n: int, n_bytes: int, *, place: str = "") -> None:
        """Raise InputError if the count `n` exceeds the limit for a file of `n_bytes` bytes.

        Raises
        ------
        InputError
            If `n` exceeds the limit.
        """
        if n > self.most(n_bytes):
            raise InputError(
                path,
                f"expands to more than {self.most(n_bytes):,} {self.what}, the limit for a file of {n_bytes:,} bytes",
                place=place,
                remedy=self.remedy,
            )


class Unfolding:
    """Counter of the expanded content of one file.

    Parameters
    ----------
    path
        Path of the file.
    n_bytes
        Size of the file on disk; for a compressed file, the compressed size.
    """

    def __init__(self, path: str | Path, n_bytes: int) -> None:
        self.path, self.n_bytes = path, n_bytes
        self._counts: Counter[Bound] = Counter()
        self._lock = Lock()

    def add(self, bound: Bound, n: int, *, place: str = "") -> None:
        """Add `n` to the count of a limit, and raise InputError if the count exceeds it.

        Raises
        ------
        InputError
            If the count exceeds the limit.
        """
        with self._lock:
            self._counts[bound] += n
            total = self._counts[bound]
        self.check(bound, total, place=place)

    def check(self, bound: Bound, n: int, *, place: str = "") -> None:
        """Raise InputError if the total count `n` exceeds the limit."""
        bound.check(self.path, n, self.n_bytes, place=place)


_UNPACK = "If you trust the file, unpack it and use the unpacked file"
_REMEDY = "Write it again with the program that created it"
_PARTS = "If you trust the file, divide it into several files"
_TEXT = "Copy or download it again, or use it as mmCIF"

PACKED_BYTES = Bound("gzip files", "bytes", 100, 16 << 20, _UNPACK)
TABLE_BYTES = Bound("Parquet tables", "bytes", 100, 64 << 20, "Do the search again")
SPECTRA = Bound("files of spectra", "spectra", 1 / 8, 1 << 17, _UNPACK)
LINES = Bound("files of spectra", "lines that are not peaks", 1, 1 << 17, _UNPACK)
PEAKS = Bound("files of spectra", "peaks", 10, 10 << 17, f"{_UNPACK}, without zlib compression")
NOISE = Bound("files of spectra", "numbers of noise", 20, 20 << 17, f"{_UNPACK}, without zlib compression")
RUN_PEAKS = Bound("Bruker runs", "peaks", 8, 0, "Copy it again, or convert it to mzML with msconvert (ProteoWizard)")
RECORDS = Bound("files of sequences", "records", 1 / 2, 1 << 17, _UNPACK)
READS = Bound("FASTQ files", "reads", 1 / 2, 1 << 17, _UNPACK)
ANNOTATION_BYTES = Bound("gzip files of UniProt, GenBank, EMBL and PIR entries", "bytes of entries", 16, 1 << 22, _UNPACK)
ANNOTATED = Bound("gzip files of UniProt, GenBank, EMBL and PIR entries", "entries", 1 / 128, 1 << 12, _UNPACK)
FEATURES = Bound("tracks (GFF3, BED)", "features", 1 / 4, 1 << 17, _PARTS)
ENTRIES = Bound("spectral libraries", "entries", 1 / 32, 1 << 15, _UNPACK)
LIBRARY_PEAKS = Bound("spectral libraries", "peaks of entries", 2, 1 << 20, f"{_UNPACK}, without zlib compression")
ATTRIBUTES = Bound("mzSpecLib", "attributes of sets", 4, 1 << 20, "Write the attributes into the entries that have them")
COMPUTING_STEPS = Bound("SQLite files", "steps of SQLite", 1000, 1_000_000_000, _REMEDY)
MATCHES = Bound("results of other programs", "matches", 1 / 16, 1 << 16, _UNPACK)
TAGS = Bound("results of other programs in XML", "XML tags", 1 / 2, 1 << 17, _UNPACK)
CHARACTERS = Bound(
    "results of other programs", "characters of the peptides, modifications and proteins that matches refer to", 32, 16 << 20, _PARTS
)
REFERENCES = Bound("results of other programs", "references from matches to proteins", 2, 1 << 21, _PARTS)
SCORES = Bound("results of other programs", "scores (matches times names of scores)", 4, 1 << 21, _PARTS)
SCORE_NAMES = Bound("results of other programs", "names of scores", 0, 500, _REMEDY)
SEARCHED = Bound("mzIdentML", "modifications searched for", 0, 1000, _REMEDY)
CELLS = Bound("tables of text", "cells", 4, 1 << 21, _UNPACK)
WORDS = Bound("mmCIF", "words", 2, 1 << 21, _UNPACK)
ATOMS = Bound("PDB", "atoms", 1 / 8, 1 << 18, _UNPACK)
CIF_ROWS = Bound("BinaryCIF", "rows of a category", 1 / 4, 1 << 12, _TEXT)
CIF_VALUES = Bound("BinaryCIF", "values", 2, 1 << 17, _TEXT)
CIF_CHARACTERS = Bound("BinaryCIF", "characters of values", 16, 1 << 20, _TEXT)

BOUNDS = tuple(bound for bound in list(vars().values()) if isinstance(bound, Bound))
"""All limits, in the order in which they are defined."""
