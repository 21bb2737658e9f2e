"""What files are, found out in the background: a disk may be slow, and the window never waits for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, Signal

from proteoscope import kernels
from proteoscope.engine import formats, structure_search
from proteoscope.engine import structures as structures_package
from proteoscope.engine.entry import FileSort
from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.formats.fastq import is_fastq
from proteoscope.engine.formats.letters import SequenceCount, count_sequences
from proteoscope.engine.formats.libraries.mgf import names_its_spectra
from proteoscope.engine.formats.recognition import HEAD_BYTES, every_format, recognise
from proteoscope.engine.formats.registry import bare_name, has_suffix_of, library_suffixes, names_of, suffixes_of
from proteoscope.engine.formats.sources import DATA_FOLDERS, ByteSource
from proteoscope.engine.formats.vendor import converter_of, unreadable, vendor_format
from proteoscope.engine.project import Project, is_project
from proteoscope.engine.project.digests import content_bytes
from proteoscope.engine.results.counts import counted
from proteoscope.engine.structures.sources import DATABASE_FILE, LISTS, structures_in

if TYPE_CHECKING:
    from proteoscope.engine.formats.spectra_content import SpectraContent
    from proteoscope.engine.structures.counting import StructureCount

__all__ = ["SORTS", "FileKind", "FileSurvey", "SearchedRun", "SortOfFiles", "Survey", "file_kind"]

_MAXIMUM_FILES = 3000
_MAXIMUM_LOOKED_INTO = 200
"""Files of structures of a folder or a list that are looked into before a search reads them all."""


class SortOfFiles(NamedTuple):
    """What a dialog calls files of some sorts, what they hold, as it stands inside a sentence, what else may be dropped for them, and their
    icon."""

    title: str
    sorts: tuple[FileSort, ...]
    held: str = ""
    hint: str = ""
    icon: str = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The endings of their names, without ``.gz``; folders have none."""
        annotated = library_suffixes() if "libraries" in self.sorts else ()
        return tuple(dict.fromkeys([*(suffix for sort in self.sorts for suffix in suffixes_of(sort)), *annotated]))

    @property
    def name_filter(self) -> str:
        """Their names, plain and gzipped, as a file dialog takes them."""
        # Qt matches them whatever their case.
        return f"{self.title} ({' '.join(f'*{suffix} *{suffix}.gz' for suffix in self.suffixes)})"


def _of_sort(sort: FileSort, title: str, held: str, hint: str, icon: str) -> SortOfFiles:
    return SortOfFiles(title, (sort,), held, hint, icon)


SORTS: dict[FileSort, SortOfFiles] = {
    "spectra": _of_sort("spectra", "Spectra", "spectra", f"{names_of('spectra')} files or a folder", "spectrum"),
    "proteins": _of_sort("proteins", f"{names_of('proteins')} files", "sequences", f"{names_of('proteins')} files", "database"),
    "reads": _of_sort("reads", f"{names_of('reads')} files", "reads with qualities", f"{names_of('reads')} files", "reads"),
    "identifications": _of_sort(
        "identifications", "Results of search engines", "results of another search engine", "results of another search engine", "results"
    ),
    "libraries": _of_sort("libraries", "Spectral libraries", "spectral libraries", f"{names_of('libraries')} files", "spectrum"),
    "structures": _of_sort("structures", "Structures", "structures", f"{names_of('structures')} files or a folder", "structure"),
    "structure database": _of_sort("structure database", "Structure databases", "structures", "a structure database", "database"),
    "project": _of_sort("project", "Projects", "a project", "the folder of a project", "folder"),
}
"""The sorts of files that searches read."""


@dataclass(frozen=True)
class FileKind:
    """A file and what it is: of which sort, None with the `problem` that it has. `format` as its name, `size` in bytes.

    `is_annotated`: its spectra say what they are of, so that it can be a spectral library too. `unknown`: what a file in no known format
    seems to be.
    """

    path: Path
    sort: FileSort | None
    format: str = ""
    size: int = 0
    problem: str = ""
    is_annotated: bool = False
    unknown: str = ""

    @property
    def sorts(self) -> frozenset[FileSort]:
        """All that it can be taken for."""
        return frozenset(([] if self.sort is None else [self.sort]) + (["libraries"] if self.is_annotated else []))


@dataclass
class Survey:
    """Results among files and folders."""

    files: list[FileKind] = field(default_factory=list)
    projects: list[Path] = field(default_factory=list)
    presets: list[Path] = field(default_factory=list)
    left_out: list[FileKind] = field(default_factory=list)
    """Files of folders that no search reads."""

    @property
    def sorts(self) -> set[FileSort]:
        """Sorts of the files."""
        return {file.sort for file in self.files if file.sort is not None}

    def of_sort(self, sort: FileSort) -> list[FileKind]:
        """The files of one sort."""
        return [file for file in self.files if file.sort == sort]


class SearchedRun(NamedTuple):
    """A finished run of a project that another search can go on from: its id, when it began, and the names of the files that it read."""

    id: str
    started: datetime
    files: tuple[str, ...]


def file_kind(path: Path) -> FileKind:
    """What a file is, from its first bytes; a folder may be a structure database, or hold structures or a run of an instrument, and a list
    may name some structures."""
    try:
        if (makers := vendor_format(path)) is not None:
            if (installed := converter_of(makers)) is None:
                raise unreadable(path, makers)
            return FileKind(path, "spectra", f"{makers.name.partition(' ')[2]}, by {installed[0]}", content_bytes(path))
        if path.is_dir():
            return _folder_kind(path)
        with ByteSource(path) as source:
            if has_suffix_of(path.name, "structures"):
                return _structure_kind(path, source.size)
            # Paths that begin with a slash would be taken for comments of an MGF file.
            if path.suffix.lower() in LISTS and (found := _list_kind(path, source.size)):
                return found
            if is_fastq(source):
                return FileKind(path, "reads", names_of("reads"), source.size)
            try:
                written_as = recognise(source)
            except InputError:
                if not structures_package.reading.is_structure(path):
                    raise
                return FileKind(path, "structures", "structure", source.size)
            is_annotated = bool(written_as.library_reader) and names_its_spectra(source.peek(HEAD_BYTES))
            return FileKind(path, written_as.sort, written_as.name, source.size, is_annotated=is_annotated)
    except ProteoscopeError as error:
        unknown = error.reason if isinstance(error, InputError) and error.remedy.startswith(every_format()) else ""
        return FileKind(path, None, problem=str(error), unknown=unknown)
    except OSError as error:
        return FileKind(path, None, problem=f"{path}: cannot be read ({error.strerror})")


def _folder_kind(folder: Path) -> FileKind:
    if (folder / DATABASE_FILE).is_file():
        return FileKind(folder, "structure database", "structure database")
    if is_project(folder):
        return FileKind(folder, "project", "project")
    n = len(structures_in(folder).files)
    if not n:
        return FileKind(folder, None, problem=f"{folder}: holds no files of structures. Choose another folder.")
    return FileKind(folder, "structures", f"folder with {counted(n, 'file')} of structures")


def _structure_kind(path: Path, size: int) -> FileKind:
    if not structures_package.reading.is_structure(path):
        return FileKind(path, None, problem=f"{path}: is no structure, whatever its name says. Give {names_of('structures')}.")
    return FileKind(path, "structures", "structure", size)


def _list_kind(path: Path, size: int) -> FileKind | None:
    """A list of structures, of which the first is there; None for all else."""
    try:
        listed = structure_search.structures.sources_of([path])
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
        self._is_open, self._telling = True, Lock()
        self._found.connect(self._tell)

    def files(self, paths: Iterable[Path], tell: Callable[[FileKind], None]) -> None:
        """Find out what each file is; `tell` gets one after the other."""
        for path in paths:
            self._submit(lambda path=path: file_kind(path), tell)  # type: ignore[misc]

    def all_within(self, paths: Sequence[Path], tell: Callable[[Survey], None]) -> None:
        """Find out what files are and what folders hold: projects, and below other folders files of our sorts by their content."""
        self._submit(lambda: _survey(paths), tell)

    def runs(self, folder: Path, kinds: Mapping[str, frozenset[str]], tell: Callable[[list[SearchedRun] | None], None]) -> None:
        """Find the finished runs of some kinds that have all tables that those of the kind must have, the newest first; None where there
        is no project to read."""
        self._submit(lambda: _runs_of(folder, kinds), tell)

    def missing_projects(self, folders: Sequence[str], tell: Callable[[frozenset[str]], None]) -> None:
        """Find out which projects are not there."""
        self._submit(lambda: frozenset(folder for folder in folders if not _is_there(Path(folder))), tell)

    def count(self, path: Path, tell: Callable[[SequenceCount | None], None]) -> None:
        """Count what a FASTA or FASTQ file holds."""
        if self._is_open:
            self._counter.submit(lambda: self._emit(tell, count_sequences(path, is_wanted=lambda: self._is_open)))

    def count_structures(self, found: FileKind, tell: Callable[[StructureCount | None], None]) -> None:
        """Look into structures, the first of many. None is told where what reads them must be compiled first: the search will do that."""
        if self._is_open:
            self._counter.submit(lambda: self._emit(tell, _structure_count(found, lambda: self._is_open)))

    def look_into_spectra(self, path: Path, tell: Callable[[SpectraContent | None], None]) -> None:
        """Find out what a file of spectra is of. None is told where what reads it must be compiled first: the search will do that."""
        if self._is_open:
            self._counter.submit(lambda: self._emit(tell, _spectra_content(path)))

    def close(self) -> None:
        """Look at nothing more, and tell nobody."""
        with self._telling:
            self._is_open = False
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._counter.shutdown(wait=False, cancel_futures=True)

    def _submit(self, work: Callable[[], Any], tell: Callable[[Any], None]) -> None:
        if self._is_open:
            self._pool.submit(lambda: self._emit(tell, work()))

    def _emit(self, tell: Callable[[Any], None], found: Any) -> None:
        # Not while this is closed, behind which it may be gone.
        with self._telling:
            if self._is_open:
                self._found.emit(tell, found)

    def _tell(self, tell: Callable[[Any], None], found: Any) -> None:
        if self._is_open:
            tell(found)


def _is_there(folder: Path) -> bool:
    try:
        return is_project(folder)
    except OSError:
        return False


def _runs_of(folder: Path, kinds: Mapping[str, frozenset[str]]) -> list[SearchedRun] | None:
    try:
        project = Project.open(folder)
        kept: dict[str, set[str]] = {}
        for result in project.results():
            kept.setdefault(result.run, set()).add(result.name)
        done = [
            run
            for run in reversed(project.runs())
            if run.kind in kinds and run.status == "done" and kinds[run.kind] <= kept.get(run.id, set())
        ]
        return [SearchedRun(run.id, run.started, tuple(one.path.name for one in project.inputs(run.id))) for run in done]
    except ProteoscopeError:
        return None


def _spectra_content(path: Path) -> SpectraContent | None:
    return formats.spectra_content.spectra_content(path) if kernels.cpu.signatures.is_compiled("identify") else None


def _structure_count(found: FileKind, is_wanted: Callable[[], bool]) -> StructureCount | None:
    if found.sort == "structure database":
        return structures_package.counting.count_database(found.path)
    if not kernels.cpu.signatures.is_compiled("superposition"):
        return None

    try:
        files = [(one.path, one.chain) for one in structure_search.structures.sources_of([found.path])]
    except InputError:
        return None
    return structures_package.counting.count_structures(files, most=_MAXIMUM_LOOKED_INTO, is_wanted=is_wanted)


def _survey(paths: Sequence[Path]) -> Survey:
    survey = Survey()
    for path in paths[:_MAXIMUM_FILES]:
        try:
            _add(survey, path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            survey.files.append(
                FileKind(path, None, problem=f"{path}: cannot be read ({reason}). Check its name, and whether you may read it.")
            )
    if len(paths) > _MAXIMUM_FILES:
        survey.files.append(_left_over(paths[_MAXIMUM_FILES], f"{len(paths):,} files and folders were dropped"))
    return survey


def _left_over(path: Path, what: str) -> FileKind:
    """Return what is shown of files beyond those that are taken from a drop, the first of which is `path`."""
    return FileKind(path, None, problem=f"{what}; only the first {_MAXIMUM_FILES:,} files are taken. Drop the others after them.")


def _add(survey: Survey, path: Path) -> None:
    """Add to a survey what a file is, or what a folder holds."""
    endings = tuple(suffix for sort in SORTS for suffix in suffixes_of(sort))
    if (path / "project.sqlite").is_file():
        survey.projects.append(path)
    elif path.name == "project.sqlite" and path.is_file():
        survey.projects.append(path.parent)
    elif path.suffix.lower() == ".toml":
        survey.presets.append(path)
    elif path.name == DATABASE_FILE and path.is_file():
        survey.files.append(file_kind(path.parent))
    elif (path / DATABASE_FILE).is_file():
        survey.files.append(file_kind(path))
    elif path.is_dir() and path.suffix.lower() not in DATA_FOLDERS and vendor_format(path) is None:
        files = _files_below(path)
        if len(files) > _MAXIMUM_FILES:
            survey.files.append(_left_over(files[_MAXIMUM_FILES], f"{path} holds more than {_MAXIMUM_FILES:,} files"))
        for file in files[:_MAXIMUM_FILES]:
            kind = file_kind(file)
            # What a file is named like, it was meant to be: its fault is told.
            is_named = bare_name(file.name).endswith(endings)
            is_read = kind.sort is not None or file.is_dir() or is_named or vendor_format(file) is not None
            (survey.files if is_read else survey.left_out).append(kind)
    else:
        survey.files.append(file_kind(path))


def _files_below(folder: Path) -> list[Path]:
    """Files, but hidden ones, and runs of instruments; structures by the folders that hold them, since there may be a hundred thousand."""
    found: list[Path] = []
    structures = suffixes_of("structures")
    covered: Path | None = None
    for parent, folders, names in os.walk(folder):
        here = Path(parent)
        if is_project(here):
            folders.clear()
            continue
        # A run that an instrument writes as a folder is one file.
        found += [here / name for name in sorted(folders) if Path(name).suffix.lower() in DATA_FOLDERS]
        folders[:] = sorted(name for name in folders if Path(name).suffix.lower() not in DATA_FOLDERS)
        if DATABASE_FILE in names:
            found.append(here)
            folders.clear()
            continue
        if vendor_format(here) is not None:
            # One measurement, whose parts may be called as files of our sorts are.
            found.append(here)
            folders.clear()
            continue
        bare = [(name, bare_name(name)) for name in sorted(names)]
        if any(name.endswith(structures) for _, name in bare) and not (covered and here.is_relative_to(covered)):
            # It stands for the structures in the folders below it too.
            found.append(covered := here)
        # Lists name structures, which their folder stands for.
        stood_for = (*structures, *LISTS) if covered and here.is_relative_to(covered) else structures
        found += [here / name for name, ending in bare if not ending.endswith(stood_for) and not name.startswith(".")]
        if len(found) > _MAXIMUM_FILES:
            break
    return found
