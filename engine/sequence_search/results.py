"""Sinks of the hits of a sequence search as they come: the project's tables, the file of scores, the file of hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts
from proteoscope.engine.files import atomic_file
from proteoscope.engine.formats.feature_tables import FEATURES, features_table
from proteoscope.engine.formats.features import Features
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.sequence_search.hit_search import Batch, SequenceHitSearch
from proteoscope.engine.sequence_search.tables import EXPECTATIONS, QUERIES, SCORES
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.hits import NothingToStackError, expected_counts, hit_writer, hits_schema, hits_table

if TYPE_CHECKING:
    from proteoscope.engine.project.run import Run

__all__ = ["sinks"]

_HITS_PER_GROUP = 1 << 13  # a window reads the alignment of one at a time


def sinks(
    stack: ExitStack, search: SequenceHitSearch, out: Path | None, format: str, all_scores: Path | None, run: Run | None
) -> list[Callable[[Batch], None]]:
    """Sinks of each batch: the project's tables, the file of scores and that of hits; all are whole when the stack is left.

    The file of hits comes last, since it is finished first: a cancel that it heeds then stops the others too.
    """
    found: list[Callable[[Batch], None]] = []
    if run is not None:
        found.append(stack.enter_context(_project_tables(run, search)))
    if all_scores is not None:
        found.append(stack.enter_context(_score_file(all_scores, search)))
    if out is not None:
        found.append(stack.enter_context(_hit_file(out, format, search.progress)))
    return found


@contextmanager
def _hit_file(path: Path, format: str, progress: Progress) -> Iterator[Callable[[Batch], None]]:
    """Takes hits, and writes them in a format; of none, where that holds nothing else, no file, which is told."""
    try:
        with hit_writer(path, format, progress) as writer:

            def write(batch: Batch) -> None:
                for piece in batch.found.pieces():
                    writer.write(piece)
                    progress.advance(len(piece.hits))

            yield write
    except NothingToStackError as error:
        progress.message(f"{path} is not written: {error}", "warning")


@contextmanager
def _score_file(path: Path, search: SequenceHitSearch) -> Iterator[Callable[[Batch], None]]:
    """Takes scores, and writes them as one array in the order of the files."""
    with atomic_file(path) as file:
        shape = (search.n_queries, len(search.database))
        np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": shape})
        order = np.argsort(search.database.file_index)

        def write(batch: Batch) -> None:
            for row in batch.scores:
                search.progress.check()
                file.write(row[order].astype("<i4").tobytes())
            search.progress.advance(batch.n_hits)

        yield write


@contextmanager
def _project_tables(run: Run, search: SequenceHitSearch) -> Iterator[Callable[[Batch], None]]:
    """Takes batches, and writes ``hits``, ``queries``, ``score_counts`` and ``score_expectations`` of a run.

    ``queries``: one row a query. ``score_counts``: how many subjects have each score with each query. ``score_expectations``: how many
    chance lets have it. ``features``: what the files say of the queries and of the subjects of hits, where they say anything.
    """
    is_hit = np.zeros(len(search.database), np.bool_)
    with (
        run.table_writer("hits", hits_schema(), _HITS_PER_GROUP) as hits,
        run.table_writer("queries", QUERIES.schema()) as queries,
        run.table_writer("score_counts", SCORES.schema()) as counts,
        run.table_writer("score_expectations", EXPECTATIONS.schema()) as expectations,
    ):

        def write(batch: Batch) -> None:
            statistics, found, progress = search.statistics, batch.found, search.progress
            for first in range(0, len(found.hits), _HITS_PER_GROUP):
                progress.check()
                hits.write(hits_table(found.hits.part(slice(first, first + _HITS_PER_GROUP))))
            n_hits = np.diff(found.offsets)
            best = np.full(len(found), np.nan)
            best[n_hits > 0] = found.hits.e_value[found.offsets[:-1][n_hits > 0]]
            lengths, n = np.diff(found.sequences.offsets), len(found)
            queries.write(
                pa.table(
                    [
                        pa.array(found.query_index), found.accessions.arrow(), found.descriptions.arrow(), pa.array(lengths, pa.int32()),
                        found.sequences.arrow(), pa.array(n_hits, pa.int32()), pa.array(best, mask=n_hits == 0),
                        pa.repeat(statistics.lambda_, n), pa.repeat(statistics.K, n), pa.repeat(statistics.source, n),
                    ],
                    schema=QUERIES.schema(),
                )
            )  # fmt: skip
            for index, length, scores in zip(found.query_index.tolist(), lengths.tolist(), batch.scores, strict=True):
                progress.check()
                score, count = np.unique(scores, return_counts=True)
                counts.write(pa.table([np.full(len(score), index), score, count], schema=SCORES.schema()))
                score, expected = expected_counts(statistics, length, search.database.lengths)
                expectations.write(pa.table([np.full(len(score), index), score, expected], schema=EXPECTATIONS.schema()))
            is_hit[found.hits.subject_index] = True
            progress.advance(batch.n_hits)

        yield write
    of_hits = np.flatnonzero(is_hit[search.database.file_index])
    if search.queries.features is not None or search.database.features is not None:
        run.write_table(FEATURES.name, _features(((search.database, of_hits), (search.queries, np.arange(len(search.queries))))))


def _features(chosen: Iterable[tuple[SequenceDatabase, NDArray[np.int64]]]) -> pa.Table:
    """Features of some sequences; of several of one name, those of the first."""
    accessions: list[str] = []
    parts = []
    for database, numbers in chosen:
        names = Texts(database.accession_bytes, database.accession_offsets).take(numbers).strings()
        known = set(accessions)
        first = {name: place for place, name in reversed(list(enumerate(names))) if name not in known}
        some = np.sort(np.fromiter(first.values(), np.int64, len(first)))
        accessions += [names[place] for place in some.tolist()]
        parts.append(Features.none(len(some)) if database.features is None else database.features.take(numbers[some]))
    return features_table(accessions, Features.joined(parts))
