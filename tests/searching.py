"""The searches called with files and settings as arguments, which are converted to the engine's requests."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from proteoscope import resources
from proteoscope.engine.clustering.summary import ClusteringSummary, ExplanationSummary
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.identification.report import IdentificationSummary
from proteoscope.engine.imported.summary import ImportSummary
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.modified_search.summary import ModifiedSearchSummary
from proteoscope.engine.parameters import SearchParameters
from proteoscope.engine.read_alignment.summary import ReadAlignmentSummary
from proteoscope.engine.sequence_search.summary import SequenceSearchSummary
from proteoscope.engine.structure_search.summary import StructureSearchSummary

__all__ = ["align", "align_reads", "cluster", "explain", "few_proteins", "find_modified", "find_structures", "identify", "import_results"]

N_PROTEINS = 1000
Files = Sequence[str | Path]
Where = str | Path | None


def few_proteins(folder: Path, n: int = N_PROTEINS) -> Path:
    """Write the last n proteins of the sample database, including those of the sample, for tests that are independent of the number."""
    path = folder / "proteins.fasta"
    path.write_text("".join(_few_proteins()[-n:]), encoding="utf-8")
    return path


@cache
def _few_proteins() -> list[str]:
    with gzip.open(resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz"), "rt", encoding="utf-8") as file:
        return [f">{entry.rstrip()}\n" for entry in file.read().split("\n>")[-N_PROTEINS:]]


def _request(
    inputs: dict[str, Files],
    parameters: SearchParameters,
    project: Where,
    out: Where = None,
    format: str = "",
    device: str = "auto",
    threads: int | None = None,
    **options: Any,
) -> SearchRequest:
    return SearchRequest(inputs, parameters, project, out, format, options, device, threads)


def identify(
    spectra: Files, databases: Files, project: Where, parameters: SearchParameters, *, progress: Progress | None = None, **settings: Any
) -> IdentificationSummary:
    """Identify, with `device`, `threads` and options by name."""
    from proteoscope.engine.identification import search

    return search.identify(_request({"spectra": spectra, "database": databases}, parameters, project, **settings), progress)


def find_modified(
    spectra: Files, databases: Files, project: Where, parameters: SearchParameters, *, progress: Progress | None = None, **settings: Any
) -> ModifiedSearchSummary:
    """Find modified peptides, with options by name."""
    from proteoscope.engine.modified_search import search

    return search.find_modified(_request({"spectra": spectra, "database": databases}, parameters, project, **settings), progress)


def import_results(
    results: Files,
    spectra: Files,
    project: Where,
    databases: Files = (),
    parameters: SearchParameters | None = None,
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> ImportSummary:
    """Import results of another search engine, by default with the usual parameters."""
    from proteoscope.engine.imported import search
    from proteoscope.engine.imported.parameters import ImportParameters

    inputs = {"results": results, "spectra": spectra, "database": databases}
    return search.import_results(_request(inputs, parameters or ImportParameters(), project, **settings), progress)


def cluster(
    spectra: Files, project: Where, parameters: SearchParameters, *, progress: Progress | None = None, **settings: Any
) -> ClusteringSummary:
    """Cluster spectra, with options by name."""
    from proteoscope.engine.clustering import search

    return search.cluster(_request({"spectra": spectra}, parameters, project, **settings), progress)


def explain(
    project: str | Path, parameters: SearchParameters, *, out: Where = None, progress: Progress | None = None, **settings: Any
) -> ExplanationSummary:
    """Explain spectra of a project, with options by name."""
    from proteoscope.engine.clustering import explanation_search

    return explanation_search.explain(_request({"project": [project]}, parameters, None, out, **settings), progress)


def find_structures(
    queries: Files,
    database: Files,
    out: Where,
    parameters: SearchParameters,
    *,
    project_folder: Where = None,
    progress: Progress | None = None,
    **settings: Any,
) -> StructureSearchSummary:
    """Find structures, with options by name."""
    from proteoscope.engine.structure_search import search

    request = _request({"queries": queries, "database": database}, parameters, project_folder, out, **settings)
    return search.find_structures(request, progress)


def align(
    queries: Files,
    databases: Files,
    out: Where,
    parameters: SearchParameters,
    *,
    format: str = "tsv",
    project_folder: Where = None,
    progress: Progress | None = None,
    **settings: Any,
) -> SequenceSearchSummary:
    """Search sequences, with options by name."""
    from proteoscope.engine.sequence_search import search

    return search.align(
        _request({"queries": queries, "database": databases}, parameters, project_folder, out, format, **settings), progress
    )


def align_reads(
    texts: str | Path,
    patterns: str | Path,
    out: Where,
    parameters: SearchParameters,
    *,
    format: str = "tsv",
    is_sorted: bool = False,
    project_folder: Where = None,
    progress: Progress | None = None,
    **settings: Any,
) -> ReadAlignmentSummary:
    """Align reads, with options by name."""
    from proteoscope.engine.read_alignment import search

    request = _request({"texts": [texts], "patterns": [patterns]}, parameters, project_folder, out, format, sorted=is_sorted, **settings)
    return search.align_reads(request, progress)
