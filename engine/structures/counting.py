"""Numbers of chains, residues, predictions and errors in structure files, counted before a search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from proteoscope.engine.errors import InputError
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.database import open_database
from proteoscope.engine.structures.reading import read_structure

__all__ = ["StructureCount", "count_database", "count_structures"]


@dataclass(frozen=True)
class StructureCount:
    """Numbers of chains, residues and errors in structure files.

    Attributes
    ----------
    n_files : int
        Number of requested files.
    n_read : int
        Number of inspected files.
    n_chains, n_residues : int
        Number of protein chains, and of their residues.
    n_predicted : int
        Number of predicted chains (with pLDDT).
    problem : str
        First reason why a search cannot use one of the files, or ''.
    left_out : tuple of str
        Omitted chains with reasons.
    """

    n_files: int
    n_read: int
    n_chains: int
    n_residues: int
    n_predicted: int
    problem: str = ""
    left_out: tuple[str, ...] = ()


def count_structures(
    files: Sequence[tuple[Path, str]], *, most: int, is_wanted: Callable[[], bool] = lambda: True
) -> StructureCount | None:
    """Count the content of structure files.

    Parameters
    ----------
    files : sequence of (Path, str)
        Paths of the files, each with the name of a chain, or '' for all chains.
    most : int
        Maximum number of files to inspect.
    is_wanted : callable
        Function that is called before each file; returns False to stop.

    Returns
    -------
    StructureCount or None
        Numbers; None if `is_wanted` stopped the count.
    """
    n_chains = n_residues = n_predicted = 0
    problem, left_out = "", list[str]()
    for path, chain in files[:most]:
        if not is_wanted():
            return None
        try:
            file = read_structure(path)
            if not len(file.chains):
                raise file.empty_error()
            if chain and chain not in file.chain_names:
                raise InputError(path, f"has no protein chain '{chain:.20}'", remedy=f"It has {', '.join(file.chain_names[:20])}")
        except InputError as error:
            problem = problem or str(error)
            continue
        chains = file.chains.taken([file.chain_names.index(chain)]) if chain else file.chains
        n_chains, n_residues, n_predicted = n_chains + len(chains), n_residues + int(chains.offsets[-1]), n_predicted + _predicted(chains)
        left_out += [] if chain else [f"{path.name}: chain {skipped.chain} {skipped.reason}" for skipped in file.skipped]
    return StructureCount(len(files), min(most, len(files)), n_chains, n_residues, n_predicted, problem, tuple(left_out))


def count_database(folder: Path) -> StructureCount:
    """Count the content of a structure database; `problem` is set if it is damaged."""
    try:
        database = open_database(folder)
    except InputError as error:
        return StructureCount(1, 1, 0, 0, 0, str(error))
    chains, n_files = database.chains, len(database.content.sources)
    return StructureCount(n_files, n_files, len(chains), int(chains.offsets[-1]), _predicted(chains))


def _predicted(chains: Chains) -> int:
    """Return the number of chains with pLDDT."""
    if not len(chains):
        return 0
    return int(np.add.reduceat(np.isfinite(chains.confidence), chains.offsets[:-1], dtype=np.int64).astype(bool).sum())
