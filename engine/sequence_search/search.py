"""Search a protein database with Smith-Waterman, exhaustively: read -> index -> plan -> score -> report, from FASTA files to tables."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.translation_parameters import translation_of
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.search_run import RunSpec, search_run
from proteoscope.engine.sequence_search.compilation import ALIGNMENT, load_report_kernels
from proteoscope.engine.sequence_search.computing import Computing, shares_of
from proteoscope.engine.sequence_search.hit_search import SequenceHitSearch
from proteoscope.engine.sequence_search.input_warnings import warn_of_low_complexity, warn_of_unusual_input
from proteoscope.engine.sequence_search.packed import packed_database
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.results import sinks
from proteoscope.engine.sequence_search.summary import SequenceSearchSummary, hit_counts
from proteoscope.engine.sequences.database import SequenceDatabase, read_sequences
from proteoscope.engine.sequences.hits import FORMATS
from proteoscope.engine.sequences.matrices import matrix_names, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme

__all__ = ["SequenceSearchSummary", "align", "hit_counts"]


def align(request: SearchRequest, progress: Progress | None = None) -> SequenceSearchSummary:
    """Align every query with every sequence of a database and report the hits.

    Parameters
    ----------
    request : inputs ``queries`` and ``database``, files of proteins, also gzipped; `SequenceSearchParameters`. `out` is a file for
        the hits, in `format` (``tsv`` where it says none); `project` one to which a run with its tables is added; None for none. Its option
        ``all_scores`` is an ``.npy`` file for the scores of all pairs, int32 of shape (queries, subjects), in the order of the files. The
        device ``auto`` is the processor also where that has done the work before a GPU is ready.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters, format = request.parameters_as(SequenceSearchParameters), request.format or "tsv"
    if format not in FORMATS:
        raise ParameterError(f"there is no format '{format}'; expected one of {', '.join(FORMATS)}")
    own_matrix = [] if parameters.matrix in matrix_names() else [parameters.matrix]
    queries, database_files = request.files("queries"), request.files("database")
    spec = RunSpec(
        "align", request, {"queries": "QUERY.fasta", "database": "DATABASE.fasta"},
        {"queries": queries, "database": database_files, "matrix": own_matrix}, request.outputs("all_scores"), are_distinct=False,
    )  # fmt: skip
    scheme = ScoringScheme(read_matrix(parameters.matrix), parameters.gap_open, parameters.gap_extend)
    computing = Computing(request)

    def read(progress: Progress, threads: int) -> SequenceDatabase:
        return read_sequences(queries, progress)

    with search_run(spec, read, ALIGNMENT, progress, computing.look) as run:
        opening = run.begin(run.resources)  # a card takes as long to be opened as files to be read
        run.begin(load_report_kernels)
        query_set = run.read()
        with run.step("index"):
            database = packed_database(run, "database", translation_of(parameters))
        warn_of_unusual_input(query_set, database, scheme, run.progress)
        if parameters.composition:
            warn_of_low_complexity(query_set, run.progress)
        with run.step("plan"):
            resources = opening().telling(run.progress)
            run.load_writers()
        with computing.session(database, scheme, resources) as session, ExitStack() as stack:
            search = SequenceHitSearch(query_set, database, scheme, parameters, session, resources)
            taking = sinks(stack, search, Path(request.out) if request.out else None, format, request.path("all_scores"), run.run)
            for batch in search.score(len(taking)):
                with run.step("report"):
                    for take in taking:
                        take(batch)
            search.say_whether_doubtful()
            # The last look: when this block is left, what was written is kept.
            run.progress.stage("Writing")
        shares = shares_of(session)
        run.device = "+".join([share.device for share in shares] or session.devices)  # of those that failed, not
        cells, scoring = query_set.n_residues * database.n_residues, run.clock.stages.get("score", {"seconds": 0.0})["seconds"]
        counts = {
            "queries": len(query_set), "subjects": len(database), "residues": database.n_residues, "hits": search.n_hits,
            "queries_with_hits": search.n_with_hits,
        }  # fmt: skip
        gcups = round(cells / scoring / 1e9, 2) if scoring else 0.0
        statistics = {"lambda": search.statistics.lambda_, "K": search.statistics.K, "source": search.statistics.source}
        message = hit_counts(len(query_set), search.n_hits, search.n_with_hits)
        run.record(counts, message, statistics=statistics, gcups=gcups)
        numbers: dict[str, Any] = {f"n_{name}": number for name, number in counts.items()}
        return SequenceSearchSummary(
            **run.summary_fields,
            **numbers,
            gcups=gcups,
            lambda_=search.statistics.lambda_,
            K=search.statistics.K,
            statistics=search.statistics.source,
            best=tuple(search.best),
            shares=shares,
        )
