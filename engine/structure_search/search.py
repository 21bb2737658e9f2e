"""Search for proteins with the same fold, from structures to tables: read, index, plan, score, report."""

from collections import deque
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from proteoscope.engine.arrays import ChainRow
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run
from proteoscope.engine.structure_search.candidates import Candidates, Comparison, best_candidates, query_batches, superpose_candidates
from proteoscope.engine.structure_search.complexes import by_file, complex_hits, complex_writer
from proteoscope.engine.structure_search.fold_clusters import cluster_writer
from proteoscope.engine.structure_search.hits import StructureQueryHits, reported_hits
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.prepared_chains import prepared_chains
from proteoscope.engine.structure_search.results import HitTotals, hit_writers
from proteoscope.engine.structure_search.scoring import build_workload
from proteoscope.engine.structure_search.structures import (
    ChainInput,
    DescribedChains,
    chain_input,
    open_chains,
    read_chains,
    sources_of,
    without_structure,
)
from proteoscope.engine.structure_search.summary import StructureSearchSummary
from proteoscope.engine.structure_search.superposing import build_superposition_workload
from proteoscope.engine.structures.superposition import Superpositions

__all__ = ["StructureSearchSummary", "find_structures"]

Result = TypeVar("Result")


def find_structures(request: SearchRequest, progress: Progress | None = None) -> StructureSearchSummary:
    """Align every query with the chains of a database by descriptors, superpose the best chains, and report them.

    Parameters
    ----------
    request : SearchRequest
        Request with `StructureSearchParameters` and two inputs. ``queries``: structure files, folders, and lists of files or folders, each
        optionally with ``:CHAIN``. ``database``: the folder of a structure database, or files as for the queries. `out` is a file for the
        hits, tab-separated, or None; `project` is a project to which a run with its tables is added, or None. Options: ``superpose``, a
        folder for the superposition of each hit (Cα): coordinates, alignment and scripts; ``complexes``, a file for the table of database
        files that match all chains of a query file (`proteoscope.engine.structure_search.complexes`); ``all``, to compare the chains of the
        database with each other instead of with queries; ``clusters``, a file for the clusters of these chains
        (`proteoscope.engine.structure_search.fold_clusters`).
    progress : Progress, optional
        Progress of the search.

    Raises
    ------
    InputError, ParameterError, StorageError
        If an input or parameter is unsuitable; the user can correct it.
    Cancelled
        If the user cancels.
    """
    parameters = request.parameters_as(StructureSearchParameters)
    superpose, complexes, clusters = (request.path(name) for name in ("superpose", "complexes", "clusters"))
    is_all = request.flag("all")
    database, query_sources = chain_input(request.inputs.get("database", ())), sources_of(request.inputs.get("queries", ()))
    _check_options(request, parameters)
    spec = RunSpec(
        "structures",
        request,
        {**({} if is_all else {"queries": "QUERY.cif"}), "database": "DATABASE"},
        {"queries": [source.path for source in query_sources], "database": database.paths},
        request.outputs("clusters", "complexes", "superpose"),
        are_distinct=False,
        kernels="structures",
    )

    def read(progress: Progress, threads: int) -> DescribedChains | None:
        if is_all:
            return None
        return read_chains(query_sources, progress, threads, minimum_plddt=parameters.minimum_plddt, models=parameters.models)

    with search_run(spec, read, progress) as run:
        opening = run.begin(run.resources)  # opening a GPU takes as long as opening a database
        given = run.read()
        with run.step("index"):
            chains = _database(run, database, parameters)
        queries = chains if given is None else given
        _warn_of_input(given, chains, parameters, run.progress)
        with run.step("plan"):
            resources = opening().reporting_to(run.progress)
            batches = query_batches(queries, parameters, resources)
            run.load_writers()
        totals, output = HitTotals(), None if request.out is None else Path(request.out)
        with (
            Executor(resources).session(build_workload(chains.arrays)) as session,
            Executor(resources).session(build_superposition_workload()) as superposing,
            hit_writers(run.run, output, superpose) as writers,
            complex_writer(complexes) as write_complexes,
            cluster_writer(run.run if is_all else None, clusters, chains) as cluster_writers,
            ExitStack() as stack,
        ):
            comparison = Comparison(queries, chains, parameters, session, resources, superposing, is_all=is_all)
            # Complexes are compared with the same sessions, one after the other.
            scored = stack.enter_context(closing(_scored_hits(run, comparison, batches, is_ahead=complexes is None)))
            for of_file in by_file(queries, scored):
                complex_chains = list[StructureQueryHits]()
                for hits in of_file:
                    with run.step("report"):
                        totals.add(hits)
                        for write in (*writers, *cluster_writers):
                            write(hits)
                    complex_chains += [hits] if write_complexes is not None else []
                if write_complexes is not None:
                    with run.step("score"):
                        result = complex_hits(comparison, complex_chains)
                    write_complexes(result)
            # A cancellation noticed here discards all results; when the block ends, the files and tables are stored.
            run.progress.stage("Writing")
            n_pairs = len(chains) * (len(chains) - 1) // 2
            if is_all and totals.n_hits < n_pairs:
                run.progress.message(
                    f"{totals.n_hits:,} of {n_pairs:,} pairs of chains are reported and used for clusters: the others were not aligned, or"
                    " exceed the maximum hits per query"
                )
            run.device = "+".join([share.device for share in session.shares()] or session.devices)
        return _summary(run, queries, chains, totals, parameters)


def _check_options(request: SearchRequest, parameters: StructureSearchParameters) -> None:
    """Raise an error if options contradict each other."""
    if not request.flag("all"):
        if request.path("clusters") is not None:
            raise ParameterError("clusters contain all chains of a database: give --all with --clusters")
        return
    if request.inputs.get("queries"):
        raise ParameterError("--all compares the chains of the database with each other: leave out the queries")
    if request.path("complexes") is not None:
        raise ParameterError("--complexes compares the files of queries: leave out --all")
    if parameters.minimum_plddt > 0:
        raise ParameterError("minimum_plddt applies to queries: leave out --all, or build a database with --minimum-plddt")


def _database(run: SearchRun[DescribedChains | None], database: ChainInput, parameters: StructureSearchParameters) -> DescribedChains:
    """Return the chains against which queries are compared, from a structure database or from files."""
    if database.folder is not None:
        return open_chains(database.folder, run.progress, run.threads)
    return prepared_chains(database.files, run.digests("database"), run.progress, run.threads, parameters.models)


def _warn_of_input(
    queries: DescribedChains | None, chains: DescribedChains, parameters: StructureSearchParameters, progress: Progress
) -> None:
    """Warn about unusual input."""
    for name in [] if queries is None else without_structure(queries):
        progress.message(f"{name} has neither a helix nor a strand: its hits are hardly meaningful", "warning")
    if parameters.has_idle_weight:
        progress.message("Secondary structure has no weight in the sensitive mode: the conformation already contains it", "warning")
    for text in (*(() if queries is None else queries.messages), *chains.messages):
        progress.message(text)


def _scored_hits(
    run: SearchRun[DescribedChains | None], comparison: Comparison, batches: list[list[ChainRow]], *, is_ahead: bool
) -> Generator[StructureQueryHits, None, None]:
    """Yield each query with its hits.

    If `is_ahead`, three batches are processed at the same time: one is reported, the next one superposed, and candidates of the third are
    searched.
    """
    if not batches:
        return
    latest = deque[Callable[[], object]](maxlen=2)  # two tasks run at the same time

    def begin(work: Callable[[Progress], Result]) -> Callable[[], Result]:
        if not is_ahead:
            return partial(work, run.progress)
        result = run.begin(work)
        latest.append(result)
        return result

    def searching(batch: list[ChainRow]) -> Callable[[], list[Candidates]]:
        def search(progress: Progress) -> list[Candidates]:
            reporting = comparison._replace(resources=comparison.resources.reporting_to(progress))
            return [best_candidates(reporting, query) for query in batch]

        return begin(search)

    def superposing(candidates: list[Candidates]) -> Callable[[], list[Superpositions]]:
        return begin(
            lambda progress: superpose_candidates(comparison._replace(resources=comparison.resources.reporting_to(progress)), candidates)
        )

    try:
        with run.step("score"):
            candidates = searching(batches[0])()
        superposed = superposing(candidates)
        for number in range(len(batches)):
            searched = searching(batches[number + 1]) if number + 1 < len(batches) else None
            with run.step("score"):
                aligned, reported = superposed(), candidates
                if searched is not None:
                    candidates = searched()
                    superposed = superposing(candidates)
            with run.step("report"):
                hits = list(reported_hits(comparison, reported, aligned))
            yield from hits
    finally:
        for result in latest:  # the sessions close only after their last use
            with suppress(Exception):
                result()


def _summary(
    run: SearchRun[DescribedChains | None],
    queries: DescribedChains,
    chains: DescribedChains,
    totals: HitTotals,
    parameters: StructureSearchParameters,
) -> StructureSearchSummary:
    """Write the record of the run, and return its summary."""
    counts = {
        "queries": len(queries),
        "chains": len(chains),
        "residues": len(chains.arrays.state),
        "hits": totals.n_hits,
        "aligned": totals.n_aligned,
    }
    run.record(counts, counted(totals.n_hits, "hit"))
    return StructureSearchSummary(**run.summary_fields(counts), mode=parameters.mode, best=totals.best)
