"""Content of files of structures, for who is about to search with them: chains, residues, predictions, and what cannot be read."""

from __future__ import annotations

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
    """Content of files.

    Attributes
    ----------
    n_files : that were asked for. n_read : of them, those that were looked into. n_chains, n_residues : of proteins.
    n_predicted : chains that come from a prediction (with pLDDT).
    problem : why a search cannot take them; empty where it can. left_out : chains that are none of proteins, each with the reason.
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
    """Look into files.

    Parameters
    ----------
    files : and the chain that is meant of each; all where it is empty. most : files that are looked into, the first ones.
    is_wanted : asked before each file; None is returned once nobody waits for the answer.
    """
    n_chains = n_residues = n_predicted = 0
    problem, left_out = "", list[str]()
    for path, chain in files[:most]:
        if not is_wanted():
            return None
        try:
            file = read_structure(path)
            if not len(file.chains):
                raise file.why_empty()
            if chain and chain not in file.chain_names:
                raise InputError(path, f"has no protein chain {chain:.20}", remedy=f"It has {', '.join(file.chain_names[:20])}")
        except InputError as error:
            problem = problem or str(error)
            continue
        chains = file.chains.taken([file.chain_names.index(chain)]) if chain else file.chains
        n_chains, n_residues, n_predicted = n_chains + len(chains), n_residues + int(chains.offsets[-1]), n_predicted + _predicted(chains)
        left_out += [] if chain else [f"{path.name}: chain {one.chain} {one.reason}" for one in file.skipped]
    return StructureCount(len(files), min(most, len(files)), n_chains, n_residues, n_predicted, problem, tuple(left_out))


def count_database(folder: Path) -> StructureCount:
    """Content of a structure database; its `problem` where it is damaged."""
    try:
        database = open_database(folder)
    except InputError as error:
        return StructureCount(1, 1, 0, 0, 0, str(error))
    chains, n_files = database.chains, len(database.content.sources)
    return StructureCount(n_files, n_files, len(chains), int(chains.offsets[-1]), _predicted(chains))


def _predicted(chains: Chains) -> int:
    """How many chains have a pLDDT."""
    if not len(chains):
        return 0
    return int(np.add.reduceat(np.isfinite(chains.confidence), chains.offsets[:-1], dtype=np.int64).astype(bool).sum())
