"""Alignments of pairs as rows of the table, and the file of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.arrays import Texts
from engine.formats.separated import write_separated
from engine.jobs.progress import Progress
from engine.read_alignment.sequences import NamedSequences
from engine.read_alignment.tables import COLUMNS, DECIMALS
from kernels.gapsmis_layouts import NO_ALIGNMENT, Alignments, Sequences

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["alignment_rows", "alignment_schema", "better_strands", "write_alignments"]


def alignment_schema() -> pa.Schema:
    """Columns of the table ``alignments``."""
    import pyarrow as pa

    texts, parts = {"text", "pattern", "strand", "cigar"}, {"identity"}
    return pa.schema([(name, pa.string() if name in texts else pa.float64() if name in parts else pa.int32()) for name in COLUMNS])


def better_strands(forward: Alignments, reverse: Alignments) -> tuple[Alignments, NDArray[np.bool_]]:
    """Of each pair the better alignment of both strands, the forward one where they score the same, and whether it is the reverse one."""
    is_reverse = reverse.score > forward.score
    chosen = [
        np.where(is_reverse[:, None] if one.ndim == 2 else is_reverse, other, one) for one, other in zip(forward, reverse, strict=True)
    ]
    return Alignments(*chosen), is_reverse


def alignment_rows(
    texts: NamedSequences,
    patterns: NamedSequences,
    strands: Sequences,
    text_of: NDArray[np.int64],
    pattern_of: NDArray[np.int64],
    found: Alignments,
    is_reverse: NDArray[np.bool_],
) -> pa.Table:
    """Rows of the table, one for each pair.

    Parameters
    ----------
    strands : the patterns, and behind them their reverse complements where some are aligned. text_of, pattern_of : (n,) of each pair.
    """
    import pyarrow as pa

    from kernels.cpu.cigars import cigars_of

    is_none = found.score == NO_ALIGNMENT
    letters, offsets, same, columns = cigars_of(texts.sequences, strands, text_of, pattern_of + is_reverse * len(patterns), found)
    text_length, pattern_length = texts.lengths[text_of], patterns.lengths[pattern_of]
    start, end = found.pattern_start.astype(np.int64), found.pattern_end.astype(np.int64)
    # The places of a reverse complement, counted on the pattern as it was given.
    given_start, given_end = np.where(is_reverse, pattern_length - end, start), np.where(is_reverse, pattern_length - start, end)
    signs = Texts.of(["+", "-"]).take(is_reverse.astype(np.int64))
    numbers = {
        "score": found.score, "gaps": found.gaps, "identity": same / np.maximum(1, columns), "text_start": found.text_start + 1,
        "text_end": found.text_end, "pattern_start": given_start + 1, "pattern_end": given_end,
    }  # fmt: skip
    schema = alignment_schema()
    known = {name: pa.array(values, schema.field(name).type, mask=is_none) for name, values in numbers.items()}
    empty = pa.scalar(None, pa.string())
    import pyarrow.compute as pc

    known["strand"] = pc.if_else(pa.array(is_none), empty, signs.arrow())
    known["cigar"] = pc.if_else(pa.array(is_none), empty, Texts(letters, offsets).arrow())
    known["text"], known["pattern"] = texts.names.take(text_of).arrow(), patterns.names.take(pattern_of).arrow()
    known["text_length"], known["pattern_length"] = (pa.array(one, pa.int32()) for one in (text_length, pattern_length))
    return pa.table([known[name] for name in schema.names], schema=schema)


def write_alignments(
    out: Path, tables: Iterable[pa.Table], progress: Progress, *, spreadsheet_safe: bool = False, threads: int = 1
) -> None:
    """Write rows as ``alignments.tsv``, as they come: a pair without an alignment has the score ``-inf`` and no places.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    write_separated(
        out, map(_with_infinite_scores, tables), COLUMNS, progress, decimals=DECIMALS, spreadsheet_safe=spreadsheet_safe, threads=threads
    )


def _with_infinite_scores(table: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    scores = pc.fill_null(pc.cast(table["score"], pa.string()), "-inf")
    return table.set_column(table.schema.get_field_index("score"), "score", scores)
