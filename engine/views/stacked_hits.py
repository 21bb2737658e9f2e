"""Selected hits of a query as a stack of alignments, and whole sequences of subjects."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import sequences
from proteoscope.engine.arrays import Texts
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.sequences.database import SequenceDatabase, cache_store, open_database
from proteoscope.engine.sequences.stack import AlignedSubjects, Stack
from proteoscope.engine.views.conditions import Condition
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.hits import select_query_hits
from proteoscope.engine.views.tables import TableSource

__all__ = ["MAXIMUM_STACKED", "StackedHits", "SubjectSequence", "open_subjects", "read_subject", "stacked_hits", "write_stack"]

MAXIMUM_STACKED = 500
"""Maximum number of hits in a stack."""
_COLUMNS = (
    *("query_index", "subject", "description", "subject_length", "query_start", "subject_start"),
    *("aligned_query", "aligned_subject", "score"),
)
_REMEDY = "Search the current database again"


@dataclass(frozen=True)
class StackedHits:
    """Stack of n hits; `rows` are the rows of the hits in the table of hits, (n,), and `total` is the number of all selected hits."""

    stack: Stack
    rows: NDArray[np.int64]
    total: int


@dataclass(frozen=True)
class SubjectSequence:
    """Whole database sequence of a hit; `start` and `end` are the first and last aligned residue, from 1."""

    name: str
    description: str
    sequence: str
    start: int
    end: int

    def fasta(self, width: int = 60) -> str:
        """Return the sequence as FASTA, with `width` residues per line."""
        lines = [self.sequence[first : first + width] for first in range(0, len(self.sequence), width)]
        return "\n".join([f">{self.name} {self.description}".rstrip(), *lines]) + "\n"


def stacked_hits(source: TableSource, index: int, conditions: Sequence[Condition] = (), rows: Sequence[int] = ()) -> StackedHits:
    """Return the hits of query number `index`, stacked below the query: the hits in `rows`, or all hits that satisfy the conditions.

    Conditions apply only if `rows` is empty. At most `MAXIMUM_STACKED` hits are used, best first. `source` is any open table of the run.

    Raises
    ------
    ParameterError
        If there is no such query, a row belongs to another query, or the stack would be too large.
    """
    query = source.query("SELECT query, description, sequence FROM queries WHERE query_index = ?", [index]).to_pylist()
    if not query:
        raise ParameterError(f"there is no query {index} in this run")
    hits = source.sibling("hits")
    result = np.sort(np.asarray(rows, np.int64)) if len(rows) else hits.rows([*select_query_hits(index), *conditions])
    chosen = result[:MAXIMUM_STACKED]
    table = hits.values(chosen, _COLUMNS)
    if (table["query_index"].to_numpy() != index).any():
        raise ParameterError("only hits of one query can be stacked")
    numbers = {name: table[name].to_numpy().astype(np.int64) for name in ("subject_length", "query_start", "subject_start", "score")}
    above, below = (Texts.from_strings(table[name].to_pylist()) for name in ("aligned_query", "aligned_subject"))
    subjects = AlignedSubjects(
        table["subject"].to_pylist(),
        table["description"].to_pylist(),
        numbers["subject_length"],
        numbers["query_start"] - 1,
        numbers["subject_start"] - 1,
        above,
        below,
        numbers["score"],
    )
    query_row = query[0]
    return StackedHits(
        Stack.from_subjects(query_row["query"], query_row["description"], query_row["sequence"], subjects), chosen, len(result)
    )


def write_stack(path: Path, stack: Stack, format: str) -> None:
    """Write a stack atomically in one of the formats of `proteoscope.engine.sequences.stack_formats`.

    Raises
    ------
    StorageError
        If writing failed.
    """
    text = sequences.stack_formats.file_header(format) + sequences.stack_formats.stack_text(stack, format)
    with atomic_file(path) as file:
        file.write(text.encode())


def open_subjects(run: FinishedRun, progress: Progress) -> SequenceDatabase:
    """Open the sequence database of a run: from the cache, or else from the files of the run, which must be unchanged.

    Raises
    ------
    InputError
        If a file no longer exists or has changed.
    StorageError
        If the database could not be stored in the cache.
    """
    inputs = [file for file in run.project.inputs(run.run.id) if file.kind == "database"]
    store = cache_store()
    for file in inputs:
        if not file.path.is_file():
            raise InputError(file.path, "is no longer there, so that whole sequences cannot be shown", remedy="Restore the database")
        if file_digest(file.path) != file.sha256:
            raise InputError(file.path, "is no longer the file that was searched", remedy=_REMEDY)
    return open_database([file.path for file in inputs], [file.sha256 for file in inputs], store, progress)


def read_subject(source: TableSource, row: int, database: SequenceDatabase) -> SubjectSequence:
    """Return the whole subject sequence of the hit in a row.

    Raises
    ------
    InputError
        If the database has a different sequence at the index of the subject.
    """
    names = ["subject", "description", "subject_index", "subject_length", "subject_start", "subject_end"]
    hit = source.row(row, names)
    positions = np.flatnonzero(database.file_index == hit["subject_index"])
    if len(positions) != 1 or database.offsets[positions[0] + 1] - database.offsets[positions[0]] != hit["subject_length"]:
        raise InputError(source.path, f"the database contains another sequence instead of {hit['subject']:.60}", remedy=_REMEDY)
    symbols = database.sequences(positions).strings()[0]
    return SubjectSequence(hit["subject"], hit["description"] or "", symbols, hit["subject_start"], hit["subject_end"])
