"""Batches of queries whose scores fit into memory, and the scores of each."""

from __future__ import annotations

from typing import NewType

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.executor import Session
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.scoring import STEP_CELLS, score_queries
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.scheme import ScoringScheme

__all__ = ["QueryBatch", "query_batches", "score_batch"]

QueryBatch = NewType("QueryBatch", NDArray[np.int64])
"""Numbers of queries that are scored together, in the order of their files."""

_MAXIMUM_SCORES = 64_000_000  # of a batch: 256 MB


def query_batches(queries: SequenceDatabase, database: SequenceDatabase, scheme: ScoringScheme) -> list[QueryBatch]:
    """Return the queries in the order of their files, in batches whose scores with all subjects fit into memory.

    Raises
    ------
    ParameterError
        A score could exceed 32 bits.
    """
    scheme.check(int(queries.lengths.max(initial=0)), int(database.lengths.max(initial=0)))
    order, size = np.argsort(queries.file_index), max(1, _MAXIMUM_SCORES // max(1, len(database)))
    return [QueryBatch(order[first : first + size]) for first in range(0, len(order), size)]


def score_batch(
    session: Session, queries: SequenceDatabase, batch: QueryBatch, database: SequenceDatabase, progress: Progress
) -> NDArray[np.int32]:
    """Return the Smith-Waterman scores of the queries of a batch with all subjects: (queries, subjects) int32.

    Raises
    ------
    Cancelled
        The user cancelled the search.
    """
    progress.stage("Scoring", int(queries.lengths[batch].sum()) * database.n_residues // STEP_CELLS)
    return score_queries(session, [queries.codes(number) for number in batch.tolist()])
