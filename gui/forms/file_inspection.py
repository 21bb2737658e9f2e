"""Inspection of files in the background, so that a slow disk does not block the window."""

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
from proteoscope.engine.entry import FileContent
from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.formats.recognition import HEAD_BYTES, every_format, recognise
from proteoscope.engine.formats.registry import bare_name, format_names, has_suffix, library_suffixes, list_suffixes
from proteoscope.engine.formats.sources import DATA_FOLDERS, ByteSource
from proteoscope.engine.formats.vendor import find_converter, unreadable, vendor_format
from proteoscope.engine.project import Project, is_project
from proteoscope.engine.project.digests import content_bytes
from proteoscope.engine.results.counts import counted

if TYPE_CHECKING:
    from proteoscope.engine.formats.sequence_type import SequenceCount
    from proteoscope.engine.formats.spectra_content import SpectraContent
    from proteoscope.engine.structures.counting import StructureCount

_MAXIMUM_FILES = 3000
_MAXIMUM_INSPECTED = 200
"""Maximum number of structure files in a folder or list that the form inspects; the search reads all files."""


class FileCategory(NamedTuple):
    """One or several file types, with texts about them.

    `title` is the name of the filter in file dialogs, `held` is a noun for the content of the files, `hint` describes which files can be
    dropped, and `icon` is the name of an icon.
    """

    title: str
    contents: tuple[FileContent, ...]
    held: str = ""
    hint: str = ""
    icon: str = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """File name extensions without ``.gz``; empty for folders."""
        annotated = library_suffixes() if "libraries" in self.contents else ()
        return tuple(dict.fromkeys([*(suffix for content in self.contents for suffix in list_suffixes(content)), *annotated]))

    @property
    def name_filter(self) -> str:
        """Filter of a file dialog for plain and gzipped files."""
        # Qt matches names case-insensitively.
        return f"{self.title} ({' '.join(f'*{suffix} *{suffix}.gz' for suffix in self.suffixes)})"


def _category(content: FileContent, title: str, held: str, hint: str, icon: str) -> FileCategory:
    return FileCategory(title, (content,), held, hint, icon)


FILE_CATEGORIES: dict[FileContent, FileCategory] = {
    "spectra": _category("spectra", "Spectra", "spectra", f"{format_names('spectra')} files or a folder", "spectrum"),
    "proteins": _category("proteins", f"{format_names('proteins')} files", "sequences", f"{format_names('proteins')} files", "database"),
    "reads": _category("reads", f"{format_names('reads')} files", "reads with base qualities", f"{format_names('reads')} files", "reads"),
    "identifications": _category(
        "identifications", "Results of search engines", "results of another search engine", "results of another search engine", "results"
    ),
    "libraries": _category("libraries", "Spectral libraries", "spectral libraries", f"{format_names('libraries')} files", "spectrum"),
    "structures": _category("structures", "Structures", "structures", f"{format_names('structures')} files or a folder", "structure"),
    "structure database": _category("structure database", "Structure databases", "structures", "a structure database", "database"),
    "project": _category("project", "Projects", "a project", "a project folder", "folder"),
}
"""Texts for each file type that a search can read."""


@dataclass(frozen=True)
class FileKind:
    """File and its type.

    Attributes
    ----------
    path : Path
        The file or folder.
    content : FileContent or None
        Type of its content, or None if it cannot be used.
    format : str
        Name of the file format, or ''.
    size : int
        Size in bytes.
    is_annotated : bool
        True if its spectra have identifications, so that it can also be used as a spectral library.
    unknown : str
        Probable content of a file in an unknown format.
    """

    path: Path
    content: FileContent | None
    format: str = ""
    size: int = 0
    problem: str = ""
    is_annotated: bool = False
    unknown: str = ""

    @property
    def contents(self) -> frozenset[FileContent]:
        """All file types for which the file can be used."""
        return frozenset(([] if self.content is None else [self.content]) + (["libraries"] if self.is_annotated else []))


@dataclass
class FileInspection:
    """Projects, presets and input files that were found among dropped or selected files and folders."""

    files: list[FileKind] = field(default_factory=list)
    projects: list[Path] = field(default_factory=list)
    presets: list[Path] = field(default_factory=list)
    left_out: list[FileKind] = field(default_factory=list)
    """Files in folders that no search can read."""

    @property
    def contents(self) -> set[FileContent]:
        """Types of the files."""
        return {file.content for file in self.files if file.content is not None}

    def of_type(self, content: FileContent) -> list[FileKind]:
        """Return the files of a type."""
        return [file for file in self.files if file.content == content]


class SearchedRun(NamedTuple):
    """Finished run whose results another search can use: run id, start time, and names of the input files."""

    id: str
    started: datetime
    files: tuple[str, ...]


def file_kind(path: Path) -> FileKind:
    """Return the type of a file or folder, determined from its content.

    A folder may be a structure database, a project or an instrument run, or may contain structures. A text file may be a list of
    structure files.
    """
    try:
        if (makers := vendor_format(path)) is not None:
            if (installed := find_converter(makers)) is None:
                raise unreadable(path, makers)
            return FileKind(path, "spectra", f"{makers.name.partition(' ')[2]}, by {installed[0]}", content_bytes(path))
        if path.is_dir():
            return _folder_kind(path)
        with ByteSource(path) as source:
            if has_suffix(path.name, "structures"):
                return _structure_kind(path, source.size)
            # An MGF file may look like a list of paths, since its comments may start with a slash.
            if path.suffix.lower() in structures_package.sources.LISTS and (result := _list_kind(path, source.size)):
                return result
            if formats.fastq.is_fastq(source):
                return FileKind(path, "reads", format_names("reads"), source.size)
            try:
                written_as = recognise(source)
            except InputError:
                if not (name := structures_package.reading.structure_format(path)):
                    raise
                return FileKind(path, "structures", name, source.size)
            is_annotated = bool(written_as.library_reader) and formats.libraries.mgf.has_molecule_names(source.peek(HEAD_BYTES))
            return FileKind(path, written_as.content, written_as.name, source.size, is_annotated=is_annotated)
    except InputError as error:
        # Such an error lists all formats, or formats of other inputs, which do not apply to the list to which the file was added.
        is_unknown = error.remedy.startswith(every_format()) or "no known format" in error.reason
        return FileKind(path, None, problem=str(error), unknown=error.reason if is_unknown else "")
    except ProteoscopeError as error:
        return FileKind(path, None, problem=str(error))
    except OSError as error:
        return FileKind(path, None, problem=f"{path}: cannot be read ({error.strerror})")


def _folder_kind(folder: Path) -> FileKind:
    if (folder / structures_package.sources.DATABASE_FILE).is_file():
        return FileKind(folder, "structure database", "structure database")
    if is_project(folder):
        return FileKind(folder, "project", "project")
    n = len(structures_package.sources.structures_in(folder).files)
    if not n:
        return FileKind(folder, None, problem=f"{folder}: contains no structure files. Choose another folder.")
    return FileKind(folder, "structures", f"folder with {counted(n, 'structure file')}")


def _structure_kind(path: Path, size: int) -> FileKind:
    if not (name := structures_package.reading.structure_format(path)):
        return FileKind(path, None, problem=f"{path}: is not a structure file despite its name. Choose {format_names('structures')} files.")
    return FileKind(path, "structures", name, size)


def _list_kind(path: Path, size: int) -> FileKind | None:
    """Return the type of a list of structure files, whose first path must be a structure file; None for other files."""
    try:
        listed = structure_search.structures.sources_of([path])
        is_list = listed[0].path.is_file() and listed[0].path != path and file_kind(listed[0].path).content == "structures"
    except (ProteoscopeError, OSError, ValueError):
        return None
    many = "" if len(listed) == 1 else "s"
    return FileKind(path, "structures", f"list of {len(listed)} structure file{many}", size) if is_list else None


class FileInspector(QObject):
    """Inspector of files in a background thread.

    Each method passes its result to the function `deliver`, which is called in the window's thread, in the order of the requests. A second
    background thread counts sequences and reads spectra and structures.
    """

    _found = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="file-inspection")
        self._counter = ThreadPoolExecutor(1, thread_name_prefix="file-counter")
        self._is_open, self._delivery_lock = True, Lock()
        self._found.connect(self._deliver)

    def files(self, paths: Iterable[Path], deliver: Callable[[FileKind], None]) -> None:
        """Inspect files and call `deliver` for each."""
        for path in paths:
            self._submit(lambda path=path: file_kind(path), deliver)  # type: ignore[misc]

    def all_within(self, paths: Sequence[Path], deliver: Callable[[FileInspection], None]) -> None:
        """Find projects, presets, and input files of any type among files and folders, including subfolders."""
        self._submit(lambda: _inspect(paths), deliver)

    def runs(self, folder: Path, kinds: Mapping[str, frozenset[str]], deliver: Callable[[list[SearchedRun] | None], None]) -> None:
        """Find the finished runs of a project that a search can use, newest first.

        The keys of `kinds` are the kinds of searches whose runs can be used, and the values are the names of the result tables that such a
        run must have. Delivers None if the project cannot be read.
        """
        self._submit(lambda: _runs_of(folder, kinds), deliver)

    def missing_projects(self, folders: Sequence[str], deliver: Callable[[frozenset[str]], None]) -> None:
        """Find the folders that do not contain a project."""
        self._submit(lambda: frozenset(folder for folder in folders if not _is_there(Path(folder))), deliver)

    def count(self, path: Path, deliver: Callable[[SequenceCount | None], None]) -> None:
        """Count the sequences in a FASTA or FASTQ file, and deliver their number."""
        if self._is_open:
            self._counter.submit(lambda: self._emit(deliver, formats.sequence_type.count_sequences(path, is_wanted=lambda: self._is_open)))

    def count_structures(self, file: FileKind, deliver: Callable[[StructureCount | None], None]) -> None:
        """Count the chains and residues in a structure file, folder or list, up to a maximum number of files, and deliver the numbers.

        Delivers None if no search has compiled the reader yet, since compiling takes long.
        """
        if self._is_open:
            self._counter.submit(lambda: self._emit(deliver, _structure_count(file, lambda: self._is_open)))

    def inspect_spectra(self, path: Path, deliver: Callable[[SpectraContent | None], None]) -> None:
        """Read facts about a spectrum file.

        Delivers None if no search has compiled the reader yet, since compiling takes long.
        """
        if self._is_open:
            self._counter.submit(lambda: self._emit(deliver, _spectra_content(path)))

    def close(self) -> None:
        """Stop inspecting files and delivering results."""
        with self._delivery_lock:
            self._is_open = False
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._counter.shutdown(wait=False, cancel_futures=True)

    def _submit(self, work: Callable[[], Any], deliver: Callable[[Any], None]) -> None:
        if self._is_open:
            self._pool.submit(lambda: self._emit(deliver, work()))

    def _emit(self, deliver: Callable[[Any], None], result: Any) -> None:
        # Deliver nothing after closing, when the receiver may no longer exist.
        with self._delivery_lock:
            if self._is_open:
                self._found.emit(deliver, result)

    def _deliver(self, deliver: Callable[[Any], None], result: Any) -> None:
        if self._is_open:
            deliver(result)


def _is_there(folder: Path) -> bool:
    try:
        return is_project(folder)
    except OSError:
        return False


def _runs_of(folder: Path, kinds: Mapping[str, frozenset[str]]) -> list[SearchedRun] | None:
    try:
        project = Project.open(folder)
        tables: dict[str, set[str]] = {}
        for result in project.results():
            tables.setdefault(result.run, set()).add(result.name)
        done = [
            run
            for run in reversed(project.runs())
            if run.kind in kinds and run.status == "done" and kinds[run.kind] <= tables.get(run.id, set())
        ]
        return [SearchedRun(run.id, run.started, tuple(record.path.name for record in project.inputs(run.id))) for run in done]
    except ProteoscopeError:
        return None


def _spectra_content(path: Path) -> SpectraContent | None:
    return formats.spectra_content.spectra_content(path) if kernels.cpu.signatures.is_compiled("identify") else None


def _structure_count(file: FileKind, is_wanted: Callable[[], bool]) -> StructureCount | None:
    if file.content == "structure database":
        return structures_package.counting.count_database(file.path)
    if not kernels.cpu.signatures.is_compiled("superposition"):
        return None

    try:
        files = [(structure.path, structure.chain) for structure in structure_search.structures.sources_of([file.path])]
    except InputError:
        return None
    return structures_package.counting.count_structures(files, most=_MAXIMUM_INSPECTED, is_wanted=is_wanted)


def _inspect(paths: Sequence[Path]) -> FileInspection:
    inspection = FileInspection()
    for path in paths[:_MAXIMUM_FILES]:
        try:
            _add(inspection, path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            inspection.files.append(
                FileKind(path, None, problem=f"{path}: cannot be read ({reason}). Check its name and your permission to read it.")
            )
    if len(paths) > _MAXIMUM_FILES:
        inspection.files.append(_left_over(paths[_MAXIMUM_FILES], f"{len(paths):,} files and folders were dropped"))
    return inspection


def _left_over(path: Path, what: str) -> FileKind:
    """Return an item with an error: `what` (such as too many dropped files), and that only the first files were added.

    `path` is the first file that was not added.
    """
    return FileKind(path, None, problem=f"{what}; only the first {_MAXIMUM_FILES:,} files were added. Drop the others separately.")


def _add(inspection: FileInspection, path: Path) -> None:
    """Add a file, or the contents of a folder, to an inspection."""
    endings = tuple(suffix for content in FILE_CATEGORIES for suffix in list_suffixes(content))
    if (path / "project.sqlite").is_file():
        inspection.projects.append(path)
    elif path.name == "project.sqlite" and path.is_file():
        inspection.projects.append(path.parent)
    elif path.suffix.lower() == ".toml":
        inspection.presets.append(path)
    elif path.name == structures_package.sources.DATABASE_FILE and path.is_file():
        inspection.files.append(file_kind(path.parent))
    elif (path / structures_package.sources.DATABASE_FILE).is_file():
        inspection.files.append(file_kind(path))
    elif path.is_dir() and path.suffix.lower() not in DATA_FOLDERS and vendor_format(path) is None:
        files = _files_below(path)
        if len(files) > _MAXIMUM_FILES:
            inspection.files.append(_left_over(files[_MAXIMUM_FILES], f"{path} contains more than {_MAXIMUM_FILES:,} files"))
        for file in files[:_MAXIMUM_FILES]:
            kind = file_kind(file)
            # The extension shows that the file is meant as an input, so report its error.
            is_named = bare_name(file.name).endswith(endings)
            is_read = kind.content is not None or file.is_dir() or is_named or vendor_format(file) is not None
            (inspection.files if is_read else inspection.left_out).append(kind)
    else:
        inspection.files.append(file_kind(path))


def _files_below(folder: Path) -> list[Path]:
    """Return the inputs below a folder: visible files, and folders that are an input as a whole.

    Such a folder is an instrument run, a structure database, or a folder with structures; its files, which may be numerous, are not
    returned.
    """
    result: list[Path] = []
    structures = list_suffixes("structures")
    covered: Path | None = None
    for parent, folders, names in os.walk(folder):
        here = Path(parent)
        if is_project(here):
            folders.clear()
            continue
        # A folder written by an instrument is a single input.
        result += [here / name for name in sorted(folders) if Path(name).suffix.lower() in DATA_FOLDERS]
        folders[:] = sorted(name for name in folders if Path(name).suffix.lower() not in DATA_FOLDERS)
        if structures_package.sources.DATABASE_FILE in names:
            result.append(here)
            folders.clear()
            continue
        if vendor_format(here) is not None:
            # Do not descend: files of an instrument run may have the extensions of other inputs.
            result.append(here)
            folders.clear()
            continue
        bare = [(name, bare_name(name)) for name in sorted(names)]
        if any(name.endswith(structures) for _, name in bare) and not (covered and here.is_relative_to(covered)):
            # The folder includes all structures in its subfolders.
            result.append(covered := here)
        # Skip lists of structures if the folder already includes these structures.
        covered_endings = (*structures, *structures_package.sources.LISTS) if covered and here.is_relative_to(covered) else structures
        result += [here / name for name, ending in bare if not ending.endswith(covered_endings) and not name.startswith(".")]
        if len(result) > _MAXIMUM_FILES:
            break
    return result
