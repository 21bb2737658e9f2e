"""Stars and comments on rows of tables, also in untrusted projects."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.project import Project, RowMark
from proteoscope.engine.project.row_marks import MAXIMUM_COMMENT, one_line


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.create_or_open(tmp_path / "p")
    with project.run("identify", {}) as run:
        run.write_table("psms", pa.table({"score": [3.0, 2.0, 1.0]}))
    return project


def test_row_marks_are_stored_and_removed(project: Project) -> None:
    run = project.latest() or ""
    assert project.row_marks(run, "psms") == {}
    project.set_row_mark(run, "psms", 2, RowMark(True, "  look\tagain \n"))
    project.set_row_mark(run, "psms", 0, RowMark(comment="b ions only"))
    expected = {0: RowMark(False, "b ions only"), 2: RowMark(True, "look again")}
    assert Project.open(project.folder).row_marks(run, "psms") == expected
    project.set_row_mark(run, "psms", 2, RowMark())
    assert project.row_marks(run, "psms") == {0: RowMark(False, "b ions only")}
    assert project.row_marks(run, "peptides") == project.row_marks("identify-0099", "psms") == {}


def test_row_mark_rejects_invalid_row_and_long_comment(project: Project) -> None:
    run = project.latest() or ""
    for row, table in ((3, "psms"), (-1, "psms"), (0, "peptides")):
        with pytest.raises(InputError, match="holds no row"):
            project.set_row_mark(run, table, row, RowMark(True))
    with pytest.raises(ParameterError, match="at most 1,000 characters"):
        project.set_row_mark(run, "psms", 0, RowMark(comment="x" * (MAXIMUM_COMMENT + 1)))
    assert project.row_marks(run, "psms") == {}


def test_untrusted_row_marks_are_limited_and_shown_as_text(project: Project) -> None:
    run = project.latest() or ""
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection:
        rows = [(0, 7, "<b>\x1b[31m\u202e" + "y" * 10**6), (1, "x", b"\xff\x00"), (99, 1, "no such row"), (2, 1, "")]
        connection.executemany("INSERT INTO row_marks VALUES (?, 'psms', ?, ?, ?)", [(run, *row) for row in rows])
        connection.execute("INSERT INTO row_marks VALUES (?, 'psms', 'word', 1, 'no number')", (run,))
        connection.commit()
    marks = Project.open(project.folder).row_marks(run, "psms")
    assert marks.keys() == {0, 2}
    assert marks[2] == RowMark(True)
    assert not marks[0].is_starred and marks[0].comment.startswith("<b> [31m y") and len(marks[0].comment) <= MAXIMUM_COMMENT


def test_row_marks_are_removed_with_the_run(project: Project) -> None:
    run = project.latest() or ""
    project.set_row_mark(run, "psms", 1, RowMark(True))
    project.delete_run(run)
    project.remove_deleted([run])
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM row_marks").fetchone() == (0,)


@given(st.text(max_size=40))
def test_row_comment_is_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert line == one_line(line) and line.isprintable() and line.encode() is not None
