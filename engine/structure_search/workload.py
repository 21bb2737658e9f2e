"""Estimated workload of a structure search, computed from its request."""

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import Expectation, ExpectedWork
from proteoscope.engine.execution.cost.parameters import WorkSize
from proteoscope.engine.structure_search import scoring, superposing
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.structures import ChainInput, chain_input, check_sources, sources_of
from proteoscope.engine.structures.sources import DATABASE_FILE

__all__ = ["estimate_chains", "estimate_workload", "estimate_workloads"]

_RESIDUES, _CHAINS_OF_FILE = 250.0, 1.5
_BYTES_OF_CHAIN = 6000.0  # bytes per chain of a database, with all columns
_READ_FILE, _CHAIN, _QUERY = 0.02, 1e-5, 0.05  # seconds per read file, opened chain, and reported query
_SUPERPOSED = 100.0  # candidates per query
_RESIDUE_BYTES = 9.0


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a structure search (see `proteoscope.engine.estimates`).

    Raises
    ------
    InputError
        If a file is missing, or a folder contains no structures.
    """
    parameters = request.parameters_as(StructureSearchParameters)
    queries = sources_of(request.inputs.get("queries", ()))
    check_sources(queries)
    n_queries = _CHAINS_OF_FILE * len(queries)
    database = chain_input(request.inputs.get("database", ()))
    check_sources(database.files)
    read, chains = float(len(database.files)), estimate_chains(database)
    n_queries = chains if request.flag("all") else n_queries
    pairs = _pairs(n_queries, chains) if parameters.mode == "sensitive" else 0.0
    works = estimate_workloads(n_queries, chains)[: 2 if pairs else 1]
    host = {"read": len(queries) * _CHAINS_OF_FILE * _READ_FILE, "index": read * _READ_FILE + chains * _CHAIN, "report": n_queries * _QUERY}
    counts = {"queries": n_queries, "chains": chains, "cells": n_queries * chains * _RESIDUES * _RESIDUES}
    return Expectation(works, host, counts, chains * _RESIDUES * 40 + pairs * _RESIDUES * 64)


def estimate_chains(given: ChainInput) -> float:
    """Return the approximate number of chains of a database or of files."""
    if given.folder is None:
        return _CHAINS_OF_FILE * len(given.files)
    size = sum(path.stat().st_size for path in given.folder.rglob("*") if path.is_file() and path.name != DATABASE_FILE)
    return max(1.0, size / _BYTES_OF_CHAIN)


def _pairs(n_queries: float, chains: float) -> float:
    return n_queries * min(chains, _SUPERPOSED)


def estimate_workloads(n_queries: float, chains: float) -> tuple[ExpectedWork, ExpectedWork]:
    """Return the estimated workloads of scoring queries against chains, and of superposing candidates."""
    cells, pairs, rounds = n_queries * chains * _RESIDUES * _RESIDUES, _pairs(n_queries, chains), max(1, round(n_queries))
    scored = WorkSize(cells, int(n_queries * chains), chains * _RESIDUES * _RESIDUE_BYTES, 8 * n_queries * chains, rounds)
    superposed = WorkSize(pairs * _RESIDUES * _RESIDUES, int(pairs), pairs * _RESIDUES * 32, pairs * (_RESIDUES * 8 + 128))
    return ExpectedWork(scoring.KIND, lambda gpu: scored), ExpectedWork(superposing.KIND, lambda gpu: superposed)
