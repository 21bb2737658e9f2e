"""Write alignments in the formats that other programs read: of a search, and of a finished run of a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.arrays import Texts, offsets_of
from engine.entry import ExportRequest
from engine.errors import InputError, ParameterError, StorageError
from engine.jobs.progress import Progress
from engine.project import Project
from engine.project.outputs import check_outputs
from engine.read_alignment.records import Aligned, write_paf, write_sam
from engine.read_alignment.results import alignment_schema, pattern_schema, text_schema, write_alignments

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_format", "export_alignments", "write_as"]

_FORMATS = ("tsv", "sam", "sorted-sam", "paf")
_ROWS = 1 << 16  # of a table in memory


def check_format(name: str, *, is_sorted: bool = False) -> None:
    """Refuse what is no format.

    Raises
    ------
    ParameterError : there is none of this name, or it cannot be sorted.
    """
    if name not in _FORMATS:
        raise ParameterError(f"there is no format '{name:.40}'; expected {', '.join(_FORMATS)}")
    if is_sorted and name not in ("sam", "sorted-sam"):
        raise ParameterError(f"--sorted is of SAM, not of {name}; give --out a name that ends with .sam")


def write_as(
    out: Path,
    name: str,
    tables: Iterable[pa.Table],
    aligned: Aligned,
    progress: Progress,
    *,
    spreadsheet_safe: bool = False,
    threads: int = 1,
) -> None:
    """Write rows of the table ``alignments``, pattern by pattern, in the format of this name.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    if name == "tsv":
        write_alignments(out, tables, progress, spreadsheet_safe=spreadsheet_safe, threads=threads)
    elif name == "paf":
        write_paf(out, tables, aligned, progress, threads=threads)
    else:
        write_sam(out, tables, aligned, progress, is_sorted=name == "sorted-sam", threads=threads)


def export_alignments(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the alignments of a run as the run itself would have; the path of what was written.

    Raises
    ------
    ParameterError : there is no such format, or something that is needed would be written over.
    InputError : the project has no such finished run. StorageError : the disk refused, or a table is damaged.
    Cancelled : the user asked to stop.
    """
    import pyarrow as pa

    check_format(request.format)
    check_outputs([request.target], [one.path for one in project.inputs(request.run_id)], project.folder)
    paths = {name: project.table(name, request.run_id, verify=False) for name in ("alignments", "patterns", "texts")}
    progress.stage("Exporting alignments", sum(one.rows or 0 for one in project.results(request.run_id) if one.name == "alignments"))
    path = paths["patterns"]
    try:
        aligned = _aligned(path, paths["texts"]) if request.format != "tsv" else _NOTHING
        path = paths["alignments"]
        tables = _sound(_tables(path, alignment_schema().names), len(aligned.offsets) - 1, len(aligned.text_names), path, request.format)
        write_as(request.target, request.format, tables, aligned, progress, spreadsheet_safe=request.spreadsheet_safe)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, " ".join(str(error).split())) from error
    return [request.target]


_NOTHING = Aligned(np.empty(0, np.uint8), None, np.zeros(1, np.int64), Texts.of([]), np.empty(0, np.int64))


def _damaged(path: Path, reason: str) -> StorageError:
    return StorageError(f"{path}: the table is damaged ({reason}). Do the search again.")


def _tables(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        if missing := [name for name in columns if name not in file.schema_arrow.names]:
            raise InputError(path, f"has no column {missing[0]}", remedy="Do the search again")
        for batch in file.iter_batches(_ROWS, columns=list(columns)):
            yield pa.Table.from_batches([batch])


def _aligned(patterns: Path, texts: Path) -> Aligned:
    """The patterns and texts of a run."""
    letters, qualities = _column(patterns, "letters", pattern_schema().names), _column(patterns, "qualities", pattern_schema().names)
    lengths = [np.asarray(table["length"].to_numpy(), np.int64) for table in _tables(texts, text_schema().names)]
    has_qualities = len(qualities.letters) > 0
    if has_qualities and not np.array_equal(letters.offsets, qualities.offsets):
        raise _damaged(patterns, "letters and qualities differ in number")
    names = _column(texts, "text", text_schema().names)
    return Aligned(letters.letters, qualities.letters if has_qualities else None, letters.offsets, names, np.concatenate(lengths))


def _column(path: Path, name: str, columns: Sequence[str]) -> Texts:
    """A column of texts."""
    parts = [Texts.of_arrow(table[name].combine_chunks()) for table in _tables(path, columns)]
    lengths: list[NDArray[np.int64]] = [np.diff(part.offsets) for part in parts]
    return Texts(np.concatenate([part.own for part in parts]), offsets_of(np.concatenate(lengths)))


def _sound(tables: Iterable[pa.Table], n_patterns: int, n_texts: int, path: Path, name: str) -> Iterator[pa.Table]:
    """The tables, whose rows belong to patterns and texts that there are, pattern by pattern."""
    before = 0
    for table in tables:
        if name != "tsv" and len(table):
            rows, texts = table["pattern_row"].to_numpy(), table["text_row"].drop_null().to_numpy()
            is_sorted = rows[0] >= before and (np.diff(rows) >= 0).all()
            before = rows[-1]
            if not is_sorted or before >= n_patterns or (len(texts) and (texts.min() < 0 or texts.max() >= n_texts)):
                raise _damaged(path, "rows belong to no pattern or text")
        yield table
