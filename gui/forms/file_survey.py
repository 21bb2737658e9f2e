"""What files are, found out in the background: a disk may be slow, and the window never waits for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Signal

from engine.entry import FileSort
from engine.errors import ProteoscopeError
from engine.formats.letters import SequenceCount, count_sequences
from engine.formats.recognition import recognise
from engine.formats.sources import ByteSource

__all__ = ["SORTS", "FileKind", "FileSurvey", "SortOfFiles", "Survey", "file_kind"]

_MOST_FILES = 5000
_DATABASE = "database.json"  # of a structure database


class SortOfFiles(NamedTuple):
    """What a dialog calls files of a sort, the endings of their names, what else may be dropped for them, and their icon."""

    title: str
    suffixes: tuple[str, ...]
    hint: str
    icon: str

    @property
    def name_filter(self) -> str:
        """Their names, plain and gzipped, as a file dialog takes them."""
        # Qt matches them whatever their case.
        return f"{self.title} ({' '.join(f'*{suffix} *{suffix}.gz' for suffix in self.suffixes)})"


SORTS: dict[FileSort, SortOfFiles] = {
    "spectra": SortOfFiles(
        "Spectra",
        (".mzml", ".mzxml", ".mgf", ".ms2", ".dta", ".pkl"),
        "mzML, mzXML, MGF, MS2, DTA or PKL files or a folder",
        "spectrum",
    ),
    "proteins": SortOfFiles("FASTA files", (".fasta", ".fa", ".faa", ".fas"), "FASTA files", "database"),
    "structures": SortOfFiles(
        "Structures", (".pdb", ".ent", ".cif", ".mmcif", ".pdbx", ".bcif"), "PDB, mmCIF or BinaryCIF files or a folder", "search"
    ),
}
"""The sorts of files that searches read."""


@dataclass(frozen=True)
class FileKind:
    """A file and what it is: of which sort, None with the `problem` that it has. `format` as its name, `size` in bytes."""

    path: Path
    sort: FileSort | None
    format: str = ""
    size: int = 0
    problem: str = ""


@dataclass
class Survey:
    """What was found among files and folders."""

    files: list[FileKind] = field(default_factory=list)
    projects: list[Path] = field(default_factory=list)
    presets: list[Path] = field(default_factory=list)

    @property
    def sorts(self) -> set[FileSort]:
        """Sorts of the files."""
        return {one.sort for one in self.files if one.sort is not None}

    def of_sort(self, sort: FileSort) -> list[Path]:
        """The files of one sort."""
        return [one.path for one in self.files if one.sort == sort]


def file_kind(path: Path) -> FileKind:
    """What a file is: a structure by its name, all else from its first bytes."""
    try:
        with ByteSource(path) as source:
            if path.name == _DATABASE:
                return FileKind(path, "structures", "structure database", source.size)
            if path.name.lower().removesuffix(".gz").endswith(SORTS["structures"].suffixes):
                return FileKind(path, "structures", "structure", source.size)
            format_name = recognise(source)
            return FileKind(path, "proteins" if format_name == "FASTA" else "spectra", format_name, source.size)
    except ProteoscopeError as error:
        return FileKind(path, None, problem=str(error))
    except OSError as error:
        return FileKind(path, None, problem=f"{path}: cannot be read ({error.strerror})")


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
        """Find out what files are and what folders hold: projects, and below other folders files of our sorts by their names' ends."""
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
        elif (path / _DATABASE).is_file():
            survey.files.append(file_kind(path / _DATABASE))
        elif path.is_dir() and path.suffix.lower() not in (".d", ".raw"):
            survey.files += [file_kind(file) for file in _files_below(path)]
        else:
            survey.files.append(file_kind(path))
    return survey


def _files_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    endings = tuple(suffix for sort in SORTS.values() for suffix in sort.suffixes)
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.lower().removesuffix(".gz").endswith(endings):
                found.append(Path(parent, name))
                if len(found) == _MOST_FILES:
                    return found
    return found
