"""Reader of tab-separated tables as columns, block by block, without a Python loop over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import row_mask, segment_offsets
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
_MAXIMUM_MISSING = 0.12
"""Maximum fraction of columns that may be missing at the end of a row; FragPipe often omits its last four columns."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|(?i)^[+-]?inf(inity)?$"
_COMMA_NUMBER = r"^[+-]?\d*,\d+([eE][+-]?\d+)?$"


class Cells:
    """Cells of a table with n rows, as columns of text.

    Parameters
    ----------
    path : Path
        File.
    names : sequence of str
        Names of the columns; columns without a name are ignored.
    columns : sequence of pyarrow.StringArray
        Columns, each of length n.
    line : ndarray of int64, shape (n,)
        Line of each row, from 1.
    is_ended : bool
        True if the last line has a line end.
    progress : Progress, optional
        Receives a message if numbers have decimal commas.
    place_name : str
        Unit of `line`: ``line`` or ``row``.

    Attributes
    ----------
    path : Path
        File.
    line : ndarray of int64, shape (n,)
        Line of each row, from 1.
    names : list of str
        Names of the columns, in order.
    is_ended : bool
        False if the last line has no line end, so that it may be truncated.
    broken_reason, broken_value : ndarray of object, shape (n,)
        Reason why a row is invalid, and text of the invalid number; '' for valid rows.
    place_name : str
        Unit of `line`: ``line`` or ``row``.
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
        # Columns without a name, such as the row numbers of pandas, are ignored.
        self._columns = {name.strip().lower(): column for name, column in zip(names, columns, strict=True) if name.strip()}

    def __len__(self) -> int:
        return len(self.line)

    @property
    def is_broken(self) -> NDArray[np.bool_]:
        """True for rows with too few or too many cells, or with a text in place of a number, (n,)."""
        return np.asarray(self.broken_reason != "", np.bool_)

    def has(self, name: str) -> bool:
        """Return True if the table has a column called `name`, ignoring case."""
        return name.lower() in self._columns

    def text(self, *names: str) -> pa.StringArray:
        """Return the column with the first of the given names that the table has; empty texts if it has none of them."""
        for name in names:
            if self.has(name):
                return self._columns[name.lower()]
        return pa.array([""], pa.string()).take(pa.array(np.zeros(len(self), np.int64)))

    def required(self, *names: str) -> pa.StringArray:
        """Return the first existing column of the given names.

        Raises
        ------
        InputError
            If none of the columns exists.
        """
        if not any(map(self.has, names)):
            raise InputError(
                self.path, f"the table has no column {' or '.join(names)}", place="line 1", remedy="Give the table as its program wrote it"
            )
        return self.text(*names)

    def numbers(self, *names: str, skip_texts: bool = False) -> NDArray[np.float64]:
        """Return the first existing column of the given names as numbers.

        Rows with texts that are not numbers are marked in `is_broken`.

        Parameters
        ----------
        names : str
            Names of the column in order of preference.
        skip_texts : bool
            True to return only NaN if more than half of the cells that are not empty are not numbers.

        Returns
        -------
        ndarray of float64, shape (n,)
            Numbers; NaN for empty cells, and for all rows if there is no such column.

        Raises
        ------
        InputError
            If no cell of the column is a number.
        """
        name = next((name for name in names if self.has(name)), "")
        return self.parse_numbers(self.text(name), name, skip_texts=skip_texts) if name else np.full(len(self), np.nan)

    def parse_numbers(self, texts: pa.StringArray, name: str, *, skip_texts: bool = False) -> NDArray[np.float64]:
        """Parse texts that are derived from a column as numbers (see `numbers`).

        Parameters
        ----------
        texts : StringArray
            Texts, one per row.
        name : str
            Name of the column, for messages.
        skip_texts : bool
            True to return only NaN if more than half of the texts that are not empty are not numbers.

        Returns
        -------
        ndarray of float64
            Numbers; NaN for missing values and texts that are not numbers.

        Raises
        ------
        InputError
            If none of the texts is a number.
        """
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
                    f"{shown} in column '{name}' is not a number, and no other row has a number there",
                    place=f"{self.place_name} {self.line[wrong[0]]}",
                    remedy="Give the table as its program wrote it",
                )
            self._note(wrong, f"column '{name}' is not a number", texts)
            is_wrong = row_mask(len(texts), wrong)
            texts = pa.compute.if_else(pa.array(is_wrong), pa.scalar(None, pa.string()), texts)
        return _bounded(pa.compute.cast(pa.compute.utf8_ltrim(texts, "+"), pa.float64()))

    def _is_comma_column(self, texts: pa.StringArray) -> bool:
        """Return True if the numbers of a column have decimal commas.

        A column has decimal commas if it contains commas and no points, and if no other column has numbers with points.
        """

        def are_like(column: pa.StringArray, pattern: str, *, every: bool) -> bool:
            matches = pa.compute.match_substring_regex(column, pattern)
            return bool((pa.compute.all if every else pa.compute.any)(matches, min_count=0).as_py())

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
        """Return the first existing column of the given names as integers, `missing` for empty cells (see `numbers`).

        Rows with other numbers are marked in `is_broken`.
        """
        numbers = self.numbers(*names)
        usable = np.isfinite(numbers) & (np.abs(numbers) < 2**53) & (numbers == np.round(numbers))
        other = np.flatnonzero(np.isfinite(numbers) & ~usable)
        if len(other):
            name = next(name for name in names if self.has(name))
            self._note(other, f"column '{name}' is not a whole number", self.text(name))
        return np.where(usable, np.where(usable, numbers, 0), missing).astype(np.int64)

    def note_lines(self, lines: NDArray[np.int64], reasons: NDArray[np.object_]) -> None:
        """Record the reasons why rows are invalid.

        Parameters
        ----------
        lines : ndarray of int64, shape (k,)
            Lines of the rows.
        reasons : ndarray of object, shape (k,)
            Reasons as texts.
        """
        self.broken_reason[np.searchsorted(self.line, lines)] = reasons

    def _note(self, rows: NDArray[np.int64], reason: str, texts: pa.StringArray) -> None:
        """Record a reason, and the invalid text, for those of the `rows` that have no reason yet."""
        rows = rows[~self.is_broken[rows]]
        self.broken_reason[rows] = reason
        self.broken_value[rows] = [shortened(text, 60) for text in texts.take(pa.array(rows)).to_pylist()]

    def lists(self, separator: str, *names: str) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
        """Split a column whose cells are lists into items.

        Parameters
        ----------
        separator : str
            Regular expression that separates the items of a cell.
        names : str
            Names of the column in order of preference.

        Returns
        -------
        offsets : ndarray of int64, shape (n + 1,)
            Items of row i are ``codes[offsets[i]:offsets[i + 1]]``.
        codes : ndarray of int64, shape (items,)
            Indices of the items in `items`; empty items are left out.
        items : tuple of str
            Distinct items.
        """
        maximum = len(self) + (pa.compute.sum(pa.compute.count_substring_regex(self.text(*names), separator)).as_py() or 0)
        REFERENCES.check(self.path, maximum, self.path.stat().st_size)
        parts = pa.compute.split_pattern_regex(self.text(*names), separator)
        items = pa.compute.utf8_trim_whitespace(parts.flatten())
        owner = np.repeat(np.arange(len(self)), pa.compute.list_value_length(parts).to_numpy(zero_copy_only=False))
        is_filled = pa.compute.not_equal(items, "").to_numpy(zero_copy_only=False)
        coded = items.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)[is_filled]
        return segment_offsets(np.bincount(owner[is_filled], minlength=len(self))), codes, tuple(coded.dictionary.to_pylist())

    def peptides(
        self, parse: Callable[[str], NotedPeptide], texts: pa.StringArray
    ) -> tuple[NDArray[np.int64], tuple[NotedPeptide, ...], pa.StringArray]:
        """Parse peptides, each distinct text once.

        Parameters
        ----------
        parse : callable
            Function that parses a text, and raises `ValueError` if it is not a peptide.
        texts : pyarrow.StringArray, length n
            Texts of the peptides.

        Returns
        -------
        numbers : ndarray of int64, shape (n,)
            Index of the peptide of each text, -1 if the text is not a peptide.
        peptides : tuple of NotedPeptide
            Distinct peptides.
        reasons : pyarrow.StringArray, length n
            Reason why each text is not a peptide; '' for peptides.
        """
        coded = texts.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        peptides: dict[NotedPeptide, int] = {}
        number = np.full(len(coded.dictionary) + 1, -1, np.int64)
        reasons = [""] * (len(coded.dictionary) + 1)
        for code, text in enumerate(coded.dictionary.to_pylist()):
            try:
                number[code] = peptides.setdefault(parse(text), len(peptides))
            except ValueError as error:
                reasons[code] = f"no peptide can be read from its text: {error}"
        return number[codes], tuple(peptides), pa.array(reasons, pa.string()).take(pa.array(codes))


def _wrong_numbers(texts: pa.StringArray) -> NDArray[np.int64]:
    """Return the indices of texts that are not numbers; null is treated as a number."""
    is_number = pa.compute.fill_null(pa.compute.match_substring_regex(texts, _NUMBER), True)
    return np.flatnonzero(~is_number.to_numpy(zero_copy_only=False))


def _bounded(numbers: pa.Array) -> NDArray[np.float64]:
    """Return numbers as an array, with NaN in place of missing, infinite and extremely large numbers."""
    values = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(np.abs(values) < _LARGEST_NUMBER, values, np.nan)


def read_cells(
    source: ByteSource,
    progress: Progress,
    *,
    begins: Callable[[str], bool] | None = None,
    strip: str = "",
    joins_last: bool = False,
    columns: Sequence[str] | None = None,
) -> Cells:
    """Read a table of tab-separated values with a header line.

    Parameters
    ----------
    source : ByteSource
        Open file.
    progress : Progress
        Progress, which receives the number of bytes read and is checked for cancellation.
    begins : callable, optional
        Function that returns True for the header line; lines before it are skipped. By default, the first line is the header.
    strip : str
        Text with which rows must begin, followed by a tab; other lines are skipped (mzTab).
    joins_last : bool
        True if additional cells of a row belong to the last column, such as proteins in Percolator's tables.
    columns : sequence of str, optional
        Names of the columns to read, in any case; the last column is always read. By default, all columns.

    Returns
    -------
    Cells
        Rows and selected columns of the table.

    Raises
    ------
    InputError
        If the file has no header, is not UTF-8, or is truncated in its last row.
    """
    names: list[str] = []
    wanted = None if columns is None else {name.lower() for name in columns}
    selected: list[int] = []
    column_parts: list[list[Any]] = []
    lines: list[NDArray[np.int64]] = []
    uneven: list[tuple[NDArray[np.int64], NDArray[np.object_]]] = []
    n_lines, is_ended = 0, True
    for block in blocks(source, lambda text: text.rfind(b"\n") + 1, maximum_bytes=_MAXIMUM_LINE_BYTES):
        progress.check()
        is_ended = block.text.endswith((b"\n", b"\r")) if block.text else is_ended
        text = _decoded(source.path, block.text, n_lines)
        rows = pa.compute.split_pattern(pa.array([text], pa.large_string()), "\n").flatten().cast(pa.string())
        if rows[-1].as_py() == "":
            rows = rows[:-1]  # the empty text after the last line end, or an empty block
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
            # The last column shows whether the file is truncated.
            selected = [i for i, name in enumerate(names) if wanted is None or name.lower() in wanted or i == len(names) - 1]
            column_parts = [[] for _ in selected]
            rows, number = rows[at + 1 :], number[at + 1 :]
        is_row = pa.compute.starts_with(rows, f"{strip}\t") if strip else pa.compute.not_equal(pa.compute.utf8_trim_whitespace(rows), "")
        rows, number = rows.filter(is_row), number[is_row.to_numpy(zero_copy_only=False)]
        if not len(rows):
            continue
        n = len(names)
        parts = pa.compute.split_pattern(rows, "\t", max_splits=n - 1 if joins_last else n)
        lengths = pa.compute.list_value_length(parts).to_numpy(zero_copy_only=False)
        # Some programs omit empty cells at the end of a row; others add one.
        if (lengths != n).any():
            parts, other_lines, reasons = _evened(source.path, rows, lengths, n, number, is_ended=not block.is_last or is_ended)
            uneven.append((other_lines, reasons))
        cells = parts.flatten()
        source.unfolding.add(CELLS, len(rows) * len(selected), place=f"line {n_lines}")
        for i, parts_of_column in zip(selected, column_parts, strict=True):
            parts_of_column.append(_unquoted(pa.compute.utf8_trim(cells.take(pa.array(np.arange(i, len(cells), n))), " ")))
        lines.append(number)
    if not names:
        raise InputError(source.path, "has no line with the names of its columns", remedy="Give the table as its program wrote it")
    whole = [pa.concat_arrays(parts) if parts else pa.array([], pa.string()) for parts in column_parts]
    selected_names = [names[i] for i in selected]
    table = Cells(
        source.path, selected_names, whole, np.concatenate(lines) if lines else np.empty(0, np.int64), is_ended=is_ended, progress=progress
    )
    for other_lines, reasons in uneven:
        table.note_lines(other_lines, reasons)
    if selected and selected[-1] == len(names) - 1:
        _warn_cut_off(table, whole[-1], progress)
    return table


def _unquoted(cells: pa.Array) -> pa.Array:
    """Return cells in which quotes are resolved as in RFC 4180: enclosing quotes are removed, and two quotes within them become one.

    Cells with a quote at only one end are unchanged.
    """
    if not pa.compute.any(pa.compute.match_substring(cells, '"')).as_py():
        return cells
    is_quoted = pa.compute.match_substring_regex(cells, '(?s)^".*"$')
    texts = pa.compute.replace_substring(pa.compute.replace_substring_regex(cells, '(?s)^"(.*)"$', r"\1"), '""', '"')
    return pa.compute.if_else(is_quoted, pa.compute.utf8_trim(texts, " "), cells)


def _warn_cut_off(cells: Cells, last: pa.StringArray, progress: Progress) -> None:
    """Warn that a file may be truncated, if its last line has no line end and is the only line with an empty last column.

    Many programs write no line end after the last row, and some omit empty last cells, but then in more than one row.
    """
    if cells.is_ended or not len(cells):
        return
    is_empty = pa.compute.equal(last, "").to_numpy(zero_copy_only=False)
    if is_empty[-1] and not is_empty[:-1].any():
        reason = f"is the only one without a value in column '{shortened(cells.names[-1])}', and has no line end: the file may be cut off"
        progress.message(f"{cells.path}: the last line, {cells.line[-1]}, {reason}", "warning")


def _decoded(path: Path, text: bytes, n_lines: int) -> str:
    try:
        decoded = text.removeprefix(b"\xef\xbb\xbf").decode() if n_lines == 0 else text.decode()
    except UnicodeDecodeError as error:
        line = n_lines + text.count(b"\n", 0, error.start) + 1
        raise InputError(path, "the text is not UTF-8", place=f"line {line}", remedy="Save it as UTF-8") from None
    return decoded.replace("\r\n", "\n").replace("\r", "\n") if "\r" in decoded else decoded


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
    """Append empty cells to short rows; return all cells, the numbers of the lines with too few or too many cells, and the reasons.

    Parameters
    ----------
    path : Path
        File, for messages.
    rows : pyarrow.StringArray
        Rows of the table.
    lengths : ndarray of int
        Number of cells of each row.
    n : int
        Number of columns.
    number : ndarray of int64
        Line of each row.
    is_ended : bool
        False if the last row has no line end, and was therefore probably truncated.

    Raises
    ------
    InputError
        If the file is truncated in its last row.
    """
    split = [line.split("\t") for line in rows.filter(pa.array(lengths != n)).to_pylist()]
    reasons = {k: f"has {k} cells where there are {n} columns" for k in set(map(len, split))}
    minimum = n - max(1, int(n * _MAXIMUM_MISSING))
    lines = number[lengths != n]
    if not is_ended and len(lines) and lines[-1] == number[-1] and len(split[-1]) < n - 1:
        raise InputError(path, reasons[len(split[-1])], place=f"line {lines[-1]}", remedy="Copy it again: the file may be cut off")
    is_uneven = [len(cells) < minimum or any(cells[n:]) for cells in split]
    uneven_reasons = np.array([reasons[len(cells)] for cells in split], np.object_)[is_uneven]
    evened = pa.array([line.split("\t")[:n] + [""] * (n - len(line.split("\t"))) for line in rows.to_pylist()], pa.list_(pa.string()))
    return pa.compute.list_slice(evened, 0, n), lines[is_uneven], uneven_reasons
