"""What a structure search takes, told by its request."""

from __future__ import annotations

from engine.entry import SearchRequest
from engine.estimates import Expectation, ExpectedWork
from engine.execution.cost.parameters import WorkSize
from engine.execution.work import CardShape
from engine.structure_search import scoring, superposing
from engine.structure_search.parameters import StructureSearchParameters
from engine.structure_search.structures import check_sources, database_folder, sources_of
from engine.structures.sources import DATABASE_FILE

__all__ = ["expected"]

_RESIDUES, _CHAINS_OF_FILE = 250.0, 1.5
_BYTES_OF_CHAIN = 6000.0  # in a database, with everything
_READ_FILE, _CHAIN, _QUERY = 0.02, 1e-5, 0.05  # seconds of a file that is read, of a chain that is opened, and of a query's report
_SUPERPOSED = 100.0  # candidates of a query
_RESIDUE_BYTES = 9.0


def expected(request: SearchRequest) -> Expectation:
    """See `engine.estimates`.

    Raises
    ------
    InputError : a file is missing, or a folder holds no structures.
    """
    parameters = request.parameters_as(StructureSearchParameters)
    queries = sources_of(request.inputs.get("queries", ()))
    check_sources(queries)
    n_queries = _CHAINS_OF_FILE * len(queries)
    given = request.inputs.get("database", ())
    folder, read = database_folder(given), 0.0
    if folder is not None:
        size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file() and one.name != DATABASE_FILE)
        chains = max(1.0, size / _BYTES_OF_CHAIN)
    else:
        targets = sources_of(given)
        check_sources(targets)
        read = float(len(targets))
        chains = _CHAINS_OF_FILE * read
    cells = n_queries * chains * _RESIDUES * _RESIDUES
    pairs = n_queries * min(chains, _SUPERPOSED) if parameters.mode == "sensitive" else 0.0

    def scored(card: CardShape | None) -> WorkSize:
        rounds = max(1, round(n_queries))
        return WorkSize(cells, int(n_queries * chains), chains * _RESIDUES * _RESIDUE_BYTES, 8 * n_queries * chains, rounds)

    def superposed(card: CardShape | None) -> WorkSize:
        return WorkSize(pairs * _RESIDUES * _RESIDUES, int(pairs), pairs * _RESIDUES * 32, pairs * (_RESIDUES * 8 + 128))

    works = [ExpectedWork(scoring.KIND, scored), *([ExpectedWork(superposing.KIND, superposed)] if pairs else [])]
    host = {"read": n_queries * _READ_FILE, "index": read * _READ_FILE + chains * _CHAIN, "report": n_queries * _QUERY}
    counts = {"queries": n_queries, "chains": chains, "cells": cells}
    return Expectation(tuple(works), host, counts, chains * _RESIDUES * 40 + pairs * _RESIDUES * 64)
