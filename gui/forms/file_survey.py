"""What files are, found out in the background: a disk may be slow, and the window never waits for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, Signal

from engine.entry import FileSort
from engine.errors import InputError, ProteoscopeError
from engine.formats.fastq import is_fastq
from engine.formats.letters import SequenceCount, count_sequences
from engine.formats.recognition import recognise
from engine.formats.sources import ByteSource
from engine.project import Project, is_project

if TYPE_CHECKING:
    from engine.structures.counting import StructureCount

__all__ = ["SORTS", "FileKind", "FileSurvey", "SearchedRun", "SortOfFiles", "Survey", "file_kind"]

_MOST_FILES = 5000
_DATABASE = "database.json"  # of a structure database
_LISTS = (".txt", ".list", ".lst")
_MOST_LOOKED_INTO = 200
"""Files of structures of a folder or a list that are looked into before a search reads them all."""


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
    "proteins": SortOfFiles("FASTA files", (".fasta", ".fa", ".faa", ".fna", ".fas"), "FASTA files", "database"),
    "reads": SortOfFiles("FASTQ files", (".fastq", ".fq"), "FASTQ files", "reads"),
    "structures": SortOfFiles(
        "Structures", (".pdb", ".ent", ".cif", ".mmcif", ".pdbx", ".bcif"), "PDB, mmCIF or BinaryCIF files or a folder", "structure"
    ),
    "structure database": SortOfFiles("Structure databases", (), "a structure database", "database"),
    "project": SortOfFiles("Projects", (), "the folder of a project", "folder"),
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


class SearchedRun(NamedTuple):
    """A finished run of a project that another search can go on from: its id, when it began, and the names of the files that it read."""

    id: str
    started: datetime
    files: tuple[str, ...]


def file_kind(path: Path) -> FileKind:
    """What a file is, from its first bytes; a folder may be a structure database, or hold structures, and a list may name some."""
    try:
        if path.is_dir():
            return _folder_kind(path)
        with ByteSource(path) as source:
            if path.name.lower().removesuffix(".gz").endswith(SORTS["structures"].suffixes):
                return _structure_kind(path, source.size)
            # Paths that begin with a slash would be taken for comments of an MGF file.
            if path.name.lower().endswith(_LISTS) and (found := _list_kind(path, source.size)):
                return found
            if is_fastq(source):
                return FileKind(path, "reads", "FASTQ", source.size)
            try:
                format_name = recognise(source)
            except InputError:
                from engine.structures.reading import is_structure

                if not is_structure(path):
                    raise
                return FileKind(path, "structures", "structure", source.size)
            return FileKind(path, "proteins" if format_name == "FASTA" else "spectra", format_name, source.size)
    except ProteoscopeError as error:
        return FileKind(path, None, problem=str(error))
    except OSError as error:
        return FileKind(path, None, problem=f"{path}: cannot be read ({error.strerror})")


def _folder_kind(folder: Path) -> FileKind:
    if (folder / _DATABASE).is_file():
        return FileKind(folder, "structure database", "structure database")
    if is_project(folder):
        return FileKind(folder, "project", "project")
    n = len(_structures_in(folder))
    if not n:
        return FileKind(folder, None, problem=f"{folder}: holds no files of structures. Choose another folder.")
    return FileKind(folder, "structures", f"folder with {n} file{'' if n == 1 else 's'} of structures")


def _structures_in(folder: Path) -> list[str]:
    """Names of the files of structures that lie in a folder itself, which are those that a search takes of it."""
    with os.scandir(folder) as entries:
        return [
            one.name for one in entries if one.name.lower().removesuffix(".gz").endswith(SORTS["structures"].suffixes) and one.is_file()
        ]


def _structure_kind(path: Path, size: int) -> FileKind:
    from engine.structures.reading import is_structure

    if not is_structure(path):
        return FileKind(path, None, problem=f"{path}: is no structure, whatever its name says. Give PDB, mmCIF or BinaryCIF.")
    return FileKind(path, "structures", "structure", size)


def _list_kind(path: Path, size: int) -> FileKind | None:
    """A list of structures, of which the first is there; None for all else."""
    from engine.structure_search.structures import sources_of

    try:
        listed = sources_of([path])
        is_list = listed[0].path.is_file() and listed[0].path != path and file_kind(listed[0].path).sort == "structures"
    except (ProteoscopeError, OSError, ValueError):
        return None
    many = "" if len(listed) == 1 else "s"
    return FileKind(path, "structures", f"list of {len(listed)} file{many} of structures", size) if is_list else None


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

    def runs(self, folder: Path, kind: str, tables: frozenset[str], tell: Callable[[list[SearchedRun] | None], None]) -> None:
        """Find the finished runs of a kind that have all of these tables, the newest first; None where there is no project to read."""
        self._submit(lambda: _runs_of(folder, kind, tables), tell)

    def count(self, path: Path, tell: Callable[[SequenceCount | None], None]) -> None:
        """Count what a FASTA or FASTQ file holds."""
        if self._is_open:
            self._counter.submit(lambda: self._emit(tell, count_sequences(path, is_wanted=lambda: self._is_open)))

    def count_structures(self, found: FileKind, tell: Callable[[StructureCount | None], None]) -> None:
        """Look into structures, the first of many. None is told where what reads them must be compiled first: the search will do that."""
        if self._is_open:
            self._counter.submit(lambda: self._emit(tell, _structure_count(found, lambda: self._is_open)))

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


def _runs_of(folder: Path, kind: str, tables: frozenset[str]) -> list[SearchedRun] | None:
    try:
        project = Project.open(folder)
        kept: dict[str, set[str]] = {}
        for one in project.results():
            kept.setdefault(one.run, set()).add(one.name)
        done = [run for run in reversed(project.runs(kind)) if run.status == "done" and tables <= kept.get(run.id, set())]
        return [SearchedRun(run.id, run.started, tuple(one.path.name for one in project.inputs(run.id))) for run in done]
    except ProteoscopeError:
        return None


def _structure_count(found: FileKind, is_wanted: Callable[[], bool]) -> StructureCount | None:
    from engine.structures.compilation import STRUCTURE_KERNELS
    from engine.structures.counting import count_database, count_structures

    if found.sort == "structure database":
        return count_database(found.path)
    if not STRUCTURE_KERNELS.are_compiled:
        return None
    from engine.structure_search.structures import sources_of

    try:
        files = [(one.path, one.chain) for one in sources_of([found.path])]
    except InputError:
        return None
    return count_structures(files, most=_MOST_LOOKED_INTO, is_wanted=is_wanted)


def _survey(paths: Sequence[Path]) -> Survey:
    survey = Survey()
    for path in paths:
        if (path / "project.sqlite").is_file():
            survey.projects.append(path)
        elif path.name == "project.sqlite" and path.is_file():
            survey.projects.append(path.parent)
        elif path.suffix.lower() == ".toml":
            survey.presets.append(path)
        elif path.name == _DATABASE and path.is_file():
            survey.files.append(file_kind(path.parent))
        elif (path / _DATABASE).is_file():
            survey.files.append(file_kind(path))
        elif path.is_dir() and path.suffix.lower() not in (".d", ".raw"):
            survey.files += [file_kind(file) for file in _files_below(path)]
        else:
            survey.files.append(file_kind(path))
    return survey


def _files_below(folder: Path) -> list[Path]:
    """Files of our sorts; structures by the folders that hold them, since there may be a hundred thousand."""
    found: list[Path] = []
    of_structures = SORTS["structures"].suffixes
    endings = tuple(suffix for name, sort in SORTS.items() if name != "structures" for suffix in sort.suffixes)
    for parent, folders, names in os.walk(folder):
        folders.sort()
        bare = [(name, name.lower().removesuffix(".gz")) for name in sorted(names)]
        if any(name.endswith(of_structures) for _, name in bare) or _DATABASE in names:
            found.append(Path(parent))
        if _DATABASE in names:
            folders.clear()
            continue
        found += [Path(parent, name) for name, ending in bare if ending.endswith(endings)]
        if len(found) >= _MOST_FILES:
            return found[:_MOST_FILES]
    return found
