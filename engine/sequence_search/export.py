"""Export of the hits of a run in the formats of other programs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import TableFile, stored_table
from proteoscope.engine.sequence_search.tables import QUERIES
from proteoscope.engine.sequences.hit_columns import HITS
from proteoscope.engine.sequences.hits import Hits, QueryHits, hit_writer

__all__ = ["export_hits"]

_ROWS = 4096  # maximum rows of a table in memory


def export_hits(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the hits of a run as the search writes them (see `proteoscope.engine.entry.Search.export`).

    Rows are read in batches, so that memory does not grow with the number of hits.

    Raises
    ------
    ParameterError
        If the requested query does not exist, or if several queries have hits, but a file of the format can contain only one query.
    """
    run_id, n_queries = request.run_id, 0
    with hit_writer(request.target, request.format, progress, spreadsheet_safe=request.spreadsheet_safe) as writer:
        progress.stage("Exporting hits", sum(result.rows or 0 for result in project.results(run_id) if result.name == "hits"))
        for query_hits in _read_hits(project, run_id):
            for part in query_hits.batches():
                for chosen in _select_query(part, request.query) if request.query else (part,):
                    writer.write(chosen)
                    n_queries += len(chosen)
                progress.advance(len(part.hits))
        if request.query and not n_queries:
            raise ParameterError(f"run '{run_id}' has no query '{request.query:.60}'")
        progress.check()  # the last chance to cancel: the file appears now
    return [request.target]


def _select_query(query_hits: QueryHits, name: str) -> Iterator[QueryHits]:
    """Yield the queries called `name` with their hits."""
    for position, accession in enumerate(query_hits.accessions.strings()):
        if accession == name:
            yield query_hits.part(slice(position, position + 1))


def _read_hits(project: Project, run_id: str) -> Iterator[QueryHits]:
    """Yield the queries of a run with their hits, in batches and in order."""
    columns = ("query_index", "query", "description", "sequence", "n_hits")
    # The sizes of the tables reveal most damage; verifying their digests would take as long as the export.
    with (
        stored_table(project, run_id, HITS, verify=False) as hits,
        stored_table(project, run_id, QUERIES, columns, verify=False) as queries,
    ):
        rows = _Rows(hits)
        for batch in queries.batches(columns, _ROWS):
            index, n_hits = (batch[name].to_numpy() for name in ("query_index", "n_hits"))
            names, descriptions, symbols = (Texts.from_arrow(batch[name].combine_chunks()) for name in ("query", "description", "sequence"))
            offsets, first = segment_offsets(n_hits), 0
            while first < len(index):
                last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _ROWS, side="right")) - 1)
                of_query = rows.take(int(offsets[last] - offsets[first]))
                if of_query is None or not np.array_equal(of_query.query_index, np.repeat(index[first:last], n_hits[first:last])):
                    raise hits.damaged(f"does not contain the hits of {queries.path.name}")
                some = slice(first, last)
                own_offsets = offsets[first : last + 1] - offsets[first]
                yield QueryHits(index[some], names[some], descriptions[some], symbols[some], own_offsets, of_query)
                first = last


class _Rows:
    """Reader of consecutive rows of a table of hits, in batches of any size."""

    def __init__(self, source: TableFile) -> None:
        self._batches = source.batches(list(HITS.by_name), _ROWS)
        self._held = HITS.schema().empty_table()

    def take(self, n: int) -> Hits | None:
        """Return the next `n` rows as hits, or None if fewer remain."""
        parts, n_held = [self._held], len(self._held)
        while n_held < n:
            batch = next(self._batches, None)
            if batch is None:
                return None
            parts.append(batch)
            n_held += len(batch)
        table = pa.concat_tables(parts)
        self._held = table.slice(n)
        return Hits.from_table(table.slice(0, n))
