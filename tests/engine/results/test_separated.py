"""Tables of separated values, read back by Python's own reader."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest

from proteoscope.engine.errors import StorageError
from proteoscope.engine.jobs.progress import Cancelled, Progress, RecordingProgress
from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.separated import (
    DIGITS,
    PRINTED,
    ROUNDED,
    TRIMMED,
    UNQUOTED,
    Dialect,
    separated_lines,
    write_separated,
)

TABLE = pa.table(
    {
        "name": ["plain", 'has "quotes"', "tab\tand\nline", "", None, "=1+1", "ünï"],
        "number": [0.123456789, 1.0, float("nan"), None, 1e-9, -2.5, 1e6],
        "count": pa.array([1, None, 3, 4, 5, 6, 7], pa.int32()),
        "is": [True, False, None, True, False, True, False],
    }
)

NAME, NUMBER, COUNT, IS = Column("name"), Column("number", saved=".4f"), Column("count"), Column("is")


def test_tsv_text_round_trips(tmp_path: Path):
    write_separated(tmp_path / "t.tsv", TABLE, (NAME, NUMBER, COUNT, IS), Progress(), ROUNDED)
    rows = list(csv.reader((tmp_path / "t.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t"))
    assert rows[0] == ["name", "number", "count", "is"]
    assert [row[0] for row in rows[1:]] == ["plain", 'has "quotes"', "tab and line", "", "", "=1+1", "ünï"]
    assert [row[1] and float(row[1]) for row in rows[1:]] == [0.1235, 1.0, "", "", 0.0, -2.5, 1e6]
    assert [row[2] for row in rows[1:]] == ["1", "", "3", "4", "5", "6", "7"]
    assert [row[3] for row in rows[1:]] == ["true", "false", "", "true", "false", "true", "false"]


def test_spreadsheet_safe_formulas_get_an_apostrophe(tmp_path: Path):
    write_separated(tmp_path / "t.tsv", TABLE, (NAME,), Progress(), ROUNDED, spreadsheet_safe=True)
    assert "\n'=1+1\n" in (tmp_path / "t.tsv").read_text(encoding="utf-8")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "\ufeff=", "\u200b@", "\u00a0+", "\u202e=", "\x1b=", "\x00-", "\uff1d"])
@pytest.mark.parametrize("dialect", [DIGITS, ROUNDED, PRINTED, TRIMMED])
def test_formulas_after_invisible_characters_are_escaped(start: str, dialect: Dialect) -> None:
    line = separated_lines(pa.table({"name": [f"{start}cmd|' /C calc'!A0"]}), [NAME], dialect, spreadsheet_safe=True)
    assert line.decode().startswith("'")


@pytest.mark.parametrize("dialect", [DIGITS, ROUNDED, PRINTED, TRIMMED, UNQUOTED])
def test_control_characters_in_tsv_names_become_spaces(dialect: Dialect) -> None:
    controls = "".join(map(chr, (*range(32), *range(127, 160))))
    line = separated_lines(pa.table({"name": [f"a{controls}b"]}), [NAME], dialect).decode()
    assert line.endswith("b\n") and set(line[1:-2]) == {" "}


def test_tsv_writer_concatenates_batches_under_one_header(tmp_path: Path):
    parts = [TABLE.slice(0, 2), TABLE.slice(0, 0), pa.concat_tables([TABLE.slice(2, 1), TABLE.slice(3)])]
    write_separated(tmp_path / "a.tsv", parts, (NAME, COUNT), Progress(), ROUNDED)
    write_separated(tmp_path / "b.tsv", TABLE, (NAME, COUNT), Progress(), ROUNDED)
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()
    write_separated(tmp_path / "c.tsv", TABLE.slice(0, 0), (NAME, COUNT), Progress(), ROUNDED)
    assert (tmp_path / "c.tsv").read_text() == "name\tcount\n"


def test_tsv_writer_leaves_no_file_after_cancel(tmp_path: Path):
    many = pa.table({"i": pa.array(range(200_000))})
    write_separated(tmp_path / "m.tsv", many, (Column("i"),), Progress(), ROUNDED)
    assert (tmp_path / "m.tsv").read_text().split("\n")[1:-1] == [str(i) for i in range(200_000)]
    write_separated(tmp_path / "threads.tsv", many, (Column("i"),), Progress(), ROUNDED, threads=5)
    assert (tmp_path / "threads.tsv").read_bytes() == (tmp_path / "m.tsv").read_bytes()
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        write_separated(tmp_path / "n.tsv", many, (Column("i"),), progress, ROUNDED)
    assert not (tmp_path / "n.tsv").exists()


def test_tsv_writer_reports_disk_error(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError):
        write_separated(tmp_path / "file" / "t.tsv", TABLE, (NAME,), Progress(), ROUNDED)


def test_semicolons_in_tsv_lists_are_escaped_and_counted(tmp_path: Path) -> None:
    table = pa.table({"proteins": pa.array([["a;b"], ["a", "b"], ["c"], None], pa.list_(pa.string()))})
    progress = RecordingProgress(Progress())
    write_separated(tmp_path / "a.tsv", table, [Column("proteins", kind="texts")], progress, DIGITS)
    assert (tmp_path / "a.tsv").read_text() == "proteins\na%3Bb\na;b\nc\n\n"
    assert progress.messages == ("a.tsv: 1 text in a list holds semicolons, which separate texts there; they are written as %3B",)


def test_unicode_line_separators_in_tsv_become_spaces() -> None:
    line = separated_lines(pa.table({"name": ["a\u2028b\u2029c"]}), [NAME], DIGITS).decode()
    assert line == "a b c\n"
