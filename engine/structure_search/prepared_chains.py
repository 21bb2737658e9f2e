"""Chains of files and their descriptors, cached on disk and memory-mapped.

::

    columns/            the chains and their source files, in the format of a structure database
    file_order.npy      index of each chain in the order of the files
    state.npy ...       descriptors of the chains
    messages.json       remarks on the files
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import open_regular
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import parts_digest
from proteoscope.engine.project.index_store import InvalidIndexError, index_store, open_column, require
from proteoscope.engine.structure_search.structures import (
    ChainFiles,
    ChainSource,
    DescribedChains,
    described,
    descriptor_key,
    open_descriptors,
    read_chains,
    read_files,
    write_descriptors,
)
from proteoscope.engine.structures.database import Collection, SourceFile, open_collection, write_merged
from proteoscope.engine.structures.reading import Models, stem

__all__ = ["FEWEST_FILES", "key_parts", "prepared_chains"]

FEWEST_FILES = 20
"""Minimum number of files for caching; fewer files are read faster than the cache is opened."""

_NAME = "structures"
_FORMAT = 3  # must be increased if the same files would give other chains or messages
_MAXIMUM_MESSAGES = 1 << 20  # bytes


def prepared_chains(
    sources: Sequence[ChainSource], digests: Sequence[str], progress: Progress, threads: int, models: Models = "first"
) -> DescribedChains:
    """Return the chains of files with descriptors, from the cache if possible (see `read_chains`).

    Parameters
    ----------
    sources : sequence of ChainSource
        Files of the chains.
    digests : sequence of str
        SHA-256 of each file.
    progress : Progress
        Progress of the run.
    threads : int
        Number of threads.
    models : Models
        Models to read (see `read_structure`).

    Raises
    ------
    InputError
        If a file is unsuitable (see `read_chains`).
    Cancelled
        If the user cancels.
    """
    if len(sources) < FEWEST_FILES:
        return read_chains(sources, progress, threads, models=models)
    progress.stage("Opening the chains")
    try:
        return index_store(_NAME).get(
            key_parts(sources, digests, models),
            f"{len(sources)} files",
            lambda folder: _write(folder, sources, progress, threads, models),
            _open,
            progress,
        )
    except StorageError as error:
        progress.message(f"The chains could not be cached and were read into memory: {error}", "warning")
        return read_chains(sources, progress, threads, models=models)


def key_parts(sources: Sequence[ChainSource], digests: Sequence[str], models: Models = "first") -> dict[str, Any]:
    """Return the values that determine the cache key of chains: digests and order of files, selected chains, and `descriptor_key`."""
    files = [
        [str(source.path), source.chain, source.is_of_folder, source.note, digest] for source, digest in zip(sources, digests, strict=True)
    ]
    return {"format": _FORMAT, "files": parts_digest({"files": files}), "models": models, **descriptor_key()}


def _write(folder: Path, sources: Sequence[ChainSource], progress: Progress, threads: int, models: Models) -> None:
    result = read_files(sources, progress, threads, models=models)
    files = [SourceFile(str(path), 0, number, ()) for number, path in enumerate(result.paths)]
    collection = Collection(result.chains, result.file.astype(np.int32), files)
    order = write_merged(folder / "columns", [collection], [np.ones(len(result.chains), np.bool_)])
    np.save(folder / "file_order.npy", order)
    (folder / "messages.json").write_text(json.dumps(list(result.messages)))
    progress.stage("Describing chains")
    write_descriptors(folder, described(result.chains, threads=threads).arrays)


def _open(folder: Path) -> DescribedChains:
    content = open_collection(folder / "columns")
    n = len(content.chains)
    file_order = open_column(folder / "file_order.npy", np.int64)
    require(len(file_order) == n and (np.sort(file_order) == np.arange(n)).all(), f"{folder}: chains are not in the order of the files")
    # Chains of equal length are in the order of the files, as in the result of `described`.
    order = np.lexsort((file_order, content.chains.lengths))
    paths = tuple(Path(source.path) for source in content.sources)
    result = ChainFiles(content.chains.taken(order), np.asarray(content.source, np.int64)[order], paths, _messages(folder))
    arrays = open_descriptors(folder, result.chains)
    return DescribedChains(result.chains, arrays, file_order[order], result.file, tuple(map(stem, paths)), result.messages)


def _messages(folder: Path) -> tuple[str, ...]:
    try:
        with open_regular(folder / "messages.json") as file:
            result = json.loads(file.read(_MAXIMUM_MESSAGES))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidIndexError(f"{folder}: the messages cannot be read ({error})") from error
    require(isinstance(result, list) and all(isinstance(text, str) for text in result), f"{folder}: the messages are not a list of texts")
    return tuple("".join(symbol if symbol.isprintable() else " " for symbol in text) for text in result)
