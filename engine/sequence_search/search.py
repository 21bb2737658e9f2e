"""Search a protein database with Smith-Waterman, exhaustively: read -> index -> plan -> score -> report, from FASTA files to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError, ParameterError, StorageError
from engine.execution.clock import StageClock
from engine.execution.partitions import equal_partitions
from engine.execution.threads import available_threads, run_on_threads
from engine.formats.writers.atomic import atomic_file
from engine.jobs.progress import Progress, RecordingProgress
from engine.project import Project, RunInput
from engine.project.digests import file_digest
from engine.sequence_search.alignment import Alignment, align_pair
from engine.sequence_search.computing import Computing
from engine.sequence_search.database import SequenceDatabase, cache_store, decode, open_database, project_store, read_sequences
from engine.sequence_search.division import DividedScorer, Share
from engine.sequence_search.matrices import read_matrix
from engine.sequence_search.parameters import SequenceSearchParameters
from engine.sequence_search.report import FORMATS, Hit, HitFormat, QueryHits, expected_counts, hit_writer, hits_schema, hits_table
from engine.sequence_search.scoring import ScoringScheme, score_all
from engine.sequence_search.statistics import ScoreStatistics, fit, random_sequences, tabulated, ungapped_lambda
from engine.version import VERSION

if TYPE_CHECKING:
    from engine.project.run import Run

__all__ = ["SequenceSearchSummary", "align"]

_KIND = "align"
_HITS_PER_GROUP = 1 << 13  # a window reads the alignment of one at a time
_MOST_SCORES = 64_000_000  # of a batch of queries: 256 MB
_CELLS = 1_000_000  # in a step of the progress
_CELLS_OF_ALIGNING = 100_000_000  # in a task
_RANDOM_LENGTHS, _RANDOM_QUERIES, _RANDOM_SUBJECTS = (100, 1000), 16, 2000
_SEED = 20141
_LEAST_LAMBDA_SHARE = 0.5  # of chance's: real proteins have some 0.85
_LEAST_SHARE_OF_UNGAPPED = 0.3  # below it, gaps let scores of chance grow with the lengths


@dataclass(frozen=True)
class SequenceSearchSummary:
    """What a sequence search did.

    `run_id` and `folder` are those of the project, None where there is none. `gcups`: thousand million cells of the matrices in a second of
    scoring. `statistics`: where lambda and K come from. `stages`: seconds and peak memory of each step. `messages`: what the user should
    know. `best`: (query, subject, E-value, description) of the best hits. `shares`: what each device did of the scoring.
    """

    run_id: str | None
    folder: Path | None
    n_queries: int
    n_subjects: int
    n_residues: int
    n_hits: int
    n_queries_with_hits: int
    gcups: float
    lambda_: float
    K: float
    statistics: str
    seconds: float
    device: str
    stages: dict[str, dict[str, float]]
    messages: tuple[str, ...]
    best: tuple[tuple[str, str, float, str], ...]
    shares: tuple[Share, ...] = ()


def align(
    queries: Sequence[str | Path],
    databases: Sequence[str | Path],
    out: str | Path | None,
    parameters: SequenceSearchParameters,
    *,
    format: HitFormat = "tsv",
    all_scores: str | Path | None = None,
    project_folder: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> SequenceSearchSummary:
    """Align every query with every sequence of a database and report the hits.

    Parameters
    ----------
    queries, databases : FASTA files of proteins, also gzipped.
    out : file for the hits, in `format`; None for none. all_scores : ``.npy`` file for the scores of all pairs, int32 of shape (queries,
        subjects), in the order of the files. project_folder : a project to which a run with its tables is added.
    device : ``cpu``; ``cuda``, the first usable GPU; ``cuda:N``; ``all``, all usable GPUs and the processor together; ``auto``, all usable
        GPUs, but the processor where there is none and where it has done the work before a GPU is ready. threads : of the processor, all
        when None.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    progress = RecordingProgress(progress or Progress())
    if format not in FORMATS:
        raise ParameterError(f"there is no format '{format}'; expected one of {', '.join(FORMATS)}")
    threads = threads or available_threads()
    began, clock = perf_counter(), StageClock()
    files = [(Path(path), kind) for kind, paths in (("queries", queries), ("database", databases)) for path in paths]
    outputs = [Path(path) for path in (out, all_scores) if path is not None]
    _check_files(files, outputs)
    scheme = ScoringScheme(read_matrix(parameters.matrix), parameters.gap_open, parameters.gap_extend)
    computing = Computing(device, [Path(path) for path in queries], [Path(path) for path in databases], threads)
    with ExitStack() as stack:
        run: Run | None = None
        project: Project | None = None
        inputs = [RunInput(path, kind, file_digest(path, progress)) for path, kind in files]
        if project_folder is not None:
            chosen = computing.device(progress).name
            project = Project.create_or_open(project_folder)
            values = parameters.model_dump(mode="json")
            run = stack.enter_context(project.run(_KIND, values, inputs, version=VERSION, device=chosen, progress=progress))
            progress.log_to(run.log)
        with clock.stage("read"):
            query_set = read_sequences([path for path, kind in files if kind == "queries"], progress)
        computing.complain()
        with clock.stage("index"):
            database = _database([one for one in inputs if one.kind == "database"], project, progress)
        _warn(query_set, database, scheme, progress)
        with clock.stage("device"):
            scorer = computing.scorer(database, scheme, progress)
        search = _Search(query_set, database, scheme, parameters, threads, scorer, clock, progress)
        sinks = _sinks(stack, search, Path(out) if out else None, format, Path(all_scores) if all_scores else None, run)
        for batch in search.batches():
            with clock.stage("report"):
                for sink in sinks:
                    sink(batch)
        computing.finish(scorer, progress)
        if run is not None:
            run.message = f"{search.n_hits} hits of {search.n_with_hits} of {len(query_set)} queries"
    scoring = clock.stages.get("score", {"seconds": 0.0})["seconds"]
    cells = query_set.n_residues * database.n_residues
    return SequenceSearchSummary(
        run.id if run else None, project.folder if project else None, len(query_set), len(database), database.n_residues, search.n_hits,
        search.n_with_hits, round(cells / scoring / 1e9, 2) if scoring else 0.0, search.statistics.lambda_, search.statistics.K,
        search.statistics.source, round(perf_counter() - began, 3), "+".join(scorer.devices), clock.stages, progress.messages,
        tuple(search.best), scorer.shares(),
    )  # fmt: skip


def _check_files(files: list[tuple[Path, str]], outputs: list[Path]) -> None:
    for kind, example in (("queries", "QUERY.fasta"), ("database", "DATABASE.fasta")):
        if not any(one == kind for _, one in files):
            raise ParameterError(f"no file of {kind} was given, as {example}")
    for path, _ in files:
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise InputError(ascii(str(path)), "the file's name is not valid UTF-8", remedy="Rename it") from None
        if not path.exists():
            raise InputError(path, "does not exist", remedy="Check the path")
        if path.is_dir():
            raise InputError(path, "is a folder", remedy="Give the FASTA files in it")
    for out in outputs:
        if any(out.exists() and out.samefile(path) for path, _ in files):
            raise ParameterError(f"{out} is read and would be written over; choose another name for the results")
    if len({path.absolute() for path in outputs}) < len(outputs):
        raise ParameterError(f"{outputs[0]} would be written twice; choose another name for the scores")


def _database(inputs: list[RunInput], project: Project | None, progress: Progress) -> SequenceDatabase:
    """The packed database; read into memory where the disk refuses to keep it."""
    paths, digests = [one.path for one in inputs], [one.sha256 or "" for one in inputs]
    store = cache_store() if project is None else project_store(project.folder)
    try:
        return open_database(paths, digests, store, progress)
    except StorageError as error:
        progress.message(f"The packed database could not be kept, and was read into memory: {error}", "warning")
        return read_sequences(paths, progress)


def _warn(queries: SequenceDatabase, database: SequenceDatabase, scheme: ScoringScheme, progress: Progress) -> None:
    for one, name in ((queries, "The queries"), (database, "The sequences of the database")):
        if one.is_nucleotides:
            progress.message(f"{name} look like DNA or RNA, and are compared as if they were proteins; translate them first", "warning")
        if n_empty := int((one.lengths == 0).sum()):
            progress.message(
                f"{name}: {n_empty} without residues, which {'score' if n_empty > 1 else 'scores'} 0 with everything", "warning"
            )
        if n := one.n_repeated_names:
            progress.message(f"{name}: {n} with a name that stood before; {'each' if n > 1 else 'it'} is searched as a sequence of its own")
    if ungapped_lambda(scheme.matrix) is None:
        progress.message(
            f"With matrix {scheme.matrix.name} chance alone gives scores that grow with the lengths: do not trust the E-values", "warning"
        )


@dataclass(frozen=True)
class _Batch:
    """Consecutive queries with the scores of all subjects, (queries, subjects) int32 in the order of the database, and their hits."""

    found: list[QueryHits]
    scores: NDArray[np.int32]


class _Search:
    """Scores the queries in batches that fit into memory, and picks and aligns the hits of each."""

    def __init__(
        self,
        queries: SequenceDatabase,
        database: SequenceDatabase,
        scheme: ScoringScheme,
        parameters: SequenceSearchParameters,
        threads: int,
        scorer: DividedScorer,
        clock: StageClock,
        progress: Progress,
    ) -> None:
        self.database, self.scheme, self.parameters = database, scheme, parameters
        self._queries, self._threads, self._scorer = queries, threads, scorer
        self._clock, self._progress = clock, progress
        self._order, self._lengths = np.argsort(queries.file_index), database.lengths
        self.n_hits = self.n_with_hits = 0
        self.best: list[tuple[str, str, float, str]] = []
        self.statistics: ScoreStatistics

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self._queries)

    def batches(self) -> Iterator[_Batch]:
        """Search; the batches come in the order of the queries' files."""
        size = max(1, _MOST_SCORES // max(1, len(self.database)))
        for first in range(0, len(self._order), size):
            numbers = self._order[first : first + size].tolist()
            codes = [self._queries.codes(i) for i in numbers]
            lengths = np.array([len(one) for one in codes])
            with self._clock.stage("score"):
                self._progress.stage("Scoring", int(lengths.sum()) * self.database.n_residues // _CELLS)
                scores = self._scorer.score(codes, self._progress)
            with self._clock.stage("report"):
                if first == 0:
                    self.statistics = self._statistics(scores, lengths)
                candidates = [self._candidates(len(one), row) for one, row in zip(codes, scores, strict=True)]
                found = self._aligned(numbers, codes, scores, candidates)
            self.n_hits += sum(len(one.hits) for one in found)
            self.n_with_hits += sum(bool(one.hits) for one in found)
            self.best += [(one.accession, one.hits[0].accession, one.hits[0].e_value, one.hits[0].description) for one in found if one.hits]
            self.best = sorted(self.best, key=lambda hit: hit[2])[:10]
            yield _Batch(found, scores)

    def _statistics(self, scores: NDArray[np.int32], lengths: NDArray[np.int64]) -> ScoreStatistics:
        """From the tables, else fitted to these scores, else to those of random sequences; says which."""
        statistics = tabulated(self.scheme) if self.parameters.statistics == "automatic" else None
        if statistics is not None:
            return statistics
        self._progress.stage("Fitting the statistics")
        ungapped = ungapped_lambda(self.scheme.matrix)
        scheme, because = self.scheme, []
        if self.parameters.statistics == "automatic":
            because.append(f"NCBI has no table for {scheme.matrix.name} {scheme.gap_open}/{scheme.gap_extend}")
        statistics = fit(scores, lengths, self.database.lengths, scheme, "fitted to the scores of this search")
        if statistics is None or ungapped is None or statistics.lambda_ < _LEAST_LAMBDA_SHARE * ungapped:
            own, statistics = statistics, self._of_random_sequences()
            # Relatives spread the scores wide, and would be taken for chance.
            if own is not None and (statistics is None or own.lambda_ >= _LEAST_LAMBDA_SHARE * statistics.lambda_):
                statistics = own
            else:
                because.append("too few pairs of this search are unrelated" if own else "this search has too few pairs that differ")
        if statistics is None:
            self._progress.message("The scores do not vary enough to fit their statistics: bit scores and E-values say nothing", "warning")
            return ScoreStatistics(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "none")
        constants = f"lambda = {statistics.lambda_:.4g} and K = {statistics.K:.3g}"
        reasons = f", since {' and '.join(because)}" if because else ""
        self._progress.message(f"{constants} were {statistics.source} ({statistics.n_pairs:,} pairs){reasons}")
        if ungapped is not None and statistics.lambda_ < _LEAST_SHARE_OF_UNGAPPED * ungapped:
            self._progress.message(
                "The gaps cost so little that scores of chance grow with the lengths: do not trust the E-values", "warning"
            )
        return statistics

    def _of_random_sequences(self) -> ScoreStatistics | None:
        generator = np.random.default_rng(_SEED)
        lengths = [generator.integers(*_RANDOM_LENGTHS, count) for count in (_RANDOM_QUERIES, _RANDOM_SUBJECTS)]
        (queries, query_offsets), (subjects, offsets) = (random_sequences(one, _SEED + k) for k, one in enumerate(lengths))
        codes = np.split(queries, query_offsets[1:-1])
        scores = score_all(codes, subjects, offsets, self.scheme, self._threads, Progress())
        return fit(scores, lengths[0], lengths[1], self.scheme, "fitted to the scores of random sequences")

    def _candidates(self, length: int, scores: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Subjects that a query of so many residues hits, best first, and their E-values."""
        self._progress.check()
        database, max_e_value = self.database, self.parameters.max_e_value
        most = int(scores.max(initial=0))
        subjects = np.flatnonzero(scores >= self.statistics.least_scores(max_e_value, length, self._lengths, database.n_residues, most))
        e_values = self.statistics.e_values(scores[subjects], length, self._lengths[subjects], database.n_residues)
        kept = np.flatnonzero(e_values <= max_e_value)
        subjects, e_values = subjects[kept], e_values[kept]
        order = np.lexsort((database.file_index[subjects], -scores[subjects], e_values))[: self.parameters.top]
        return subjects[order], e_values[order]

    def _aligned(
        self,
        numbers: list[int],
        queries: list[NDArray[np.int8]],
        scores: NDArray[np.int32],
        candidates: list[tuple[NDArray[np.int64], NDArray[np.float64]]],
    ) -> list[QueryHits]:
        """The hits with their alignments, made on all threads."""
        pairs = [(k, subject) for k, (subjects, _) in enumerate(candidates) for subject in subjects.tolist()]
        self._progress.stage("Aligning hits", len(pairs))
        cells = [len(queries[k]) * int(self.database.lengths[subject]) for k, subject in pairs]
        tasks = equal_partitions(np.array(cells), self._threads, most_cost=_CELLS_OF_ALIGNING)
        aligned: list[list[Alignment]] = [[] for _ in tasks]

        def work(task: int) -> None:
            for k, subject in pairs[tasks[task].first : tasks[task].last]:
                codes = self.database.codes(subject)
                aligned[task].append(align_pair(queries[k], codes, self.scheme, self._progress, score=int(scores[k, subject])))

        run_on_threads(
            work, range(len(tasks)), self._threads, self._progress, steps=lambda task: tasks[task].last - tasks[task].first
        )  # fmt: skip
        by_place = sorted(range(len(tasks)), key=lambda task: tasks[task].first)
        alignments = iter([one for task in by_place for one in aligned[task]])
        found = []
        for k, (subjects, e_values) in enumerate(candidates):
            values = zip(subjects.tolist(), self.statistics.bit_scores(scores[k, subjects]).tolist(), e_values.tolist(), strict=True)
            hits = [self._hit(subject, int(scores[k, subject]), bits, e_value, next(alignments)) for subject, bits, e_value in values]
            i = numbers[k]
            name, description, index = self._queries.accession(i), self._queries.description(i), int(self._queries.file_index[i])
            found.append(QueryHits(index, name, description, queries[k], hits))
        return found

    def _hit(self, subject: int, score: int, bits: float, e_value: float, alignment: Alignment) -> Hit:
        database = self.database
        index, length = int(database.file_index[subject]), len(database.codes(subject))
        return Hit(subject, index, database.accession(subject), database.description(subject), length, score, bits, e_value, alignment)


def _sinks(
    stack: ExitStack, search: _Search, out: Path | None, format: HitFormat, all_scores: Path | None, run: Run | None
) -> list[Callable[[_Batch], None]]:
    """What takes each batch: the file of hits, the file of scores and the project's tables; all are whole when the stack is left."""
    sinks: list[Callable[[_Batch], None]] = []
    if out is not None:
        sinks.append(stack.enter_context(_hit_file(out, format)))
    if all_scores is not None:
        sinks.append(stack.enter_context(_score_file(all_scores, search)))
    if run is not None:
        sinks.append(stack.enter_context(_project_tables(run, search)))
    return sinks


@contextmanager
def _hit_file(path: Path, format: HitFormat) -> Iterator[Callable[[_Batch], None]]:
    """Takes hits, and writes them in a format."""
    with hit_writer(path, format) as writer:

        def write(batch: _Batch) -> None:
            for one in batch.found:
                writer.write(one)

        yield write


@contextmanager
def _score_file(path: Path, search: _Search) -> Iterator[Callable[[_Batch], None]]:
    """Takes scores, and writes them as one array in the order of the files."""
    with atomic_file(path) as file:
        shape = (search.n_queries, len(search.database))
        np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": shape})
        order = np.argsort(search.database.file_index)

        def write(batch: _Batch) -> None:
            _write_rows(file, batch.scores, order)

        yield write


def _write_rows(file: BinaryIO, scores: NDArray[np.int32], order: NDArray[np.int64]) -> None:
    for row in scores:
        file.write(row[order].astype("<i4").tobytes())


@contextmanager
def _project_tables(run: Run, search: _Search) -> Iterator[Callable[[_Batch], None]]:
    """Takes batches, and writes ``hits``, ``queries``, ``score_counts`` and ``score_expectations`` of a run.

    ``queries``: one row a query. ``score_counts``: how many subjects have each score with each query. ``score_expectations``: how many
    chance lets have it.
    """
    import pyarrow as pa

    query_schema = pa.schema([
        ("query_index", pa.int64()), ("query", pa.string()), ("description", pa.string()), ("length", pa.int32()),
        ("sequence", pa.string()), ("n_hits", pa.int32()), ("best_e_value", pa.float64()), ("lambda", pa.float64()), ("K", pa.float64()),
        ("statistics", pa.string()),
    ])  # fmt: skip
    count_schema = pa.schema([("query_index", pa.int64()), ("score", pa.int32()), ("n_subjects", pa.int64())])
    expectation_schema = pa.schema([("query_index", pa.int64()), ("score", pa.int32()), ("n_expected", pa.float64())])
    with (
        run.table_writer("hits", hits_schema(), _HITS_PER_GROUP) as hits,
        run.table_writer("queries", query_schema) as queries,
        run.table_writer("score_counts", count_schema) as counts,
        run.table_writer("score_expectations", expectation_schema) as expectations,
    ):

        def write(batch: _Batch) -> None:
            statistics, lengths, rows = search.statistics, search.database.lengths, []
            for one, scores in zip(batch.found, batch.scores, strict=True):
                hits.write(hits_table(one))
                best = one.hits[0].e_value if one.hits else None
                values = (one.query_index, one.accession, one.description, one.length, decode(one.codes), len(one.hits), best)
                rows.append(dict(zip(query_schema.names, (*values, statistics.lambda_, statistics.K, statistics.source), strict=True)))
                score, count = np.unique(scores, return_counts=True)
                index = np.full(len(score), one.query_index, np.int64)
                counts.write(pa.table([index, score.astype(np.int32), count.astype(np.int64)], schema=count_schema))
                score, expected = expected_counts(statistics, one.length, lengths)
                index = np.full(len(score), one.query_index, np.int64)
                expectations.write(pa.table([index, score, expected], schema=expectation_schema))
            queries.write(pa.Table.from_pylist(rows, schema=query_schema))

        yield write
