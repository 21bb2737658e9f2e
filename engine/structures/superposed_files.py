"""Superposition of a chain of one file onto a chain of another file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from proteoscope.engine.arrays import ChainRow
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.structures.chain_references import read_chain
from proteoscope.engine.structures.outputs import SUPERPOSITION_FILES, AlignedChains, read_atoms, write_superposition
from proteoscope.engine.structures.reading import Models, StructureFile
from proteoscope.engine.structures.superposition import superpose_many

__all__ = ["SuperposedFiles", "superpose_files"]


@dataclass(frozen=True)
class SuperposedFiles:
    """A chain of one file superposed onto a chain of another file.

    Attributes
    ----------
    query, target : StructureFile
        Files with one chain each; the target moves.
    aligned : AlignedChains
        Transformation and aligned residues.
    """

    query: StructureFile
    target: StructureFile
    aligned: AlignedChains

    @property
    def messages(self) -> tuple[str, ...]:
        """Warnings about the files."""
        return tuple(f"{file.path}: {text}" for file in (self.query, self.target) for text in file.messages)

    def write(self, folder: Path) -> list[Path]:
        """Write table, coordinates, alignment and scripts into a folder, and return their paths; see `write_superposition`."""
        check_outputs([folder, *(folder / name for name in SUPERPOSITION_FILES)], [self.query.path, self.target.path])
        atoms, moved = (read_atoms(file.path, file.chain_names[0]) for file in (self.query, self.target))
        return write_superposition(folder, self.aligned, atoms, moved)


def superpose_files(query: str, target: str, models: Models, progress: Progress) -> SuperposedFiles:
    """Superpose the chain `target` on `query`, both as ``FILE`` or ``FILE:CHAIN``, such that the TM-score is maximal.

    Raises
    ------
    InputError
        If a file cannot be read, or has several chains and none is named.
    """
    compile_kernels(["superposition"], progress)
    still, moved = (read_chain(requested, models) for requested in (query, target))
    result = superpose_many(
        still.chains.position,
        moved.chains.position,
        moved.chains.offsets,
        np.empty((0, 2), np.int32),
        np.zeros(2, np.int64),
        progress=progress,
    )
    files = SuperposedFiles(still, moved, AlignedChains(still.chains, ChainRow(0), moved.chains, ChainRow(0), result, 0))
    for text in files.messages:
        progress.message(text, "warning")
    return files
