"""Queries and databases: chains from files, folders, lists of files and structure databases, with descriptors for the kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels, resources
from proteoscope.engine.arrays import read_only
from proteoscope.engine.errors import InputError, StorageError
from proteoscope.engine.execution.resources import run_on_threads
from proteoscope.engine.files import is_there
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.index_store import index_store, open_column, require
from proteoscope.engine.results.counts import counted
from proteoscope.engine.structures.chains import Chains, concatenated
from proteoscope.engine.structures.database import LazySequence, StructureDatabase, open_database
from proteoscope.engine.structures.descriptors import ALPHABETS, LENGTH_UNITS, Alphabets, describe, find_elements
from proteoscope.engine.structures.reading import Models, StructureFile, read_structure, stem
from proteoscope.engine.structures.sources import DATABASE_FILE, LISTS, files_in, listed
from proteoscope.kernels.structure_layouts import ANGLE_STEPS, BITS, StructureArrays

__all__ = [
    "ChainFiles",
    "ChainInput",
    "ChainSource",
    "DescribedChains",
    "chain_input",
    "check_sources",
    "database_folder",
    "described",
    "descriptor_key",
    "key_parts",
    "load_descriptors",
    "open_chains",
    "open_descriptors",
    "open_files",
    "read_chains",
    "read_files",
    "sources_of",
    "without_structure",
    "write_descriptors",
]

_NAME, _FORMAT = "structures", 1
_COLUMNS = {"state": np.uint32, "length": np.uint16, "angle": np.uint16}


def load_descriptors(database: StructureDatabase, progress: Progress, threads: int) -> StructureArrays:
    """Return the descriptors of a database from the cache; if they are not cached, compute them and, if possible, cache them.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    progress.stage("Opening the database")
    chains = database.chains

    def described() -> StructureArrays:
        progress.stage("Describing chains", len(chains))
        return describe(chains, threads=threads, progress=progress)

    try:
        return index_store(_NAME).get(
            key_parts(database.identity),
            database.folder.name,
            lambda folder: write_descriptors(folder, described()),
            lambda folder: open_descriptors(folder, chains),
            progress,
        )
    except StorageError as error:
        progress.message(f"The descriptors could not be cached, and were computed in memory: {error}", "warning")
        return described()


def key_parts(identity: str) -> dict[str, Any]:
    """Return the values that determine the cache key of descriptors: identity of the database, and `descriptor_key`."""
    return {"format": _FORMAT, "columns": identity, **descriptor_key()}


def descriptor_key() -> dict[str, Any]:
    """Return the values on which descriptors depend in addition to the chains: alphabets, units, and the codes that an integer contains."""
    alphabets = resources.path("structures", "descriptors.json").read_bytes()
    return {
        "alphabets": hashlib.sha256(alphabets).hexdigest(),
        "words": [*ALPHABETS],
        "units": [BITS, LENGTH_UNITS, ANGLE_STEPS],
        "rules": list(kernels.cpu.structure_descriptors.RULES),
    }


def write_descriptors(folder: Path, arrays: StructureArrays) -> None:
    """Write the columns of descriptors to a folder."""
    for name in _COLUMNS:
        np.save(folder / f"{name}.npy", getattr(arrays, name))


def open_descriptors(folder: Path, chains: Chains) -> StructureArrays:
    """Open memory-mapped descriptors of chains, written by `write_descriptors`.

    Raises
    ------
    InvalidIndexError
        If the files do not contain valid descriptors of these chains.
    """
    state, length, angle = (open_column(folder / f"{name}.npy", kind) for name, kind in _COLUMNS.items())
    n = int(chains.offsets[-1])
    require(all(len(column) == n for column in (state, length, angle)), f"{folder}: the descriptors have another number of residues")
    require(int(angle.max(initial=0)) < ANGLE_STEPS, f"{folder}: an angle exceeds 180°")
    elements = find_elements(chains.secondary, chains.offsets)
    return StructureArrays(read_only(chains.offsets), state, length, angle, elements.offsets, elements.type, elements.length)


_MAXIMUM_ERRORS_SHOWN = 10
_CHAINS_SHOWN = 3
_FEWEST_ELEMENTS = 1  # minimum number of helices and strands of a query with meaningful hits


@dataclass(frozen=True)
class ChainSource:
    """Structure file with an optional chain name.

    Attributes
    ----------
    path : Path
        Structure file.
    chain : str
        Name of the only chain to use; empty for all chains.
    is_of_folder : bool
        True if the file was found in a folder and is skipped if it is unsuitable.
    note : str
        Message about other content of the folder from which the file comes, or ''; only the first file of a folder has it.
    """

    path: Path
    chain: str = ""
    is_of_folder: bool = False
    note: str = ""


@dataclass(frozen=True)
class ChainFiles:
    """Chains with the files from which they were read.

    Attributes
    ----------
    chains : Chains
        The n chains.
    file : ndarray of int64, shape (n,)
        Index of the file of each chain in `paths`.
    paths : sequence of Path
        Paths of the files.
    messages : tuple of str
        Warnings about files and chains.
    """

    chains: Chains
    file: NDArray[np.int64]
    paths: Sequence[Path]
    messages: tuple[str, ...] = ()

    def by_length(self) -> ChainFiles:
        """Return the same chains sorted by length."""
        order = np.argsort(self.chains.lengths, kind="stable")
        return replace(self, chains=self.chains.taken(order), file=self.file[order])


@dataclass(frozen=True)
class ChainInput:
    """Input of a search: the folder of a structure database, or files with optional chains."""

    folder: Path | None
    files: Sequence[ChainSource]

    @property
    def paths(self) -> list[Path]:
        """Paths of the input files: the database file of a structure database, or all structure files."""
        return [file.path for file in self.files] if self.folder is None else [self.folder / DATABASE_FILE]


@dataclass(frozen=True)
class DescribedChains:
    """Chains with their descriptors, sorted by length.

    Attributes
    ----------
    chains : Chains
        The n chains.
    arrays : StructureArrays
        Descriptors of the chains.
    file_order : ndarray of int64, shape (n,)
        Index of each chain in the order of the files.
    file : ndarray of int64, shape (n,)
        Index of the file of each chain.
    files : sequence of str
        Names of the files.
    messages : tuple of str
        Warnings about files and chains.
    """

    chains: Chains
    arrays: StructureArrays
    file_order: NDArray[np.int64]
    file: NDArray[np.int64]
    files: Sequence[str]
    messages: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.chains)


def sources_of(given: Sequence[str | Path]) -> list[ChainSource]:
    """Return the structure files of the given paths: files, each with an optional ``:CHAIN``, folders, and lists of files (``.txt``).

    See `proteoscope.engine.structures.sources` for folders and lists. Missing files are reported when they are opened.

    Raises
    ------
    InputError
        If a folder or list is empty, or a list cannot be read.
    """
    result: list[ChainSource] = []
    for given_path in map(Path, given):
        is_list = given_path.suffix.lower() in LISTS and is_there(given_path) and given_path.is_file()
        for source in map(_source, listed(given_path) if is_list else [given_path]):
            if is_there(source.path) and source.path.is_dir():
                files, note = files_in(source.path)
                result += [ChainSource(path, is_of_folder=True, note="" if i else note) for i, path in enumerate(files)]
            else:
                result.append(source)
    return result


def check_sources(sources: Sequence[ChainSource]) -> None:
    """Raise an error unless all files exist, so that a missing file is reported before other errors.

    Raises
    ------
    InputError
        If a file does not exist; the message contains the first missing file.
    """
    for source in sources:
        if not is_there(source.path):
            raise InputError(source.path, "does not exist", remedy="Check the path")


def database_folder(given: Sequence[str | Path]) -> Path | None:
    """Return the folder of the structure database if `given` is such a folder or its database file; None for anything else."""
    if len(given) != 1:
        return None
    folder = Path(given[0])
    folder = folder.parent if folder.name == DATABASE_FILE else folder
    return folder if (folder / DATABASE_FILE).is_file() else None


def chain_input(given: Sequence[str | Path]) -> ChainInput:
    """Return the input that a user gave: a structure database, or files, folders and lists of files.

    Raises
    ------
    InputError
        If a folder or list is empty, or a list cannot be read.
    """
    folder = database_folder(given)
    return ChainInput(folder, () if folder else sources_of(given))


def open_chains(folder: Path, progress: Progress, threads: int) -> DescribedChains:
    """Open the memory-mapped chains of a structure database.

    Raises
    ------
    InputError
        If the database is damaged.
    Cancelled
        If the user cancels.
    """
    database = open_database(folder)
    result = _chains_of_database(database)
    names = LazySequence(len(result.paths), lambda: tuple(map(stem, result.paths)))
    return DescribedChains(result.chains, load_descriptors(database, progress, threads), np.arange(len(result.chains)), result.file, names)


def open_files(given: ChainInput, progress: Progress, threads: int) -> ChainFiles:
    """Open the chains of an input without descriptors, sorted by length; chains of a database are memory-mapped.

    Raises
    ------
    InputError
        If a database is damaged, a given file is unsuitable, or all files of folders are unsuitable.
    Cancelled
        If the user cancels.
    """
    return (
        read_files(given.files, progress, threads).by_length() if given.folder is None else _chains_of_database(open_database(given.folder))
    )


def _chains_of_database(database: StructureDatabase) -> ChainFiles:
    content = database.content
    paths = LazySequence(len(content.sources), lambda: tuple(Path(source.path) for source in content.sources))
    return ChainFiles(content.chains, np.asarray(content.source, np.int64), paths)


def _source(path: Path) -> ChainSource:
    """Split a path given by the user into file and chain; ``:CHAIN`` is a chain name only if no file has the whole path."""
    if not is_there(path) and ":" in path.name:
        name, _, chain = path.name.rpartition(":")
        if name and is_there(path.parent / name):
            return ChainSource(path.parent / name, chain)
    return ChainSource(path)


def read_files(
    sources: Sequence[ChainSource], progress: Progress, threads: int, *, minimum_plddt: float = 0.0, models: Models = "first"
) -> ChainFiles:
    """Read the chains of files in order.

    If a file in a folder cannot be read, or contains no chains, it is skipped with a warning.

    Parameters
    ----------
    sources : sequence of ChainSource
        Files to read.
    progress : Progress
        Progress of the run.
    threads : int
        Number of threads.
    minimum_plddt : float
        Minimum pLDDT of residues to use, from 0 to 100.
    models : Models
        Models to read (see `read_structure`).

    Raises
    ------
    InputError
        If a given file cannot be read, or contains no protein chain or not the requested chain; or if no file of a folder is readable.
    Cancelled
        If the user cancels.
    """

    def read(source: ChainSource) -> tuple[Chains, list[str]] | InputError:
        try:
            file = read_structure(source.path, minimum_plddt=minimum_plddt, models=models)
            return _select_chains(source, file), _remarks(source, file)
        except InputError as error:
            if not source.is_of_folder:
                raise
            return error

    progress.stage("Reading structures", len(sources))
    result = run_on_threads(read, sources, threads, progress)
    good = [
        (source, chains_or_error)
        for source, chains_or_error in zip(sources, result, strict=True)
        if not isinstance(chains_or_error, InputError)
    ]
    problems = [error for error in result if isinstance(error, InputError)]
    if problems and not good:
        raise problems[0]
    parts, messages = [parts_of_source[0] for _, parts_of_source in good], [source.note for source in sources if source.note]
    messages += [text for _, parts_of_source in good for text in parts_of_source[1]]
    messages += [f"Left out: {problem}" for problem in problems[:_MAXIMUM_ERRORS_SHOWN]]
    if len(problems) > _MAXIMUM_ERRORS_SHOWN:
        messages.append(f"Left out: {len(problems) - _MAXIMUM_ERRORS_SHOWN:,} more files")
    numbers = dict[Path, int]()
    for source, _ in good:
        numbers.setdefault(source.path, len(numbers))
    of_chain = np.repeat(np.array([numbers[source.path] for source, _ in good], np.int64), [len(part) for part in parts])
    return ChainFiles(concatenated(parts), of_chain, tuple(numbers), tuple(messages))


def read_chains(
    sources: Sequence[ChainSource], progress: Progress, threads: int, *, minimum_plddt: float = 0.0, models: Models = "first"
) -> DescribedChains:
    """Read the chains of files and compute their descriptors (see `read_files` for parameters and errors)."""
    result = read_files(sources, progress, threads, minimum_plddt=minimum_plddt, models=models)
    unrated = result.chains.unrated(minimum_plddt)
    return described(
        result.chains,
        (*result.messages, *([unrated] if unrated else [])),
        files=(result.file, tuple(map(stem, result.paths))),
        threads=threads,
    )


def described(
    chains: Chains,
    messages: Sequence[str] = (),
    using: Alphabets | None = None,
    files: tuple[NDArray[np.int64], tuple[str, ...]] | None = None,
    *,
    threads: int = 1,
) -> DescribedChains:
    """Return chains with their descriptors, sorted by length.

    Parameters
    ----------
    chains : Chains
        The n chains.
    messages : sequence of str
        Warnings about the chains.
    using : Alphabets, optional
        Alphabets of the descriptors; by default those delivered with the program.
    files : tuple, optional
        Index of the file of each chain, (n,), and name of each file; by default, each chain has a separate file.
    threads : int
        Number of threads.
    """
    numbers, names = files or (np.arange(len(chains)), chains.names)
    order = np.argsort(chains.lengths, kind="stable")
    chains = chains.taken(order)
    return DescribedChains(chains, describe(chains, using, threads=threads), order, numbers[order], names, tuple(messages))


def _select_chains(source: ChainSource, file: StructureFile) -> Chains:
    if not len(file.chains):
        raise file.empty_error()
    if not source.chain:
        return file.chains
    if source.chain not in file.chain_names:
        for skipped in file.skipped:
            if skipped.chain == source.chain:
                raise InputError(source.path, f"chain {source.chain} {skipped.reason}", remedy=f"It has {_chain_list(file)}")
        raise InputError(source.path, f"has no chain '{source.chain:.20}'", remedy=f"It has {_chain_list(file)}")
    return file.chains.taken([file.chain_names.index(source.chain)])


def _chain_list(file: StructureFile) -> str:
    names = list(file.chain_names)
    return f"the protein chain{'s' if len(names) > 1 else ''} {', '.join(names[:40])}{' and more' if len(names) > 40 else ''}"


def _remarks(source: ChainSource, file: StructureFile) -> list[str]:
    """Return remarks for the user on omitted or reinterpreted content of a file, and on omitted chains unless one chain was requested."""
    remarks = [f"{source.path.name}: {text}" for text in file.messages]
    if source.chain:
        return remarks
    remarks += [f"{source.path.name}: chain {skipped.chain} is left out: it {skipped.reason}" for skipped in file.skipped[:_CHAINS_SHOWN]]
    n_more = len(file.skipped) - _CHAINS_SHOWN
    return remarks + ([f"{source.path.name}: {counted(n_more, 'more chain')} left out"] if n_more > 0 else [])


def without_structure(queries: DescribedChains) -> list[str]:
    """Return the names of the queries with neither a helix nor a strand."""
    arrays = queries.arrays
    ordered = np.add.reduceat(arrays.element_type > 0, arrays.element_offsets[:-1]) if len(queries) else np.zeros(0, int)
    return [name for name, n in zip(queries.chains.names, ordered.tolist(), strict=True) if n < _FEWEST_ELEMENTS]
