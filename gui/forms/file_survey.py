"""What files are, found out in the background: a disk may be slow, and the window never waits for it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal

from engine.errors import ProteoscopeError
from engine.formats.recognition import recognise
from engine.formats.sources import ByteSource, blocks
from engine.sequences.database import looks_like_nucleotides, nucleotide_counts
from engine.sequences.matrices import encode

__all__ = [
    "DATABASE_SUFFIXES",
    "SPECTRUM_SUFFIXES",
    "FileKind",
    "FileSurvey",
    "SequenceCount",
    "Survey",
    "count_letters",
    "count_sequences",
    "file_kind",
]

SPECTRUM_SUFFIXES = (".mzml", ".mzxml", ".mgf", ".ms2", ".dta", ".pkl")
DATABASE_SUFFIXES = (".fasta", ".fa", ".faa", ".fas")
_MOST_FILES = 5000
_MOST_COUNTED = 1 << 29
_BLOCK = 1 << 20
_MOST_JUDGED = 1 << 22
_HEADERS, _REMARKS = re.compile(rb"^>.*", re.MULTILINE), re.compile(rb"^;.*", re.MULTILINE)
_NOT_RESIDUES = b" \t\n0123456789-.*"


@dataclass(frozen=True)
class FileKind:
    """A file and what it is: ``spectra``, ``database``, or "" with the `problem` that it has. `format` as its name, `size` in bytes."""

    path: Path
    kind: str
    format: str = ""
    size: int = 0
    problem: str = ""


@dataclass(frozen=True)
class SequenceCount:
    """What a FASTA file holds.

    `n_nucleotides`: sequences that look like DNA or RNA. `is_whole` is false where only its beginning was counted.
    """

    n_sequences: int
    n_residues: int
    n_nucleotides: int
    is_whole: bool = True


@dataclass
class Survey:
    """What was found among files and folders."""

    files: list[FileKind] = field(default_factory=list)
    projects: list[Path] = field(default_factory=list)
    presets: list[Path] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[Path]:
        """The files of one kind."""
        return [one.path for one in self.files if one.kind == kind]


def file_kind(path: Path) -> FileKind:
    """What a file is, from its first bytes."""
    try:
        with ByteSource(path) as source:
            format_name = recognise(source)
            return FileKind(path, "database" if format_name == "FASTA" else "spectra", format_name, source.size)
    except ProteoscopeError as error:
        return FileKind(path, "", problem=str(error))
    except OSError as error:
        return FileKind(path, "", problem=f"{path}: cannot be read ({error.strerror})")


def count_sequences(path: Path, most_bytes: int = _MOST_COUNTED, is_wanted: Callable[[], bool] = lambda: True) -> SequenceCount | None:
    """Count the sequences and residues of a FASTA file, up to so many bytes; None where it cannot be read or is not wanted any more."""
    counter, n_read = _Counter(), 0
    try:
        with ByteSource(path) as source:
            for block in blocks(source, lambda text: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1, _BLOCK):
                if not is_wanted():
                    return None
                counter.add(block.text)
                n_read += len(block.text)
                if n_read >= most_bytes and not block.is_last:
                    return counter.result(is_whole=False)
    except (ProteoscopeError, OSError):
        return None
    return counter.result()


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

    def add(self, text: bytes) -> None:
        """Count a piece."""
        text = _REMARKS.sub(b"", text.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        self._n_sequences += text.count(b"\n>") + text.startswith(b">")
        letters = _HEADERS.sub(b">", text).translate(None, _NOT_RESIDUES)
        self._n_residues += len(letters) - letters.count(b">")
        finished, mark, rest = (self._unfinished + letters).rpartition(b">")
        self._count(finished)
        # So many letters say what a sequence is, also a chromosome.
        self._unfinished = (mark + rest)[:_MOST_JUDGED]

    def result(self, *, is_whole: bool = True) -> SequenceCount:
        """What was counted."""
        self._count(self._unfinished)
        self._unfinished = b""
        n_nucleotides = int(looks_like_nucleotides(np.concatenate(self._lengths), np.concatenate(self._counts)).sum())
        return SequenceCount(self._n_sequences, self._n_residues, n_nucleotides, is_whole)

    def _count(self, letters: bytes) -> None:
        """Count the letters of finished sequences, each behind a ``>``."""
        read = np.frombuffer(letters.upper(), np.uint8)
        starts = np.flatnonzero(read == ord(">"))
        # What is no letter is refused by the search, which says where it stands.
        is_residue = (read >= ord("A")) & (read <= ord("Z"))
        offsets = np.append(0, np.cumsum(is_residue))[np.append(starts, len(read))]
        self._lengths.append(np.diff(offsets))
        self._counts.append(nucleotide_counts(encode(read[is_residue]), offsets))


class FileSurvey(QObject):
    """Looks at files in a background thread and calls back in the window's thread, in the order asked. Another counts sequences."""

    _found = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="file-survey")
        self._counter = ThreadPoolExecutor(1, thread_name_prefix="file-counter")
        self._is_open = True
        self._found.connect(self._tell)

    def files(self, paths: Iterable[Path], tell: Callable[[FileKind], None]) -> None:
        """Find out what each file is; `tell` gets one after the other."""
        for path in paths:
            self._submit(lambda path=path: file_kind(path), tell)  # type: ignore[misc]

    def all_within(self, paths: Sequence[Path], tell: Callable[[Survey], None]) -> None:
        """Find out what files are and what folders hold: projects, and below other folders spectra and databases by their names' ends."""
        self._submit(lambda: _survey(paths), tell)

    def count(self, path: Path, tell: Callable[[SequenceCount | None], None]) -> None:
        """Count what a FASTA file holds."""
        if self._is_open:
            self._counter.submit(lambda: self._emit(tell, count_sequences(path, is_wanted=lambda: self._is_open)))

    def close(self) -> None:
        """Look at nothing more, and tell nobody."""
        self._is_open = False
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._counter.shutdown(wait=False, cancel_futures=True)

    def _submit(self, work: Callable[[], Any], tell: Callable[[Any], None]) -> None:
        if self._is_open:
            self._pool.submit(lambda: self._emit(tell, work()))

    def _emit(self, tell: Callable[[Any], None], found: Any) -> None:
        if self._is_open:
            self._found.emit(tell, found)

    def _tell(self, tell: Callable[[Any], None], found: Any) -> None:
        if self._is_open:
            tell(found)


def _survey(paths: Sequence[Path]) -> Survey:
    survey = Survey()
    for path in paths:
        if (path / "project.sqlite").is_file():
            survey.projects.append(path)
        elif path.name == "project.sqlite" and path.is_file():
            survey.projects.append(path.parent)
        elif path.suffix.lower() == ".toml":
            survey.presets.append(path)
        elif path.is_dir() and path.suffix.lower() not in (".d", ".raw"):
            survey.files += [file_kind(file) for file in _files_below(path)]
        else:
            survey.files.append(file_kind(path))
    return survey


def _files_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.lower().removesuffix(".gz").endswith(SPECTRUM_SUFFIXES + DATABASE_SUFFIXES):
                found.append(Path(parent, name))
                if len(found) == _MOST_FILES:
                    return found
    return found
