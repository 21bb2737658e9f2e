"""Find proteins with the same fold: read -> index -> plan -> score -> report, from structures to tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from engine.execution.executor import Executor
from engine.jobs.progress import Progress
from engine.search_run import Asked, search_run
from engine.structure_search.compilation import STRUCTURES
from engine.structure_search.complexes import complex_file, with_complexes
from engine.structure_search.hits import Hit, HitSearch, QueryHits
from engine.structure_search.parameters import StructureSearchParameters
from engine.structure_search.results import hit_file, project_tables, write_superpositions
from engine.structure_search.scoring import work_of
from engine.structure_search.structures import (
    DATABASE_FILE,
    DescribedChains,
    Source,
    database_folder,
    open_chains,
    read_chains,
    sources_of,
    without_structure,
)
from engine.structure_search.summary import StructureSearchSummary

__all__ = ["StructureSearchSummary", "find_structures"]

_N_BEST = 10


def find_structures(
    queries: Sequence[str | Path],
    database: Sequence[str | Path],
    out: str | Path | None,
    parameters: StructureSearchParameters,
    *,
    superpose: str | Path | None = None,
    complexes: str | Path | None = None,
    project_folder: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> StructureSearchSummary:
    """Align every query with the chains of a database by their descriptors, superpose the best and report them.

    Parameters
    ----------
    queries : files of structures, folders and lists of them, each perhaps with ``:CHAIN`` behind it. database : the folder of a structure
        database, or the same.
    out : file for the hits, tab-separated; None for none. superpose : a folder for each hit's
        superposition (Cα): coordinates, alignment and scripts; None for none. complexes : file for the table in which the chains of a
        query's file are searched together (`engine.structure_search.complexes`); None for none.
    project_folder : a project to which a run with its tables is added.
    device, threads : see `engine.execution.devices.chosen_device`; all threads when None.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    folder = database_folder(database)
    asked_queries, asked_database = sources_of(queries), [Source(folder / DATABASE_FILE)] if folder else sources_of(database)
    asked = Asked(
        "structures",
        {"queries": [one.path for one in asked_queries], "database": [one.path for one in asked_database]},
        {"queries": "QUERY.cif", "database": "DATABASE"},
        parameters,
        are_distinct=False,
        outputs=[Path(one) for one in (out, complexes) if one is not None],
        project=project_folder,
        device=device,
        threads=threads,
    )

    def read(progress: Progress, threads: int) -> DescribedChains:
        return read_chains(asked_queries, progress, threads, least_confidence=parameters.least_confidence)

    with search_run(asked, read, STRUCTURES, progress) as run:
        opening = run.begin(run.resources)  # a card takes as long to be opened as a database
        query_set = run.read()
        for name in without_structure(query_set):
            run.progress.message(f"{name} has neither a helix nor a strand: its hits say little", "warning")
        with run.step("index"):
            chains = open_chains(folder, run.progress, run.threads) if folder else read_chains(asked_database, run.progress, run.threads)
        if parameters.has_idle_weight:
            run.progress.message("Secondary structure has no weight of its own in the sensitive mode: conformation tells it", "warning")
        for text in (*query_set.told, *chains.told):
            run.progress.message(text)
        with run.step("plan"):
            resources = opening().telling(run.progress)
        n_hits, n_aligned, best = 0, 0, list[Hit]()
        with Executor(resources).session(work_of(chains.arrays)) as session, ExitStack() as stack:
            search = HitSearch(query_set, chains, parameters, session, resources)
            sinks: list[Callable[[QueryHits], None]] = []
            if run.run is not None:
                sinks.append(stack.enter_context(project_tables(run.run)))
            if out is not None:
                sinks.append(_rows(stack.enter_context(hit_file(Path(out)))))
            if superpose is not None:
                sinks.append(lambda found: write_superpositions(Path(superpose), found))
            every = search.all_hits()
            if complexes is not None:
                every = with_complexes(search, every, stack.enter_context(complex_file(Path(complexes))))
            for found in every:  # score
                with run.step("report"):
                    for take in sinks:
                        take(found)
                n_hits, n_aligned = n_hits + len(found.hits), n_aligned + found.n_aligned
                best += found.hits[:1]
            # The last look: when this block is left, what was written is kept.
            run.progress.stage("Writing")
            run.device = "+".join([share.device for share in session.shares()] or session.devices)
        counts = {
            "queries": len(query_set), "chains": len(chains), "residues": len(chains.arrays.state), "hits": n_hits, "aligned": n_aligned,
        }  # fmt: skip
        run.record(counts, f"{n_hits:,} {'hit' if n_hits == 1 else 'hits'}")
        best = sorted(best, key=lambda hit: -hit.tm_score_query)[:_N_BEST]
        return StructureSearchSummary(
            **run.told,
            mode=parameters.mode,
            n_queries=len(query_set),
            n_chains=len(chains),
            n_residues=len(chains.arrays.state),
            n_hits=n_hits,
            n_aligned=n_aligned,
            best=tuple((hit.query, hit.target, hit.tm_score_query, hit.z_score, hit.description) for hit in best),
        )


def _rows(write: Callable[[dict[str, object]], None]) -> Callable[[QueryHits], None]:
    def take(found: QueryHits) -> None:
        for hit in found.hits:
            write({name: getattr(hit, name) for name in hit.__slots__})

    return take
