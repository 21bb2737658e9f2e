"""Sinks of the hits of a structure search as they come: the project's tables, and the file of hits."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.results.separated import TRIMMED, header_line, separated_lines
from proteoscope.engine.structure_search.hits import StructureQueryHits
from proteoscope.engine.structure_search.tables import HITS, QUERIES
from proteoscope.engine.structures.outputs import write_superposition

if TYPE_CHECKING:
    from proteoscope.engine.project.run import Run

__all__ = ["hit_file", "project_tables", "write_superpositions"]

_NOT_IN_FOLDERS = re.compile(r"[^0-9A-Za-z_-]")
_OF_SEARCH = ("score", "z_score", "e_value", "same_fold_probability", "phase1_ratio")  # what a superposition does not know of itself


@contextmanager
def hit_file(path: Path) -> Iterator[Callable[[StructureQueryHits], None]]:
    """Takes queries with their hits, and writes ``hits.tsv``, whole or not at all."""
    with atomic_file(path) as file:
        file.write(header_line(HITS.saved_columns))

        def write(found: StructureQueryHits) -> None:
            file.write(separated_lines(found.hits, HITS.saved_columns, TRIMMED))

        yield write


@contextmanager
def project_tables(run: Run) -> Iterator[Callable[[StructureQueryHits], None]]:
    """Takes queries with their hits, and writes ``queries`` and ``hits`` of a run."""
    with run.table_writer("hits", HITS.schema()) as hits, run.table_writer("queries", QUERIES.schema()) as queries:

        def write(one: StructureQueryHits) -> None:
            best = max(one.hits["tm_score_query"].to_pylist(), default=None)
            queries.write(
                QUERIES.arrow(
                    {
                        "query_index": [one.index], "query": [one.query], "description": [one.description], "length": [len(one.sequence)],
                        "sequence": [one.sequence], "states": [one.states], "n_hits": [len(one.hits)], "n_aligned": [one.n_aligned],
                        "best_tm_score": [best],
                    }
                )
            )  # fmt: skip
            if len(one.hits):
                hits.write(one.hits)

        yield write


def write_superpositions(folder: Path, found: StructureQueryHits) -> None:
    """Write each hit of a query beside it, into folders ``QUERY/RANK-TARGET``; of names only what any file system takes is left."""
    own = folder / f"{found.index + 1}-{_NOT_IN_FOLDERS.sub('_', found.query)}"
    for hit, beside in zip(found.hits.select(["rank", "target", *_OF_SEARCH]).to_pylist(), found.beside, strict=True):
        place = own / f"{hit['rank']}-{_NOT_IN_FOLDERS.sub('_', hit['target'])}"
        with storage_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        write_superposition(place, beside, extra={name: "" if math.isnan(hit[name]) else f"{hit[name]:.10g}" for name in _OF_SEARCH})
