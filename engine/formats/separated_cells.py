"""Tables of tab-separated texts as columns: what other programs write, read block by block without a line of Python for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.chemistry.noted_peptides import NotedPeptide
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.numbers import COMMA_WARNING, MISSING
from proteoscope.engine.formats.sources import ByteSource, blocks
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.unfolding import CELLS, REFERENCES

__all__ = ["Cells", "read_cells"]

_MAXIMUM_COLUMNS = 2000
_MAXIMUM_LINE_BYTES = 16 << 20
_LARGEST_NUMBER = 1e100
_LEFT_OUT = 0.12
"""Of the columns, as many may be left out of a row at its end: FragPipe's last four are often empty."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|(?i)^[+-]?inf(inity)?$"
_COMMA_NUMBER = r"^[+-]?\d*,\d+([eE][+-]?\d+)?$"


class Cells:
    """The cells of a table, as texts in columns of their names.

    Attributes
    ----------
    path : of the file. line : (n,) int64, the line of each row, from 1. names : of the columns, in their order. is_ended : whether the last
        line has an end, without which the file may be cut off in it.
    broken_reason, broken_value : (n,) object, why the row or a number of it cannot be read, and the number's text; empty if all can.
    place_name : what `line` numbers, ``line`` or ``row``.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        columns: Sequence[pa.StringArray],
        line: NDArray[np.int64],
        *,
        is_ended: bool = True,
        progress: Progress | None = None,
        place_name: str = "line",
    ) -> None:
        self.path, self.line, self.names, self.is_ended = path, line, list(names), is_ended
        self.place_name = place_name
        self.broken_reason, self.broken_value = (np.full(len(line), "", np.object_) for _ in range(2))
        self._progress, self._has_decimal_commas = progress or Progress(), False
        # A column without a name, as the numbers of rows that pandas writes, is nobody's.
        self._columns = {name.strip().lower(): column for name, column in zip(names, columns, strict=True) if name.strip()}

    def __len__(self) -> int:
        return len(self.line)

    @property
    def is_broken(self) -> NDArray[np.bool_]:
        """Rows that cannot be read: with too few or too many cells, or a number that was wanted and is none, (n,)."""
        return np.asarray(self.broken_reason != "", np.bool_)

    def has(self, name: str) -> bool:
        """Whether there is a column of the name, whatever its case."""
        return name.lower() in self._columns

    def text(self, *names: str) -> pa.StringArray:
        """The first column that there is of these names; empty texts where there is none."""
        for name in names:
            if self.has(name):
                return self._columns[name.lower()]
        return pa.array([""], pa.string()).take(pa.array(np.zeros(len(self), np.int64)))

    def required(self, *names: str) -> pa.StringArray:
        """The first column that there is of these names.

        Raises
        ------
        InputError : there is none.
        """
        if not any(map(self.has, names)):
            raise InputError(
                self.path, f"the table has no column {' or '.join(names)}", place="line 1", remedy="Give the table as its program wrote it"
            )
        return self.text(*names)

    def numbers(self, *names: str, skip_texts: bool = False) -> NDArray[np.float64]:
        """The first column that there is of these names as numbers, NaN where a cell is empty; NaN everywhere where there is none.

        Rows whose cell is neither empty nor a number are noted in `is_broken`. `skip_texts`: a column of which more cells are texts than
        numbers is NaN everywhere.

        Raises
        ------
        InputError : the cell of no row is a number.
        """
        name = next((name for name in names if self.has(name)), "")
        return self.numbers_of(self.text(name), name, skip_texts=skip_texts) if name else np.full(len(self), np.nan)

    def numbers_of(self, texts: pa.StringArray, name: str, *, skip_texts: bool = False) -> NDArray[np.float64]:
        """Texts made of the column `name` as numbers; see `numbers`."""
        texts = pa.compute.utf8_trim_whitespace(texts)
        try:
            return _bounded(texts.cast(pa.float64()))
        except pa.ArrowInvalid:
            is_empty = pa.compute.is_in(pa.compute.utf8_lower(texts), value_set=pa.array(MISSING))
            texts = pa.compute.if_else(is_empty, pa.scalar(None, pa.string()), texts)
        wrong = _wrong_numbers(texts)
        if len(wrong) and self._is_comma_column(texts):
            texts = pa.compute.replace_substring(texts, ",", ".")
            wrong = _wrong_numbers(texts)
        if len(wrong):
            if skip_texts and 2 * len(wrong) > len(texts) - texts.null_count:
                return np.full(len(self), np.nan)
            if len(wrong) == len(texts):
                shown = shortened(repr(texts[int(wrong[0])].as_py()), 60)
                raise InputError(
                    self.path,
                    f"{shown} in column {name} is not a number, nor is that of any other row",
                    place=f"{self.place_name} {self.line[wrong[0]]}",
                    remedy="Give the table as its program wrote it",
                )
            self._note(wrong, f"column {name} is not a number", texts)
            is_wrong = np.zeros(len(texts), np.bool_)
            is_wrong[wrong] = True
            texts = pa.compute.if_else(pa.array(is_wrong), pa.scalar(None, pa.string()), texts)
        return _bounded(pa.compute.cast(pa.compute.utf8_ltrim(texts, "+"), pa.float64()))

    def _is_comma_column(self, texts: pa.StringArray) -> bool:
        """Whether numbers have decimal commas: some of a column do, none has a point, and no other column has numbers with points."""

        def are_like(column: pa.StringArray, pattern: str, *, every: bool) -> bool:
            found = pa.compute.match_substring_regex(column, pattern)
            return bool((pa.compute.all if every else pa.compute.any)(found, min_count=0).as_py())

        if not are_like(texts, _COMMA_NUMBER, every=False) or are_like(texts, r"\.", every=False):
            return False
        if not self._has_decimal_commas:
            for column in self._columns.values():
                if are_like(column, r"^[+-]?\d*\.\d+([eE][+-]?\d+)?$", every=False) and are_like(column, f"^$|{_NUMBER}", every=True):
                    return False
            self._has_decimal_commas = True
            self._progress.message(COMMA_WARNING.format(self.path), "warning")
        return True

    def whole(self, *names: str, missing: int) -> NDArray[np.int64]:
        """As `numbers`, as whole numbers; `missing` where a cell is empty. Rows with another number are noted in `is_broken`."""
        found = self.numbers(*names)
        usable = np.isfinite(found) & (np.abs(found) < 2**53) & (found == np.round(found))
        other = np.flatnonzero(np.isfinite(found) & ~usable)
        if len(other):
            name = next(name for name in names if self.has(name))
            self._note(other, f"column {name} is not a whole number", self.text(name))
        return np.where(usable, np.where(usable, found, 0), missing).astype(np.int64)

    def note_lines(self, lines: NDArray[np.int64], reasons: NDArray[np.object_]) -> None:
        """Note why the rows of some lines cannot be read."""
        self.broken_reason[np.searchsorted(self.line, lines)] = reasons

    def _note(self, rows: NDArray[np.int64], reason: str, texts: pa.StringArray) -> None:
        """Note why rows cannot be read, and their texts, those that have no reason yet."""
        rows = rows[~self.is_broken[rows]]
        self.broken_reason[rows] = reason
        self.broken_value[rows] = [shortened(text, 60) for text in texts.take(pa.array(rows)).to_pylist()]

    def lists(self, separator: str, *names: str) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
        """A column of lists, CSR: offsets, numbers of the items, and the items, each once; empty items are left out. `separator` is a
        regular expression."""
        n_most = len(self) + (pa.compute.sum(pa.compute.count_substring_regex(self.text(*names), separator)).as_py() or 0)
        REFERENCES.check(self.path, n_most, self.path.stat().st_size)
        parts = pa.compute.split_pattern_regex(self.text(*names), separator)
        items = pa.compute.utf8_trim_whitespace(parts.flatten())
        owner = np.repeat(np.arange(len(self)), pa.compute.list_value_length(parts).to_numpy(zero_copy_only=False))
        kept = pa.compute.not_equal(items, "").to_numpy(zero_copy_only=False)
        coded = items.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)[kept]
        return offsets_of(np.bincount(owner[kept], minlength=len(self))), codes, tuple(coded.dictionary.to_pylist())

    def peptides(
        self, parse: Callable[[str], NotedPeptide], texts: pa.StringArray
    ) -> tuple[NDArray[np.int64], tuple[NotedPeptide, ...], pa.StringArray]:
        """Peptides from texts, each form read once: numbers of the rows, -1 where a text is none; the peptides; and why a row has none,
        empty where it has one."""
        coded = texts.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        found: dict[NotedPeptide, int] = {}
        number = np.full(len(coded.dictionary) + 1, -1, np.int64)
        reasons = [""] * (len(coded.dictionary) + 1)
        for code, text in enumerate(coded.dictionary.to_pylist()):
            try:
                number[code] = found.setdefault(parse(text), len(found))
            except ValueError as error:
                reasons[code] = f"no peptide can be read from its text: {error}"
        return number[codes], tuple(found), pa.array(reasons, pa.string()).take(pa.array(codes))


def _wrong_numbers(texts: pa.StringArray) -> NDArray[np.int64]:
    """The rows of texts that are no numbers; null ones are."""
    is_number = pa.compute.fill_null(pa.compute.match_substring_regex(texts, _NUMBER), True)
    return np.flatnonzero(~is_number.to_numpy(zero_copy_only=False))


def _bounded(numbers: pa.Array) -> NDArray[np.float64]:
    """Numbers, NaN where one is missing, infinite or so large that nobody can compute with it."""
    found = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(np.abs(found) < _LARGEST_NUMBER, found, np.nan)


def read_cells(
    source: ByteSource,
    progress: Progress,
    *,
    begins: Callable[[str], bool] | None = None,
    strip: str = "",
    joins_last: bool = False,
    columns: Sequence[str] | None = None,
) -> Cells:
    """The cells of a table of tab-separated values with a line of names.

    Parameters
    ----------
    begins : whether a line is that of the names, among the first of the file; lines before it are passed over. The first line when None.
    strip : of the rows only those that begin with this text, and a tab, are read (mzTab).
    joins_last : fields behind the last column belong to it, as proteins of Percolator do.
    columns : the names of those that are kept, in any case, besides the last; all when None.

    Raises
    ------
    InputError : it is no such table: no names, not UTF-8, or cut off in its last row.
    """
    names: list[str] = []
    wanted = None if columns is None else {name.lower() for name in columns}
    kept_columns: list[int] = []
    parts_of: list[list[Any]] = []
    lines: list[NDArray[np.int64]] = []
    uneven: list[tuple[NDArray[np.int64], NDArray[np.object_]]] = []
    n_lines, is_ended = 0, True
    for block in blocks(source, lambda text: text.rfind(b"\n") + 1, most=_MAXIMUM_LINE_BYTES):
        progress.check()
        is_ended = block.text.endswith((b"\n", b"\r")) if block.text else is_ended
        text = _decoded(source.path, block.text, n_lines)
        rows = pa.compute.split_pattern(pa.array([text], pa.large_string()), "\n").flatten().cast(pa.string())
        if rows[-1].as_py() == "":
            rows = rows[:-1]  # behind the last line break, or an empty block
        number = np.arange(n_lines + 1, n_lines + len(rows) + 1)
        n_lines += len(rows)
        progress.advance(block.consumed)
        if not names:
            at = next((i for i, line in enumerate(rows.slice(0, 5000).to_pylist()) if begins is None or begins(line)), None)
            if at is None:
                if block.is_last or n_lines >= 5000:
                    break
                continue
            names = [name.strip().strip('"') for name in rows[at].as_py().split("\t")]
            _check_names(source.path, names, at + 1)
            # The last one tells whether the file is cut off.
            kept_columns = [i for i, name in enumerate(names) if wanted is None or name.lower() in wanted or i == len(names) - 1]
            parts_of = [[] for _ in kept_columns]
            rows, number = rows[at + 1 :], number[at + 1 :]
        is_row = pa.compute.starts_with(rows, f"{strip}\t") if strip else pa.compute.not_equal(pa.compute.utf8_trim_whitespace(rows), "")
        kept = is_row.to_numpy(zero_copy_only=False)
        rows, number = rows.filter(is_row), number[kept]
        if not len(rows):
            continue
        n = len(names)
        parts = pa.compute.split_pattern(rows, "\t", max_splits=n - 1 if joins_last else n)
        lengths = pa.compute.list_value_length(parts).to_numpy(zero_copy_only=False)
        # Empty last cells are left out by some programs, and some add one.
        if (lengths != n).any():
            parts, other_lines, reasons = _evened(source.path, rows, lengths, n, number, is_ended=not block.is_last or is_ended)
            uneven.append((other_lines, reasons))
        cells = parts.flatten()
        source.unfolding.add(CELLS, len(rows) * len(kept_columns), place=f"line {n_lines}")
        for i, into in zip(kept_columns, parts_of, strict=True):
            into.append(_unquoted(pa.compute.utf8_trim(cells.take(pa.array(np.arange(i, len(cells), n))), " ")))
        lines.append(number)
    if not names:
        raise InputError(source.path, "has no line with the names of its columns", remedy="Give the table as its program wrote it")
    whole = [pa.concat_arrays(parts) if parts else pa.array([], pa.string()) for parts in parts_of]
    kept_names = [names[i] for i in kept_columns]
    found = Cells(
        source.path, kept_names, whole, np.concatenate(lines) if lines else np.empty(0, np.int64), is_ended=is_ended, progress=progress
    )
    for other_lines, reasons in uneven:
        found.note_lines(other_lines, reasons)
    if kept_columns and kept_columns[-1] == len(names) - 1:
        _tell_cut_off(found, whole[-1], progress)
    return found


def _unquoted(cells: pa.Array) -> pa.Array:
    """Return cells without the quotes around them, those within undoubled (RFC 4180); a quote at one end belongs to the text."""
    if not pa.compute.any(pa.compute.match_substring(cells, '"')).as_py():
        return cells
    is_quoted = pa.compute.match_substring_regex(cells, '(?s)^".*"$')
    texts = pa.compute.replace_substring(pa.compute.replace_substring_regex(cells, '(?s)^"(.*)"$', r"\1"), '""', '"')
    return pa.compute.if_else(is_quoted, pa.compute.utf8_trim(texts, " "), cells)


def _tell_cut_off(cells: Cells, last: pa.StringArray, progress: Progress) -> None:
    """Warn where the last line has no end, and nothing in the last column, as no other row: many programs write none behind the last row,
    and some leave out empty cells, but then not of one row alone."""
    if cells.is_ended or not len(cells):
        return
    is_empty = pa.compute.equal(last, "").to_numpy(zero_copy_only=False)
    if is_empty[-1] and not is_empty[:-1].any():
        reason = f"has nothing in column {shortened(cells.names[-1])}, as no other, and no end: the file may be cut off"
        progress.message(f"{cells.path}: line {cells.line[-1]}, the last, {reason}", "warning")


def _decoded(path: Path, text: bytes, n_lines: int) -> str:
    try:
        found = text.removeprefix(b"\xef\xbb\xbf").decode() if n_lines == 0 else text.decode()
    except UnicodeDecodeError as error:
        line = n_lines + text.count(b"\n", 0, error.start) + 1
        raise InputError(path, "the text is not UTF-8", place=f"line {line}", remedy="Save it as UTF-8") from None
    return found.replace("\r\n", "\n").replace("\r", "\n") if "\r" in found else found


def _check_names(path: Path, names: list[str], line: int) -> None:
    if len(names) > _MAXIMUM_COLUMNS:
        raise InputError(path, f"the table has more than {_MAXIMUM_COLUMNS:,} columns", place=f"line {line}")
    lowered = [name.lower() for name in names]
    twice = next((name for name in lowered if name and lowered.count(name) > 1), None)
    if twice is not None:
        raise InputError(path, f"the table has two columns {shortened(twice)}", place=f"line {line}", remedy="Rename one of them")


def _evened(
    path: Path, rows: pa.StringArray, lengths: NDArray[np.int64], n: int, number: NDArray[np.int64], *, is_ended: bool
) -> tuple[Any, NDArray[np.int64], NDArray[np.object_]]:
    """The cells of rows, with empty ones where some end before the last column; lines of rows with too few or too many, and the reasons.

    `is_ended`: whether the last row has an end; of one that has none it is likelier that the file was cut off in it.

    Raises
    ------
    InputError : the file is cut off in its last row.
    """
    split = [line.split("\t") for line in rows.filter(pa.array(lengths != n)).to_pylist()]
    reasons = {k: f"has {k} cells where there are {n} columns" for k in set(map(len, split))}
    least = n - max(1, int(n * _LEFT_OUT))
    lines = number[lengths != n]
    if not is_ended and len(lines) and lines[-1] == number[-1] and len(split[-1]) < n - 1:
        raise InputError(path, reasons[len(split[-1])], place=f"line {lines[-1]}", remedy="Is the file cut off? Copy it again")
    is_uneven = [len(cells) < least or any(cells[n:]) for cells in split]
    found = np.array([reasons[len(cells)] for cells in split], np.object_)[is_uneven]
    evened = pa.array([line.split("\t")[:n] + [""] * (n - len(line.split("\t"))) for line in rows.to_pylist()], pa.list_(pa.string()))
    return pa.compute.list_slice(evened, 0, n), lines[is_uneven], found
