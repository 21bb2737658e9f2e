"""Estimated workload of a sequence search, computed from its request."""

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import Expectation, ExpectedWork
from proteoscope.engine.execution.cost.parameters import WorkSize
from proteoscope.engine.execution.workload import GpuShape
from proteoscope.engine.formats.sizes import InputSize, input_size
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.scoring import KIND
from proteoscope.kernels.cuda.alignment_plan import predicted_cycles

__all__ = ["estimate_scoring", "estimate_workload", "expectation"]

_MOST_LENGTHS = 200_000  # maximum number of lengths in a plan
_READ, _REPORT, _PAIR = 1.2e-8, 5e-3, 1.2e-8  # seconds per byte, query with its hits, and inspected score
_TABLES = 0.15  # seconds of each report
_SCORE_BYTES = 256e6  # memory of the scores of a batch of queries on a GPU
_HITS = 40.0  # aligned hits per query
_CELL = 4e-10  # seconds per cell of the matrix of an aligned pair; few cells are traced back


def sample_lengths(size: InputSize) -> np.ndarray:
    """Return sorted sequence lengths that represent all sequences: those at the beginning of the files, repeated.

    There is one length per sequence, but at most `_MOST_LENGTHS`.
    """
    n = int(min(_MOST_LENGTHS, max(1.0, size.records)))
    return np.sort(np.resize(np.array(size.lengths or (max(1, round(size.mean_length)),), np.int64), n))


def estimate_scoring(queries: InputSize, database: InputSize) -> ExpectedWork:
    """Return the estimated workload of scoring every query against every subject."""
    pairs = queries.records * database.records

    def size(gpu: GpuShape | None) -> WorkSize:
        operations = queries.residues * database.residues
        if gpu is not None:
            query_lengths, others = sample_lengths(queries)[:1000], sample_lengths(database)
            cycles = predicted_cycles(gpu.capability, gpu.multiprocessors, gpu.shared_bytes, query_lengths.tolist(), others)
            operations = cycles * operations / max(1.0, float(query_lengths.sum()) * float(others.sum()))
        return WorkSize(operations, int(database.records), database.residues + 8 * database.records + queries.residues, 4 * pairs)

    return ExpectedWork(KIND, size, database.residues + 8 * database.records + min(4 * pairs, _SCORE_BYTES))


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a sequence search (see `proteoscope.engine.estimates`)."""
    parameters = request.parameters_as(SequenceSearchParameters)
    queries, database = input_size(request.files("queries")), input_size(request.files("database"))
    if parameters.translation != "none":
        database = database._replace(residues=2 * database.residues, records=6 * database.records)
    return expectation(queries, database)


def expectation(queries: InputSize, database: InputSize) -> Expectation:
    """Return the estimated workload of a sequence search, given the sizes of queries and database."""
    pairs = queries.records * database.records
    aligned = queries.records * min(_HITS, database.records)
    host = {
        "read": queries.unpacked * _READ,
        "index": database.unpacked * _READ,
        "report": _TABLES + queries.records * _REPORT + pairs * _PAIR + aligned * queries.mean_length * database.mean_length * _CELL,
    }
    counts = {
        "queries": queries.records,
        "subjects": database.records,
        "residues": database.residues,
        "cells": queries.residues * database.residues,
    }
    return Expectation((estimate_scoring(queries, database),), host, counts, 2 * database.unpacked + min(4 * pairs, 1e9))
