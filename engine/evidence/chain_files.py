"""The structures that evidence is shown on: a structure database, or files of structures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError
from engine.execution.threads import run_on_threads
from engine.jobs.progress import Progress
from engine.structure_search.structures import ChainSource, database_folder, sources_of
from engine.structures.chains import Chains, concatenated
from engine.structures.database import MadeWhenAsked, open_database
from engine.structures.reading import read_structure
from engine.structures.sources import DATABASE_FILE

__all__ = ["ChainFiles", "StructureSource", "open_structures", "structure_source"]

_MAXIMUM_FAULTS_TOLD = 5


@dataclass(frozen=True)
class ChainFiles:
    """Chains, the shortest first, and the file that each comes from: `file` (n,) of `files`."""

    chains: Chains
    file: NDArray[np.int64]
    files: Sequence[Path]


@dataclass(frozen=True)
class StructureSource:
    """What was given: the folder of a structure database, or files."""

    folder: Path | None
    files: Sequence[ChainSource]

    @property
    def paths(self) -> list[Path]:
        """Files that a run records."""
        return [one.path for one in self.files] if self.folder is None else [self.folder / DATABASE_FILE]


def structure_source(given: Sequence[str | Path]) -> StructureSource:
    """A structure database, or files, folders and lists of files of structures.

    Raises
    ------
    InputError : a folder or list holds none.
    """
    folder = database_folder(given)
    return StructureSource(folder, () if folder else sources_of(given))


def open_structures(source: StructureSource, progress: Progress, threads: int) -> ChainFiles:
    """The chains, memory-mapped where they are a database; files of folders that hold none are left out, and told.

    Raises
    ------
    InputError : a database is damaged, or a file that was named holds no protein chain. Cancelled : the user asked to stop.
    """
    if source.folder is not None:
        content = open_database(source.folder).content
        files = MadeWhenAsked(len(content.sources), lambda: tuple(Path(one.path) for one in content.sources))
        return ChainFiles(content.chains, np.asarray(content.source, np.int64), files)

    def read(one: ChainSource) -> Chains | InputError:
        try:
            found = read_structure(one.path)
            if not len(found.chains):
                raise found.why_empty()
            if not one.chain:
                return found.chains
            if one.chain not in found.chain_names:
                raise InputError(one.path, f"has no chain '{one.chain:.20}'", remedy=f"It has {', '.join(found.chain_names[:20])}")
            return found.chains.taken([found.chain_names.index(one.chain)])
        except InputError as error:
            if not one.is_of_folder:
                raise
            return error

    progress.stage("Reading structures", len(source.files))
    every = run_on_threads(read, source.files, threads, progress)
    parts = [(number, one) for number, one in enumerate(every) if not isinstance(one, InputError)]
    faults = [one for one in every if isinstance(one, InputError)]
    if faults and not parts:
        raise faults[0]
    for fault in faults[:_MAXIMUM_FAULTS_TOLD]:
        progress.message(f"Left out: {fault}", "warning")
    if len(faults) > _MAXIMUM_FAULTS_TOLD:
        progress.message(f"Left out: {len(faults) - _MAXIMUM_FAULTS_TOLD:,} more files", "warning")
    chains = concatenated([one for _, one in parts])
    order = np.argsort(chains.lengths, kind="stable")
    of = np.repeat(np.array([number for number, _ in parts], np.int64), [len(one) for _, one in parts])
    return ChainFiles(chains.taken(order), of[order], tuple(one.path for one in source.files))
