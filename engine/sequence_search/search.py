"""Search a protein database with Smith-Waterman, exhaustively: read -> index -> plan -> score -> report, from FASTA files to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.entry import Count
from engine.errors import InputError, ParameterError, StorageError
from engine.execution.clock import StageClock
from engine.execution.partitions import equal_partitions
from engine.execution.threads import available_threads, run_on_threads
from engine.files import atomic_file
from engine.jobs.progress import Progress, RecordingProgress
from engine.project import Project, RunInput
from engine.project.digests import file_digest
from engine.project.outputs import check_outputs
from engine.project.paths import check_folder_name
from engine.sequence_search.computing import Computing
from engine.sequence_search.division import DividedScorer, Share
from engine.sequence_search.parameters import SequenceSearchParameters
from engine.sequence_search.scoring import score_all
from engine.sequences.alignment import align_pair
from engine.sequences.database import SequenceDatabase, cache_store, decode, open_database, read_sequences
from engine.sequences.hits import (
    FORMATS,
    Hit,
    QueryHits,
    expected_counts,
    hit_writer,
    hits_schema,
    hits_table,
)
from engine.sequences.matrices import matrix_names, read_matrix
from engine.sequences.scheme import ScoringScheme
from engine.sequences.statistics import ScoreStatistics, fit, random_sequences, tabulated, ungapped_lambda
from engine.version import VERSION

if TYPE_CHECKING:
    from engine.project.run import Run

__all__ = ["SequenceSearchSummary", "align", "hit_counts"]

_KIND = "align"
_HITS_PER_GROUP = 1 << 13  # a window reads the alignment of one at a time
_MOST_SCORES = 64_000_000  # of a batch of queries: 256 MB
_CELLS = 1_000_000  # in a step of the progress
_CELLS_OF_ALIGNING = 100_000_000  # in a task
_COLUMNS_OF_ALIGNMENTS, _COLUMNS_OF_A_HIT = 1 << 24, 1000  # of hits that are aligned and written together: some 50 MB
_RANDOM_LENGTHS, _RANDOM_QUERIES, _RANDOM_SUBJECTS = (100, 1000), 16, 2000
_SEED = 20141
_LEAST_NUCLEOTIDE_SHARE = 0.01  # of a database: among millions of proteins there are some of only A, C, G, N and T
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

    def counts(self) -> list[Count]:
        """Hits, and queries that have some where there are several."""
        hits = Count(self.n_hits, "hit", "hits")
        return [hits, Count(self.n_queries_with_hits, "query with hits", "queries with hits")] if self.n_queries > 1 else [hits]

    def lines(self) -> list[str]:
        """What was searched, how many hits there are and by which statistics, and the best of them."""
        queries, subjects = Count(self.n_queries, "query", "queries"), Count(self.n_subjects, "sequence", "sequences")
        residues = Count(self.n_residues, "residue", "residues")
        searched = f"{queries.number:,} {queries.noun} against {subjects.number:,} {subjects.noun}"
        found = hit_counts(self.n_queries, self.n_hits, self.n_queries_with_hits)
        return [
            f"{searched} ({residues.number:,} {residues.noun}); {self.gcups:.1f} GCUPS",
            f"{found}; lambda {self.lambda_:.4g}, K {self.K:.3g}, {self.statistics}",
            *(f"  {query:<24.24} {subject:<24.24} {e_value:8.1e}  {text:.60}" for query, subject, e_value, text in self.best),
        ]


def align(
    queries: Sequence[str | Path],
    databases: Sequence[str | Path],
    out: str | Path | None,
    parameters: SequenceSearchParameters,
    *,
    format: str = "tsv",
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
    _check_files(files)
    if parameters.matrix not in matrix_names():
        files.append((Path(parameters.matrix), "matrix"))
    if project_folder is not None:
        project_folder = Path(project_folder)
        check_folder_name(project_folder)
    outputs = [Path(path) for path in (out, all_scores) if path is not None]
    check_outputs(outputs, [path for path, _ in files], project_folder)
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
            database = _database([one for one in inputs if one.kind == "database"], progress)
        _warn(query_set, database, scheme, progress)
        with clock.stage("device"):
            scorer = computing.scorer(database, scheme, progress)
        search = _Search(query_set, database, scheme, parameters, threads, scorer, clock, progress)
        sinks = _sinks(stack, search, Path(out) if out else None, format, Path(all_scores) if all_scores else None, run)
        for batch in search.batches(len(sinks)):
            with clock.stage("report"):
                for sink in sinks:
                    sink(batch)
        computing.finish(scorer, progress)
        device_used = "+".join([share.device for share in scorer.shares()] or scorer.devices)  # of those that failed, not
        if search.is_doubtful and not search.n_hits:
            least = f"No hit has an E-value up to {parameters.max_e_value:g}"
            progress.message(f"{least}: raise the largest E-value (max_e_value) to see the best scores", "warning")
        if run is not None:
            run.message = hit_counts(len(query_set), search.n_hits, search.n_with_hits)
            run.device = device_used
        # The last look: when this block is left, what was written is kept.
        progress.stage("Writing")
    scoring = clock.stages.get("score", {"seconds": 0.0})["seconds"]
    cells = query_set.n_residues * database.n_residues
    return SequenceSearchSummary(
        run.id if run else None, project.folder if project else None, len(query_set), len(database), database.n_residues, search.n_hits,
        search.n_with_hits, round(cells / scoring / 1e9, 2) if scoring else 0.0, search.statistics.lambda_, search.statistics.K,
        search.statistics.source, round(perf_counter() - began, 3), device_used, clock.stages, progress.messages,
        tuple(search.best), scorer.shares(),
    )  # fmt: skip


def hit_counts(n_queries: int, n_hits: int, n_queries_with_hits: int) -> str:
    """What a search found, in words: ``29 hits`` of one query, ``3,139 hits; 20 of 21 queries with hits`` of several."""
    if not n_hits:
        return "no hits"
    hits = f"{n_hits:,} hit{'' if n_hits == 1 else 's'}"
    return hits if n_queries == 1 else f"{hits}; {n_queries_with_hits:,} of {n_queries:,} queries with hits"


def _check_files(files: list[tuple[Path, str]]) -> None:
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
        if not path.is_file():
            raise InputError(path, "is a pipe or a device, which cannot be read twice", remedy="Give a file")


def _database(inputs: list[RunInput], progress: Progress) -> SequenceDatabase:
    """The packed database; read into memory where the disk refuses to keep it."""
    paths, digests = [one.path for one in inputs], [one.sha256 or "" for one in inputs]
    try:
        return open_database(paths, digests, cache_store(), progress)
    except StorageError as error:
        progress.message(f"The packed database could not be kept, and was read into memory: {error}", "warning")
        return read_sequences(paths, progress)


def _warn(queries: SequenceDatabase, database: SequenceDatabase, scheme: ScoringScheme, progress: Progress) -> None:
    for one, name, share in ((queries, "The queries", 0.0), (database, "The sequences of the database", _LEAST_NUCLEOTIDE_SHARE)):
        if n := one.n_nucleotides if one.n_nucleotides >= share * len(one) else 0:
            who = name if n == len(one) else f"{n:,} of {len(one):,} {name.removeprefix('The ')}"
            looks, they, them = ("looks", "is", "it") if n == 1 < len(one) else ("look", "are", "them")
            progress.message(f"{who} {looks} like DNA or RNA, and {they} compared as protein; translate {them} first", "warning")
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
    """Consecutive queries with their hits, and the scores of all subjects, (queries, subjects) int32 in the order of the database."""

    found: list[QueryHits]
    scores: NDArray[np.int32]

    @property
    def n_hits(self) -> int:
        """Hits of all its queries."""
        return sum(len(one.hits) for one in self.found)


class _Search:
    """Scores the queries in batches that fit into memory, picks the hits of each, and aligns them in batches that do."""

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
        self._clock, self.progress = clock, progress
        self._order, self._lengths = np.argsort(queries.file_index), database.lengths
        self.n_hits = self.n_with_hits = 0
        self.is_doubtful = ungapped_lambda(scheme.matrix) is None
        """Whether E-values say little, as the user was told."""
        self.best: list[tuple[str, str, float, str]] = []
        self.statistics: ScoreStatistics

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self._queries)

    def batches(self, n_sinks: int) -> Iterator[_Batch]:
        """Search; the batches come in the order of the queries' files. So many sinks take each of them, and advance by its hits."""
        size = max(1, _MOST_SCORES // max(1, len(self.database)))
        for first in range(0, len(self._order), size):
            numbers = self._order[first : first + size].tolist()
            codes = [self._queries.codes(i) for i in numbers]
            lengths = np.array([len(one) for one in codes])
            with self._clock.stage("score"):
                self.progress.stage("Scoring", int(lengths.sum()) * self.database.n_residues // _CELLS)
                scores = self._scorer.score(codes, self.progress)
            with self._clock.stage("report"):
                if first == 0:
                    self.statistics = self._statistics(scores, lengths)
                candidates = [self._candidates(len(one), row) for one, row in zip(codes, scores, strict=True)]
                columns = np.array([self._columns(len(one), subjects) for one, (subjects, _) in zip(codes, candidates, strict=True)])
                self.progress.stage("Aligning and writing hits", (1 + n_sinks) * sum(len(subjects) for subjects, _ in candidates))
            parts = equal_partitions(columns, 1, most_cost=_COLUMNS_OF_ALIGNMENTS, per_worker=1)
            for part in sorted(parts, key=lambda part: part.first):
                some = slice(part.first, part.last)
                with self._clock.stage("report"):
                    found = self._aligned(numbers[some], codes[some], scores[some], candidates[some])
                batch = _Batch(found, scores[some])
                self.n_hits += batch.n_hits
                self.n_with_hits += sum(bool(one.hits) for one in found)
                best = [one.hits[0] for one in found if one.hits]
                self.best += [(hit.query, hit.subject, hit.e_value, hit.description) for hit in best]
                self.best = sorted(self.best, key=lambda hit: hit[2])[:10]
                yield batch

    def _statistics(self, scores: NDArray[np.int32], lengths: NDArray[np.int64]) -> ScoreStatistics:
        """From the tables, else fitted to these scores, else to those of random sequences; says which."""
        statistics = tabulated(self.scheme) if self.parameters.statistics == "automatic" else None
        if statistics is not None:
            return statistics
        self.progress.stage("Fitting the statistics")
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
            self.is_doubtful = True
            self.progress.message("The scores do not vary enough to fit their statistics: bit scores and E-values say nothing", "warning")
            return ScoreStatistics(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "none")
        constants = f"lambda = {statistics.lambda_:.4g} and K = {statistics.K:.3g}"
        reasons = f", since {' and '.join(because)}" if because else ""
        self.progress.message(f"{constants} were {statistics.source} ({statistics.n_pairs:,} pairs){reasons}")
        if ungapped is not None and statistics.lambda_ < _LEAST_SHARE_OF_UNGAPPED * ungapped:
            self.is_doubtful = True
            self.progress.message(
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
        self.progress.check()
        database, max_e_value = self.database, self.parameters.max_e_value
        most = int(scores.max(initial=0))
        subjects = np.flatnonzero(scores >= self.statistics.least_scores(max_e_value, length, self._lengths, database.n_residues, most))
        e_values = self.statistics.e_values(scores[subjects], length, self._lengths[subjects], database.n_residues)
        kept = np.flatnonzero(e_values <= max_e_value)
        subjects, e_values = subjects[kept], e_values[kept]
        order = np.lexsort((database.file_index[subjects], -scores[subjects], e_values))[: self.parameters.top]
        return subjects[order], e_values[order]

    def _columns(self, length: int, subjects: NDArray[np.int64]) -> int:
        """Room that the hits of a query may take, in columns of alignments."""
        return 1 + len(subjects) * (length + _COLUMNS_OF_A_HIT) + int(self._lengths[subjects].sum())

    def _aligned(
        self,
        numbers: list[int],
        queries: list[NDArray[np.int8]],
        scores: NDArray[np.int32],
        candidates: list[tuple[NDArray[np.int64], NDArray[np.float64]]],
    ) -> list[QueryHits]:
        """The hits with their alignments, made on all threads."""
        places = [(k, rank) for k, (subjects, _) in enumerate(candidates) for rank in range(len(subjects))]
        bits = [self.statistics.bit_scores(scores[k, subjects]) for k, (subjects, _) in enumerate(candidates)]
        cells = [len(queries[k]) * int(self._lengths[candidates[k][0][rank]]) for k, rank in places]
        tasks = equal_partitions(np.array(cells), self._threads, most_cost=_CELLS_OF_ALIGNING)
        made: list[list[Hit]] = [[] for _ in tasks]

        def work(task: int) -> None:
            for k, rank in places[tasks[task].first : tasks[task].last]:
                subjects, e_values = candidates[k]
                made[task].append(
                    self._hit(
                        numbers[k], queries[k], int(subjects[rank]), int(scores[k, subjects[rank]]), rank + 1, float(bits[k][rank]),
                        float(e_values[rank]),
                    )
                )  # fmt: skip

        run_on_threads(
            work, range(len(tasks)), self._threads, self.progress, steps=lambda task: tasks[task].last - tasks[task].first
        )  # fmt: skip
        by_place = sorted(range(len(tasks)), key=lambda task: tasks[task].first)
        hits = iter([one for task in by_place for one in made[task]])
        found = []
        for k, i in enumerate(numbers):
            name, description, index = self._queries.accession(i), self._queries.description(i), int(self._queries.file_index[i])
            own = list(islice(hits, len(candidates[k][0])))
            found.append(QueryHits(index, name, description, decode(queries[k]), own))
        return found

    def _hit(self, query: int, codes: NDArray[np.int8], subject: int, score: int, rank: int, bit_score: float, e_value: float) -> Hit:
        subject_codes = self.database.codes(subject)
        return Hit.of(
            align_pair(codes, subject_codes, self.scheme, self.progress, score=score),
            query=self._queries.accession(query),
            query_index=int(self._queries.file_index[query]),
            query_length=len(codes),
            subject=self.database.accession(subject),
            description=self.database.description(subject),
            subject_index=int(self.database.file_index[subject]),
            subject_length=len(subject_codes),
            rank=rank,
            bit_score=bit_score,
            e_value=e_value,
        )


def _sinks(
    stack: ExitStack, search: _Search, out: Path | None, format: str, all_scores: Path | None, run: Run | None
) -> list[Callable[[_Batch], None]]:
    """What takes each batch: the project's tables, the file of scores and that of hits; all are whole when the stack is left.

    The file of hits comes last, since it is finished first: a cancel that it heeds then stops the others too.
    """
    sinks: list[Callable[[_Batch], None]] = []
    if run is not None:
        sinks.append(stack.enter_context(_project_tables(run, search)))
    if all_scores is not None:
        sinks.append(stack.enter_context(_score_file(all_scores, search)))
    if out is not None:
        sinks.append(stack.enter_context(_hit_file(out, format, search.progress)))
    return sinks


@contextmanager
def _hit_file(path: Path, format: str, progress: Progress) -> Iterator[Callable[[_Batch], None]]:
    """Takes hits, and writes them in a format."""
    with hit_writer(path, format, progress) as writer:

        def write(batch: _Batch) -> None:
            for one in batch.found:
                writer.write(one)
                progress.advance(len(one.hits))

        yield write


@contextmanager
def _score_file(path: Path, search: _Search) -> Iterator[Callable[[_Batch], None]]:
    """Takes scores, and writes them as one array in the order of the files."""
    with atomic_file(path) as file:
        shape = (search.n_queries, len(search.database))
        np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": shape})
        order = np.argsort(search.database.file_index)

        def write(batch: _Batch) -> None:
            for row in batch.scores:
                search.progress.check()
                file.write(row[order].astype("<i4").tobytes())
            search.progress.advance(batch.n_hits)

        yield write


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
            made = [hit for one in batch.found for hit in one.hits]
            for first in range(0, len(made), _HITS_PER_GROUP):
                search.progress.check()
                hits.write(hits_table(made[first : first + _HITS_PER_GROUP]))
            for one, scores in zip(batch.found, batch.scores, strict=True):
                search.progress.check()
                best = one.hits[0].e_value if one.hits else None
                values = (one.query_index, one.accession, one.description, len(one.sequence), one.sequence, len(one.hits), best)
                rows.append(dict(zip(query_schema.names, (*values, statistics.lambda_, statistics.K, statistics.source), strict=True)))
                score, count = np.unique(scores, return_counts=True)
                index = np.full(len(score), one.query_index, np.int64)
                counts.write(pa.table([index, score.astype(np.int32), count.astype(np.int64)], schema=count_schema))
                score, expected = expected_counts(statistics, len(one.sequence), lengths)
                index = np.full(len(score), one.query_index, np.int64)
                expectations.write(pa.table([index, score, expected], schema=expectation_schema))
            queries.write(pa.Table.from_pylist(rows, schema=query_schema))
            search.progress.advance(batch.n_hits)

        yield write
