"""Writers of hits during a search: the tables of the project, the file of hits, and superpositions."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.reader import stored_table
from proteoscope.engine.results.separated import TRIMMED, header_line, separated_lines, write_separated
from proteoscope.engine.structure_search.hits import StructureQueryHits
from proteoscope.engine.structure_search.summary import Best
from proteoscope.engine.structure_search.tables import HITS, QUERIES
from proteoscope.engine.structures.outputs import write_superposition

__all__ = ["HitTotals", "export_hits", "hit_writers"]

HitWriter = Callable[[StructureQueryHits], None]

_N_BEST = 10
_OF_BEST = ["query", "target", "tm_score_query", "same_fold_probability", "e_value", "z_score", "description"]
_NOT_IN_FOLDERS = re.compile(r"[^0-9A-Za-z_-]")
_OF_SEARCH = ("score", "z_score", "e_value", "same_fold_probability", "phase1_ratio")  # columns that only the search fills


@dataclass
class HitTotals:
    """Numbers of hits of a search, and its best hits.

    Attributes
    ----------
    n_hits, n_aligned : int
        Number of hits, and number of pairs that were aligned in phase 2.
    """

    n_hits: int = 0
    n_aligned: int = 0
    _best: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, query_hits: StructureQueryHits) -> None:
        """Add the hits of a query."""
        self.n_hits += len(query_hits.hits)
        self.n_aligned += query_hits.n_aligned
        self._best += query_hits.hits.slice(0, 1).select(_OF_BEST).to_pylist()

    @property
    def best(self) -> tuple[Best, ...]:
        """Best hits, at most one per query; unknown values are null, because JSON has no NaN."""
        best = sorted(self._best, key=lambda hit: -hit["tm_score_query"])[:_N_BEST]
        rows = [{name: None if isinstance(value, float) and isnan(value) else value for name, value in hit.items()} for hit in best]
        return tuple(tuple(hit[name] for name in _OF_BEST) for hit in rows)  # type: ignore[misc]


@contextmanager
def hit_writers(run: Run | None, out: Path | None, superpose: Path | None) -> Iterator[list[HitWriter]]:
    """Yield a function that writes hits for each requested output.

    Superpositions are written at once; the tables and the file of hits appear when the ``with`` block ends without an error.

    Parameters
    ----------
    run : Run or None
        Run whose tables are written; None without a project.
    out : Path or None
        File of hits.
    superpose : Path or None
        Folder of superpositions.

    Yields
    ------
    list of HitWriter
        Functions to call with the hits of each query.
    """
    with ExitStack() as stack:
        writers: list[HitWriter] = []
        if run is not None:
            writers.append(stack.enter_context(_project_tables(run)))
        if out is not None:
            writers.append(stack.enter_context(_hit_file(out)))
        if superpose is not None:
            writers.append(partial(_write_superpositions, superpose))
        yield writers


@contextmanager
def _hit_file(path: Path) -> Iterator[HitWriter]:
    """Open a writer of ``hits.tsv``, which is written atomically."""
    with atomic_file(path) as file:
        file.write(header_line(HITS.saved_columns))

        def write(query_hits: StructureQueryHits) -> None:
            file.write(separated_lines(query_hits.hits, HITS.saved_columns, TRIMMED))

        yield write


@contextmanager
def _project_tables(run: Run) -> Iterator[HitWriter]:
    """Open a writer of the tables ``queries`` and ``hits`` of a run."""
    with run.table_writer("hits", HITS.schema()) as hits, run.table_writer("queries", QUERIES.schema()) as queries:

        def write(query_hits: StructureQueryHits) -> None:
            best = max(query_hits.hits["tm_score_query"].to_pylist(), default=None)
            queries.write(
                QUERIES.arrow(
                    {
                        "query_index": [query_hits.index],
                        "query": [query_hits.query],
                        "description": [query_hits.description],
                        "length": [len(query_hits.sequence)],
                        "sequence": [query_hits.sequence],
                        "states": [query_hits.states],
                        "n_hits": [len(query_hits.hits)],
                        "n_aligned": [query_hits.n_aligned],
                        "best_tm_score": [best],
                    }
                )
            )
            if len(query_hits.hits):
                hits.write(query_hits.hits)

        yield write


def _write_superpositions(folder: Path, query_hits: StructureQueryHits) -> None:
    """Write the superposition of each hit of a query to a folder ``QUERY/RANK-TARGET``, whose name is valid in all file systems."""
    query_folder = folder / f"{query_hits.index + 1}-{_NOT_IN_FOLDERS.sub('_', query_hits.query)}"
    for hit, aligned in zip(query_hits.hits.select(["rank", "target", *_OF_SEARCH]).to_pylist(), query_hits.aligned, strict=True):
        place = query_folder / f"{hit['rank']}-{_NOT_IN_FOLDERS.sub('_', hit['target'])}"
        with storage_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        write_superposition(place, aligned, extra={name: "" if isnan(hit[name]) else f"{hit[name]:.10g}" for name in _OF_SEARCH})


_ROWS = 4096  # maximum rows of a table in memory


def export_hits(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the hits of a run as the search writes them (see `proteoscope.engine.entry.Search.export`)."""
    progress.stage("Exporting hits", sum(result.rows or 0 for result in project.results(request.run_id) if result.name == "hits"))
    with stored_table(project, request.run_id, HITS, HITS.saved, verify=False) as source:
        # All columns are checked, including those that are not exported.
        rows = source.batches(rows=_ROWS)
        write_separated(request.target, rows, HITS.saved_columns, progress, TRIMMED, spreadsheet_safe=request.spreadsheet_safe, rows=_ROWS)
    return [request.target]
