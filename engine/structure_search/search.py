"""Find proteins with the same fold: read -> index -> plan -> score -> report, from structures to tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from math import isnan
from pathlib import Path
from typing import Any

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, search_run
from proteoscope.engine.structure_search.compilation import STRUCTURES
from proteoscope.engine.structure_search.complexes import complex_file, with_complexes
from proteoscope.engine.structure_search.hits import StructureHitSearch, StructureQueryHits
from proteoscope.engine.structure_search.kept_chains import kept_chains
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.results import hit_file, project_tables, write_superpositions
from proteoscope.engine.structure_search.scoring import work_of
from proteoscope.engine.structure_search.structures import (
    DescribedChains,
    chain_input,
    open_chains,
    read_chains,
    sources_of,
    without_structure,
)
from proteoscope.engine.structure_search.summary import Best, StructureSearchSummary
from proteoscope.engine.structure_search.superposing import work_of_superposing

__all__ = ["StructureSearchSummary", "find_structures"]

_N_BEST = 10
_OF_BEST = ["query", "target", "tm_score_query", "same_fold_probability", "e_value", "z_score", "description"]


def find_structures(request: SearchRequest, progress: Progress | None = None) -> StructureSearchSummary:
    """Align every query with the chains of a database by their descriptors, superpose the best and report them.

    Parameters
    ----------
    request : inputs ``queries``, files of structures, folders and lists of them, each perhaps with ``:CHAIN`` behind it, and ``database``,
        the folder of a structure database, or the same; `StructureSearchParameters`. `out` is a file for the hits, tab-separated; `project`
        one to which a run with its tables is added; None for none. Its options: ``superpose``, a folder for each hit's superposition (Cα):
        coordinates, alignment and scripts; ``complexes``, a file for the table in which the chains of a query's file are searched together
        (`proteoscope.engine.structure_search.complexes`).

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters = request.parameters_as(StructureSearchParameters)
    superpose, complexes = request.path("superpose"), request.path("complexes")
    database, query_sources = chain_input(request.inputs.get("database", ())), sources_of(request.inputs.get("queries", ()))
    spec = RunSpec(
        "structures", request, {"queries": "QUERY.cif", "database": "DATABASE"},
        {"queries": [query_source.path for query_source in query_sources],
        "database": database.paths},
        request.outputs("complexes"), are_distinct=False,
    )  # fmt: skip

    def read(progress: Progress, threads: int) -> DescribedChains:
        return read_chains(query_sources, progress, threads, minimum_confidence=parameters.minimum_confidence, models=parameters.models)

    with search_run(spec, read, STRUCTURES, progress) as run:
        opening = run.begin(run.resources)  # a card takes as long to be opened as a database
        query_set = run.read()
        for name in without_structure(query_set):
            run.progress.message(f"{name} has neither a helix nor a strand: its hits say little", "warning")
        with run.step("index"):
            folder, open_with = database.folder, (run.progress, run.threads)
            if folder is None:
                chains = kept_chains(database.files, run.digests("database"), *open_with, parameters.models)
            else:
                chains = open_chains(folder, *open_with)
        if parameters.has_idle_weight:
            run.progress.message("Secondary structure has no weight of its own in the sensitive mode: conformation tells it", "warning")
        for text in (*query_set.messages, *chains.messages):
            run.progress.message(text)
        with run.step("plan"):
            resources = opening().telling(run.progress)
            run.load_writers()
        n_hits, n_aligned, best = 0, 0, list[Mapping[str, Any]]()
        with Executor(resources).session(work_of(chains.arrays)) as session, ExitStack() as stack:
            superposing = stack.enter_context(Executor(resources).session(work_of_superposing("quick")))
            search = StructureHitSearch(query_set, chains, parameters, session, resources, superposing=superposing)
            sinks: list[Callable[[StructureQueryHits], None]] = []
            if run.run is not None:
                sinks.append(stack.enter_context(project_tables(run.run)))
            if request.out is not None:
                sinks.append(stack.enter_context(hit_file(Path(request.out))))
            if superpose is not None:
                sinks.append(lambda found: write_superpositions(superpose, found))
            every = search.score()
            if complexes is not None:
                every = with_complexes(search, every, stack.enter_context(complex_file(complexes)))
            for found in every:
                with run.step("report"):
                    for take in sinks:
                        take(found)
                n_hits, n_aligned = n_hits + len(found.hits), n_aligned + found.n_aligned
                best += found.hits.slice(0, 1).select(_OF_BEST).to_pylist()
            # The last look: when this block is left, what was written is kept.
            run.progress.stage("Writing")
            run.device = "+".join([share.device for share in session.shares()] or session.devices)
        counts = {
            "queries": len(query_set), "chains": len(chains), "residues": len(chains.arrays.state), "hits": n_hits, "aligned": n_aligned,
        }  # fmt: skip
        run.record(counts, counted(n_hits, "hit"))
        best = sorted(best, key=lambda hit: -hit["tm_score_query"])[:_N_BEST]
        return StructureSearchSummary(
            **run.summary_fields,
            mode=parameters.mode,
            n_queries=len(query_set),
            n_chains=len(chains),
            n_residues=len(chains.arrays.state),
            n_hits=n_hits,
            n_aligned=n_aligned,
            best=tuple(map(_best, best)),
        )


def _best(hit: Mapping[str, Any]) -> Best:
    """What is told of a hit; what is not known is None, since JSON knows no NaN."""
    probability, e_value = (None if hit[name] is None or isnan(hit[name]) else hit[name] for name in ("same_fold_probability", "e_value"))
    return hit["query"], hit["target"], hit["tm_score_query"], probability, e_value, hit["z_score"], hit["description"]
