"""Building of a structure database from files, addition of files, and removal of chains, without reading files twice."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.files import is_temporary, is_there, storage_errors
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.index_store import InvalidIndexError
from proteoscope.engine.project.locks import FileLock
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.structures.chains import concatenated
from proteoscope.engine.structures.database import (
    PARTS,
    Collection,
    SourceFile,
    StructureDatabase,
    open_collection,
    open_database,
    write_database,
    write_merged,
)
from proteoscope.engine.structures.reading import Models, StructureFile, stem, structure_format
from proteoscope.engine.structures.reading_processes import read_structures
from proteoscope.engine.structures.sources import DATABASE_FILE, files_in, listed

__all__ = ["add_to_database", "build_database", "remove_from_database", "structure_files"]

_FILES_OF_A_PART = 1000
"""Number of files per section of a build; after an interruption, at most this number of files is read again."""
_LOCK = "database.lock"
_Settings = tuple[float, Models]
"""Settings for reading files: minimum pLDDT, and models to read."""


def structure_files(requested: Sequence[str | Path], progress: Progress | None = None) -> list[Path]:
    """Return the files in a list of files, folders and lists of files, each once, in the given order.

    For folders and lists, see `proteoscope.engine.structures.sources`; files in unknown formats are read as lists.

    Parameters
    ----------
    requested : sequence of str or Path
        Files, folders and lists of files.
    progress : Progress, optional
        Progress, which receives messages about unused files of folders.

    Returns
    -------
    list of Path
        Files.

    Raises
    ------
    InputError
        If a file is missing, or if a folder or list is empty.
    """
    progress = progress or Progress()
    result: dict[Path, None] = {}
    for request in requested:
        path = Path(request)
        if path.is_dir():
            files = _list_folder(path, progress)
        elif structure_format(path):
            files = [path]
        else:
            files = _read_list(path, progress)
        result.update(dict.fromkeys(files))
    return list(result)


def _list_folder(folder: Path, progress: Progress) -> list[Path]:
    files, note = files_in(folder)
    if note:
        progress.message(note, "warning")
    return files


def _read_list(path: Path, progress: Progress) -> list[Path]:
    files = listed(path)
    if not is_there(files[0]):
        raise InputError(
            path,
            "is neither a structure nor a list of files",
            place="line 1",
            remedy=f"Give a folder, structures as {format_names('structures')}, or a text with a path in each line",
        )
    return [file for entry in files for file in (_list_folder(entry, progress) if is_there(entry) and entry.is_dir() else [entry])]


def build_database(
    requested: Sequence[str | Path],
    folder: str | Path,
    *,
    minimum_plddt: float = 0.0,
    models: Models = "first",
    processes: int | None = None,
    progress: Progress | None = None,
) -> StructureDatabase:
    """Build a database that contains exactly the chains of the given files.

    Files that are already in the database (same path, size and modification time) are not read again, and neither are files that
    an interrupted build has read. Omitted files and chains are listed with reasons in ``skipped.tsv`` of the folder and in
    `StructureDatabase.skipped`.

    Parameters
    ----------
    requested : sequence of str or Path
        Files, folders and lists of files (see `structure_files`).
    folder : str or Path
        Folder of the database; created if missing.
    minimum_plddt : float
        Minimum pLDDT of residues to include, from 0 to 100.
    models : Models
        Models to read (see `read_structure`).
    processes : int, optional
        Number of reading processes; by default one per CPU core.
    progress : Progress, optional
        Progress, which receives messages and is checked for cancellation.

    Returns
    -------
    StructureDatabase
        Written database.

    Raises
    ------
    InputError
        If no file contains a protein chain, or `folder` contains other files.
    StorageError
        If writing fails, or another process is changing the database.
    Cancelled
        If the user cancels; chains that were read are stored for the next build.
    """
    return _changed(requested, Path(folder), (minimum_plddt, models), processes, progress or Progress(), keeps_others=False)


def add_to_database(
    requested: Sequence[str | Path], folder: str | Path, *, processes: int | None = None, progress: Progress | None = None
) -> StructureDatabase:
    """Add the chains of files to a database; changed files are read again.

    Parameters
    ----------
    requested : sequence of str or Path
        Files, folders and lists of files (see `structure_files`).
    folder : str or Path
        Folder of an existing database.
    processes : int, optional
        Number of reading processes; by default one per CPU core.
    progress : Progress, optional
        Progress, which receives messages and is checked for cancellation.

    Returns
    -------
    StructureDatabase
        Written database.

    Raises
    ------
    InputError
        If `folder` is not a database, or for the reasons given in `build_database`.
    StorageError
        If writing fails, or another process is changing the database.
    Cancelled
        If the user cancels; chains that were read are stored for the next build.
    """
    database = open_database(folder)
    return _changed(
        requested, Path(folder), (database.minimum_plddt, database.models), processes, progress or Progress(), keeps_others=True
    )


def remove_from_database(names: Sequence[str], folder: str | Path) -> StructureDatabase:
    """Remove chains from a database by name, or all chains of a file by the name of the file.

    Parameters
    ----------
    names : sequence of str
        Names of chains, or names of files without suffix.
    folder : str or Path
        Folder of the database.

    Returns
    -------
    StructureDatabase
        Changed database.

    Raises
    ------
    ParameterError
        If one of the names is not in the database; nothing is removed in this case.
    """
    folder = Path(folder)
    with _locked(folder):
        database = open_database(folder)
        content = database.content
        stems = [stem(Path(source.path)) for source in content.sources]
        wanted, met = set(names), set()
        retained = np.ones(len(content.chains), np.bool_)
        for i, (name, number) in enumerate(zip(content.chains.names, content.source.tolist(), strict=True)):
            hit = wanted & {name, stems[number]}
            met |= hit
            retained[i] = not hit
        if wanted - met:
            raise ParameterError(f"the database has no chain '{min(wanted - met)}'; nothing was removed")
        # Files without remaining chains are removed; files with fewer chains are marked as changed, so that adding them reads all chains.
        touched = set(content.source[~retained].tolist())
        left = set(content.source[retained].tolist())
        sources = tuple(replace(source, modified=-1) if i in touched else source for i, source in enumerate(content.sources))
        changed = Collection(content.chains, content.source, sources)
        gone = frozenset(sources[number].path for number in touched - left)
        return write_database(folder, [changed], [retained], database.minimum_plddt, database.models, drops=gone)


def _changed(
    requested: Sequence[str | Path], folder: Path, settings: _Settings, processes: int | None, progress: Progress, *, keeps_others: bool
) -> StructureDatabase:
    minimum_plddt, models = settings
    if not 0.0 <= minimum_plddt <= 100.0:
        raise ParameterError(f"the minimum pLDDT is {minimum_plddt:g}; expected 0 to 100")
    files = [path.absolute() for path in structure_files(requested, progress)]
    check_outputs([folder], [])
    _check_folder(folder)
    with _locked(folder):
        previous = [] if not (folder / DATABASE_FILE).exists() else [_old_content(folder, settings, progress)]
        previous += _parts(folder, settings)
        wanted = {source.key: (path, source) for path, source in zip(files, map(_inspect_source, files), strict=True)}
        old = {source.key for collection in previous for source in collection.sources}
        made = _read_parts(
            [result for key, result in wanted.items() if key not in old],
            folder,
            settings,
            processes or available_threads(),
            progress,
        )
        progress.stage("Writing the database")
        others = {source.path for source in previous[0].sources} - {path for path, _, _ in wanted} if keeps_others and previous else set()
        collections, retained = _deduplicated([*previous, *made], set(wanted), others)
        if not any(some.any() for some in retained):
            _raise_empty(made, collections)
        return write_database(folder, collections, retained, minimum_plddt, models)


def _check_folder(folder: Path) -> None:
    if folder.is_dir() and not (folder / DATABASE_FILE).exists() and not (folder / PARTS).is_dir():
        others = [path.name for path in folder.iterdir() if path.name != _LOCK and not is_temporary(path)]
        if others:
            raise InputError(folder, "is a folder with other things in it", remedy="Give a new or an empty folder for the database")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / _LOCK)
    if not lock.acquire("builds this structure database"):
        raise StorageError(f"{folder}: {lock.holder()} is changing this database. Wait until it is done.")
    try:
        yield
    finally:
        lock.release()


def _old_content(folder: Path, settings: _Settings, progress: Progress) -> Collection:
    try:
        database = open_database(folder)
    except InputError as error:
        progress.message(f"{error} It is built again.", "warning")
        return Collection(concatenated([]), np.empty(0, np.int32), ())
    if (database.minimum_plddt, database.models) != settings:
        return Collection(concatenated([]), np.empty(0, np.int32), ())
    return database.content


def _part_prefix(settings: _Settings) -> str:
    minimum_plddt, models = settings
    return f"part-{minimum_plddt:g}-{models}-"


def _parts(folder: Path, settings: _Settings) -> list[Collection]:
    """Return the valid parts that an interrupted build with the same settings has written."""
    result = []
    if (folder / PARTS).is_dir() and not (folder / PARTS).is_symlink():
        for path in sorted((folder / PARTS).iterdir()):
            if path.name.startswith(_part_prefix(settings)):
                try:
                    result.append(open_collection(path))
                except InvalidIndexError:
                    continue
    return result


def _inspect_source(path: Path) -> SourceFile:
    name = os.fspath(path).encode("utf-8", "backslashreplace").decode()
    try:
        result = path.stat()
        return SourceFile(name, result.st_size, result.st_mtime_ns, ())
    except (OSError, ValueError):
        return SourceFile(name, -1, 0, ())


def _read_parts(
    sources: list[tuple[Path, SourceFile]], folder: Path, settings: _Settings, processes: int, progress: Progress
) -> list[Collection]:
    """Read files and write their chains as several parts of the database; return the parts."""
    files = [path for path, _ in sources]
    progress.stage("Reading structures", len(files))
    made: list[Collection] = []
    results: dict[int, tuple[SourceFile, StructureFile | None]] = {}
    done = 0
    for number, result in read_structures(files, processes, progress, minimum_plddt=settings[0], models=settings[1]):
        if isinstance(result, str):
            reason = result.removeprefix(f"{files[number]}: ").removeprefix(f"{files[number]}, ")
            results[number] = (replace(sources[number][1], skipped=(("", " ".join(reason.split())),)), None)
        else:
            skipped = (*(("", text) for text in result.messages), *((chain.chain, chain.reason) for chain in result.skipped))
            results[number] = (replace(sources[number][1], skipped=skipped), result)
        progress.advance()
        while len(results) >= _FILES_OF_A_PART or (results and done + len(results) == len(files)):
            taken = sorted(results)
            made.append(_write_part([results.pop(source_key) for source_key in taken], folder, settings))
            done += len(taken)
    return made


def _write_part(results: list[tuple[SourceFile, StructureFile | None]], folder: Path, settings: _Settings) -> Collection:
    read = [result.chains for _, result in results if result is not None]
    source = [number for number, (_, result) in enumerate(results) if result is not None for _ in range(len(result.chains))]
    part = Collection(concatenated(read), np.array(source, np.int32), tuple(source_key for source_key, _ in results))
    path = folder / PARTS / f"{_part_prefix(settings)}{secrets.token_hex(6)}"
    write_merged(path, [part], [np.ones(len(part.chains), np.bool_)])
    return open_collection(path)


def _deduplicated(
    collections: list[Collection], wanted: set[tuple[str, int, int]], others: set[str]
) -> tuple[list[Collection], list[NDArray[np.bool_]]]:
    """Return collections in which each requested file occurs only once, and masks of the chains of these files.

    `wanted` are keys of files (see `SourceFile.key`), and `others` are paths of further files. Of a file that several collections contain,
    the first collection retains the chains. The number of chains of a collection is unchanged.
    """
    met: set[tuple[str, int, int]] = set()
    chosen, retained = [], []
    for collection in collections:
        keeps = []
        for source in collection.sources:
            keeps.append((source.key in wanted or source.path in others) and source.key not in met)
            if keeps[-1]:
                met.add(source.key)
        numbers = np.cumsum(keeps) - 1
        is_retained = np.array(keeps, np.bool_)
        sources = tuple(source for source, keep in zip(collection.sources, keeps, strict=True) if keep)
        some = is_retained[collection.source] if len(collection.source) else np.zeros(0, np.bool_)
        # Renumber the retained files; chains of other files get -1.
        chosen.append(Collection(collection.chains, np.where(some, numbers[collection.source], -1).astype(np.int32), sources))
        retained.append(some)
    return chosen, retained


def _raise_empty(made: list[Collection], collections: list[Collection]) -> None:
    skipped = [(source, reason) for collection in [*made, *collections] for source in collection.sources for _, reason in source.skipped]
    if skipped:
        source, reason = skipped[0]
        raise InputError(source.path, f"no file contains a protein chain; the reason for this file: {reason}")
    raise ParameterError("no file contains a protein chain")
