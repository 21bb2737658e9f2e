"""Writers of hits during a search: the tables of the project, the file of all scores, and the file of hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.files import atomic_file
from proteoscope.engine.formats.features import FEATURES, Features, features_table
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.sequence_search.reported_hits import ReportedHits
from proteoscope.engine.sequence_search.tables import EXPECTATIONS, QUERIES, SCORES
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.hits import NothingToStackError, QueryHits, expected_counts, hit_writer, hits_schema, hits_table
from proteoscope.engine.sequences.statistics import ScoreStatistics

if TYPE_CHECKING:
    from proteoscope.engine.project.run import Run

__all__ = ["HitWriter", "hit_writers"]

HitWriter = Callable[[ReportedHits], None]
_HITS_PER_GROUP = 1 << 13  # small groups, because the window reads the alignments of single hits


@contextmanager
def hit_writers(
    queries: SequenceDatabase, database: SequenceDatabase, request: SearchRequest, format: str, run: Run | None, progress: Progress
) -> Iterator[list[HitWriter]]:
    """Yield a function that writes hits for each requested output; the files appear when the ``with`` block ends without an error.

    Parameters
    ----------
    queries, database : SequenceDatabase
        Sequences of the search.
    request : SearchRequest
        Request of the search, with the paths of the output files.
    format : str
        Format of the file of hits.
    run : Run or None
        Run whose tables are written; None without a project.
    progress : Progress
        Progress that advances by one step per written hit.

    Yields
    ------
    list of HitWriter
        Functions to call with each group of hits.
    """
    all_scores = request.path("all_scores")
    with ExitStack() as stack:
        writers: list[HitWriter] = []
        if run is not None:
            writers.append(stack.enter_context(_project_tables(run, queries, database, progress)))
        if all_scores is not None:
            writers.append(stack.enter_context(_score_file(all_scores, queries, database, progress)))
        # This writer is opened last, and thus closed first, so that a cancellation which it notices stops the other writers too.
        if request.out:
            writers.append(stack.enter_context(_hit_file(Path(request.out), format, progress)))
        yield writers
        progress.stage("Writing")


@contextmanager
def _hit_file(path: Path, format: str, progress: Progress) -> Iterator[HitWriter]:
    """Yield a function that writes hits to a file in the given format.

    If there are no hits and the format cannot represent an empty result, a warning is reported and no file is written.
    """
    try:
        with hit_writer(path, format, progress) as writer:

            def write(reported: ReportedHits) -> None:
                for part in reported.query_hits.batches():
                    writer.write(part)
                    progress.advance(len(part.hits))

            yield write
    except NothingToStackError as error:
        progress.message(f"{path} is not written: {error}", "warning")


@contextmanager
def _score_file(path: Path, queries: SequenceDatabase, database: SequenceDatabase, progress: Progress) -> Iterator[HitWriter]:
    """Yield a function that writes the scores of all pairs to one array, (queries, subjects), both in the order of their files."""
    with atomic_file(path) as file:
        shape = (len(queries), len(database))
        np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": shape})
        order = np.argsort(database.file_index)

        def write(reported: ReportedHits) -> None:
            for row in reported.scores:
                progress.check()
                file.write(row[order].astype("<i4").tobytes())
            progress.advance(len(reported.query_hits.hits))

        yield write


@contextmanager
def _project_tables(run: Run, queries: SequenceDatabase, database: SequenceDatabase, progress: Progress) -> Iterator[HitWriter]:
    """Open a writer of the tables ``hits``, ``queries``, ``score_counts``, ``score_expectations`` and ``features`` of a run.

    ``score_counts`` contains, for each query, the number of subjects with each score; ``score_expectations`` the number expected by chance.
    ``features`` contains the features of the queries and of the subjects of hits, if the files contain any.
    """
    is_hit = np.zeros(len(database), np.bool_)
    with (
        run.table_writer("hits", hits_schema(), _HITS_PER_GROUP) as hits,
        run.table_writer("queries", QUERIES.schema()) as query_rows,
        run.table_writer("score_counts", SCORES.schema()) as counts,
        run.table_writer("score_expectations", EXPECTATIONS.schema()) as expectations,
    ):

        def write(reported: ReportedHits) -> None:
            result, statistics = reported.query_hits, reported.statistics.scores
            for first in range(0, len(result.hits), _HITS_PER_GROUP):
                progress.check()
                hits.write(hits_table(result.hits.part(slice(first, first + _HITS_PER_GROUP))))
            query_rows.write(_query_table(result, statistics))
            for index, length, scores in zip(
                result.query_index.tolist(), np.diff(result.sequences.offsets).tolist(), reported.scores, strict=True
            ):
                progress.check()
                score, count = np.unique(scores, return_counts=True)
                counts.write(pa.table([np.full(len(score), index), score, count], schema=SCORES.schema()))
                score, expected = expected_counts(statistics, length, database.lengths)
                expectations.write(pa.table([np.full(len(score), index), score, expected], schema=EXPECTATIONS.schema()))
            is_hit[result.hits.subject_index] = True
            progress.advance(len(result.hits))

        yield write
    if queries.features is not None or database.features is not None:
        of_hits = np.flatnonzero(is_hit[database.file_index])
        run.write_table(FEATURES.name, _features(((database, of_hits), (queries, np.arange(len(queries))))))


def _lengths(query_hits: QueryHits) -> NDArray[np.int64]:
    return np.diff(query_hits.sequences.offsets)


def _query_table(query_hits: QueryHits, statistics: ScoreStatistics) -> pa.Table:
    """Return the table of queries, with one row per query."""
    n, n_hits = len(query_hits), np.diff(query_hits.offsets)
    best = np.full(n, np.nan)
    best[n_hits > 0] = query_hits.hits.e_value[query_hits.offsets[:-1][n_hits > 0]]
    columns = [
        pa.array(query_hits.query_index),
        query_hits.accessions.arrow(),
        query_hits.descriptions.arrow(),
        pa.array(_lengths(query_hits), pa.int32()),
        query_hits.sequences.arrow(),
        pa.array(n_hits, pa.int32()),
        pa.array(best, mask=n_hits == 0),
        pa.repeat(statistics.lambda_, n),
        pa.repeat(statistics.K, n),
        pa.repeat(statistics.source, n),
    ]
    return pa.table(columns, schema=QUERIES.schema())


def _features(chosen: Iterable[tuple[SequenceDatabase, NDArray[np.int64]]]) -> pa.Table:
    """Return the features of the given sequences; of sequences with the same name, only the first one counts."""
    accessions: list[str] = []
    parts = []
    for database, numbers in chosen:
        names = Texts(database.accession_bytes, database.accession_offsets).take(numbers).strings()
        reported = set(accessions)
        first = {name: position for position, name in reversed(list(enumerate(names))) if name not in reported}
        some = np.sort(np.fromiter(first.values(), np.int64, len(first)))
        accessions += [names[position] for position in some.tolist()]
        parts.append(Features.none(len(some)) if database.features is None else database.features.take(numbers[some]))
    return features_table(accessions, Features.joined(parts))
