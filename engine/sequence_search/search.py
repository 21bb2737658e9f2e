"""Exhaustive Smith-Waterman search of a protein database: read, index, plan, score, report."""

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.translation_parameters import create_translation
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.outputs import refuse_packed
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run
from proteoscope.engine.sequence_search.inputs import packed_database, warn_of_unusual_input
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.reported_hits import HitTotals, SearchStatistics, reported_hits, search_statistics
from proteoscope.engine.sequence_search.results import hit_writers
from proteoscope.engine.sequence_search.scoring import measure_shares, open_session, query_batches, score_batch
from proteoscope.engine.sequence_search.summary import DeviceShare, SequenceSearchSummary, hit_counts
from proteoscope.engine.sequences.database import SequenceDatabase, read_sequences
from proteoscope.engine.sequences.hits import FORMATS
from proteoscope.engine.sequences.matrices import matrix_names, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme

__all__ = ["SequenceSearchSummary", "align", "hit_counts"]


def align(request: SearchRequest, progress: Progress | None = None) -> SequenceSearchSummary:
    """Align every query with every sequence of a database, and report the hits.

    Parameters
    ----------
    request : SearchRequest
        Has the inputs ``queries`` and ``database``, files of proteins, and `SequenceSearchParameters`. `out` is a file for the hits
        in `format` (default: ``tsv``), or None; `project` is a project to which a run with its tables is added, or None. The option
        ``all_scores`` is an ``.npy`` file for the scores of all pairs, int32 of shape (queries, subjects), in the order of the files. The
        device ``auto`` is the CPU if it finishes before a GPU is ready.
    progress : Progress, optional
        Progress of the search.

    Raises
    ------
    InputError, ParameterError, StorageError
        If an input or parameter is unsuitable; the user can correct it.
    Cancelled
        If the user cancels.
    """
    parameters, format = request.parameters_as(SequenceSearchParameters), request.format or "tsv"
    if format not in FORMATS:
        raise ParameterError(f"there is no format '{format}'; expected one of {', '.join(FORMATS)}")
    scheme = ScoringScheme(read_matrix(parameters.matrix), parameters.gap_open, parameters.gap_extend)

    def read(progress: Progress, threads: int) -> SequenceDatabase:
        return read_sequences(request.files("queries"), progress)

    with search_run(_spec(request, parameters), read, progress) as run:
        opening = run.begin(run.resources)  # opening a GPU takes as long as reading the files
        run.load_kernels("composition", "striped", "traceback")  # for the report
        queries = run.read()
        with run.step("index"):
            database = packed_database(run, "database", create_translation(parameters))
        warn_of_unusual_input(queries, database, scheme, run.progress, is_adjusted=parameters.composition)
        with run.step("plan"):
            resources = opening().reporting_to(run.progress)
            batches = query_batches(queries, database, scheme)
            run.load_writers()
        totals, statistics = HitTotals(), None
        writing = hit_writers(queries, database, request, format, run.run, run.progress)
        with open_session(database, scheme, resources) as session, writing as writers:
            for batch in batches:
                with run.step("score"):
                    scores = score_batch(session, queries, batch, database, run.progress)
                with run.step("report"):
                    statistics = statistics or search_statistics(
                        scores, queries.lengths[batch], database, scheme, parameters, run.threads, run.progress
                    )
                    for hits in reported_hits(
                        queries, database, scheme, batch, scores, statistics, parameters, run.threads, run.progress, len(writers)
                    ):
                        totals.add(hits.query_hits)
                        for write in writers:
                            write(hits)
            _warn_of_doubtful_e_values(statistics, totals, parameters, run.progress)
        run.device = "+".join([share.device for share in measure_shares(session)] or session.devices)  # without devices that failed
        return _summary(run, queries, database, totals, statistics, measure_shares(session))


def _spec(request: SearchRequest, parameters: SequenceSearchParameters) -> RunSpec:
    """Return the specification of the run, with the files that it reads and writes."""
    matrix = [] if parameters.matrix in matrix_names() else [parameters.matrix]
    if (scores := request.path("all_scores")) is not None:
        refuse_packed(scores, "an array for NumPy")
    return RunSpec(
        "align",
        request,
        {"queries": "QUERY.fasta", "database": "DATABASE.fasta"},
        {"queries": request.files("queries"), "database": request.files("database"), "matrix": matrix},
        request.outputs("all_scores"),
        are_distinct=False,
        kernels="align",
    )


def _warn_of_doubtful_e_values(
    statistics: SearchStatistics | None, totals: HitTotals, parameters: SequenceSearchParameters, progress: Progress
) -> None:
    """Advise the user to increase the maximum E-value if there are no hits and E-values are unreliable."""
    if statistics is not None and statistics.is_doubtful and not totals.n_hits:
        least = f"No hit has an E-value up to {parameters.maximum_e_value:g}"
        progress.message(f"{least}: increase the maximum E-value (maximum_e_value) to see the best scores", "warning")


def _summary(
    run: SearchRun[SequenceDatabase],
    queries: SequenceDatabase,
    database: SequenceDatabase,
    totals: HitTotals,
    statistics: SearchStatistics | None,
    shares: tuple[DeviceShare, ...],
) -> SequenceSearchSummary:
    """Write the record of the run, and return its summary."""
    assert statistics is not None  # files without sequences are rejected
    scores, seconds = statistics.scores, run.clock.stages.get("score", {"seconds": 0.0})["seconds"]
    gcups = round(queries.n_residues * database.n_residues / seconds / 1e9, 2) if seconds else 0.0
    counts = {
        "queries": len(queries),
        "subjects": len(database),
        "residues": database.n_residues,
        "hits": totals.n_hits,
        "queries_with_hits": totals.n_queries_with_hits,
    }
    message = hit_counts(len(queries), totals.n_hits, totals.n_queries_with_hits)
    run.record(counts, message, statistics={"lambda": scores.lambda_, "K": scores.K, "source": scores.source}, gcups=gcups)
    return SequenceSearchSummary(
        **run.summary_fields(counts),
        gcups=gcups,
        lambda_=scores.lambda_,
        K=scores.K,
        statistics=scores.source,
        best=tuple(totals.best),
        shares=shares,
    )
