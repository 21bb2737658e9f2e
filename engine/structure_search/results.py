"""What takes the hits of a structure search as they come: the project's tables, and the file of hits."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from engine.files import atomic_file, storage_errors
from engine.formats.spreadsheet import no_formula
from engine.structure_search.hits import Hit, QueryHits
from engine.structures.outputs import ROW_COLUMNS, write_superposition

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.project.run import Run

__all__ = ["COLUMNS", "hit_file", "project_tables", "write_superpositions"]

COLUMNS = ROW_COLUMNS
"""Columns of the table and their order, which others rely on."""

_NOT_IN_FOLDERS = re.compile(r"[^0-9A-Za-z_-]")
_OF_SEARCH = ("score", "z_score", "phase1_ratio")  # what a superposition does not know of itself
_TEXTS = ("query", "target", "description")


@contextmanager
def hit_file(path: Path, *, spreadsheet_safe: bool = False) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Takes hits by the names of their columns, and writes ``hits.tsv``, whole or not at all.

    `spreadsheet_safe`: an apostrophe stands before names that a spreadsheet would take for formulas.
    """
    with atomic_file(path) as file:
        file.write(("\t".join(COLUMNS) + "\n").encode())

        def write(row: Mapping[str, Any]) -> None:
            cells = [_cell(row[name], is_safe=spreadsheet_safe and name in _TEXTS) for name in COLUMNS]
            file.write(("\t".join(cells) + "\n").encode())

        yield write


def _cell(value: Any, *, is_safe: bool) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.10g}"
    text = " ".join(str(value).split())
    text = no_formula(text) if is_safe else text
    return '"' + text.replace('"', '""') + '"' if '"' in text else text


@contextmanager
def project_tables(run: Run) -> Iterator[Callable[[QueryHits], None]]:
    """Takes queries with their hits, and writes ``queries`` and ``hits`` of a run."""
    import pyarrow as pa

    query_schema = pa.schema([
        ("query_index", pa.int64()), ("query", pa.string()), ("description", pa.string()), ("length", pa.int32()),
        ("sequence", pa.string()), ("states", pa.string()), ("n_hits", pa.int32()), ("n_aligned", pa.int64()),
        ("best_tm_score", pa.float64()),
    ])  # fmt: skip
    schema = hits_schema()
    with run.table_writer("hits", schema) as hits, run.table_writer("queries", query_schema) as queries:

        def write(one: QueryHits) -> None:
            best = max((hit.tm_score_query for hit in one.hits), default=None)
            own = one.index, one.query, one.description, len(one.sequence), one.sequence, one.states
            values = *own, len(one.hits), one.n_aligned, best
            queries.write(pa.Table.from_pylist([dict(zip(query_schema.names, values, strict=True))], schema=query_schema))
            if one.hits:
                columns = [pa.array([getattr(hit, field.name) for hit in one.hits], field.type) for field in schema]
                hits.write(pa.table(columns, schema=schema))

        yield write


def write_superpositions(folder: Path, found: QueryHits) -> None:
    """Write each hit of a query beside it, into folders ``QUERY/RANK-TARGET``; of names only what any file system takes is left."""
    own = folder / f"{found.index + 1}-{_NOT_IN_FOLDERS.sub('_', found.query)}"
    for hit, beside in zip(found.hits, found.beside, strict=True):
        place = own / f"{hit.rank}-{_NOT_IN_FOLDERS.sub('_', hit.target)}"
        with storage_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        write_superposition(place, beside, extra={name: _cell(getattr(hit, name), is_safe=False) for name in _OF_SEARCH})


def hits_schema() -> pa.Schema:
    """Columns of the table of hits: those of a `Hit`."""
    import pyarrow as pa

    kinds = {str: pa.string(), float: pa.float64(), int: pa.int32()}
    types = get_type_hints(Hit)
    return pa.schema([(field.name, kinds[types[field.name]]) for field in fields(Hit)])
