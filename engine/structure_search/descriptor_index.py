"""Descriptors of a structure database, cached on disk and memory-mapped."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope import kernels, resources
from proteoscope.engine.arrays import read_only
from proteoscope.engine.errors import StorageError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.cache import index_store
from proteoscope.engine.project.columns import open_column, require
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.database import StructureDatabase
from proteoscope.engine.structures.descriptors import ALPHABETS, LENGTH_UNITS, describe, find_elements
from proteoscope.kernels.structure_layouts import ANGLE_STEPS, BITS, StructureArrays

__all__ = ["descriptor_key", "key_parts", "load_descriptors", "open_descriptors", "write_descriptors"]

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
    """Return the values on which descriptors depend in addition to the chains: alphabets, and composition of the words."""
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
    require(all(len(column) == n for column in (state, length, angle)), f"{folder}: descriptors of another number of residues")
    require(int(angle.max(initial=0)) < ANGLE_STEPS, f"{folder}: an angle of more than half a turn")
    elements = find_elements(chains.secondary, chains.offsets)
    return StructureArrays(read_only(chains.offsets), state, length, angle, elements.offsets, elements.type, elements.length)
