"""Stars and comments in the tables of a run, shown and saved."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.identification import IDENTIFICATION
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project, RowMark
from proteoscope.engine.views.conditions import compares
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.identification import accepted_counts
from tests.engine.views.result_projects import project_with_results, rows_of


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_results(tmp_path_factory.mktemp("marked") / "p")[0]


def test_row_marks_are_columns_that_can_be_sorted_and_filtered(project: Project) -> None:
    run_id = project.latest() or ""
    n = len(rows_of(project, "psms"))
    wanted = {3: RowMark(True, "nice y series"), 7: RowMark(comment="doubtful"), n - 1: RowMark(True)}
    for row, mark in wanted.items():
        project.set_row_mark(run_id, "psms", row, mark)
    with open_run(project) as run:
        source = run.tables.source("psms")
        assert source.total == n
        assert source.rows([compares("starred", "=", "★")]).tolist() == [3, n - 1]
        assert source.rows(order=[("starred", True)])[:2].tolist() == [3, n - 1]
        values = source.values(np.array([7, 3, 0]), ["starred", "comment", "peptide"]).to_pylist()
        assert [(row["starred"], row["comment"]) for row in values] == [("", "doubtful"), ("★", "nice y series"), ("", "")]
        assert [row["peptide"] for row in values] == [rows_of(project, "psms")[row]["peptide"] for row in (7, 3, 0)]
        run.mark("psms", 3, RowMark())
        run.mark("psms", 0, RowMark(True, "new"))
        assert source.rows([compares("starred", "=", "★")]).tolist() == [0, n - 1], "open tables show new marks"
        assert accepted_counts(source, 0.01).psms.number > 0
        assert "starred" not in run.tables.source("peptides").types
        with pytest.raises(InputError, match="holds no row"):
            run.mark("psms", n, RowMark(True))
    assert project.row_marks(run_id, "psms") == {0: RowMark(True, "new"), 7: wanted[7], n - 1: wanted[n - 1]}


def saved(project: Project, out: Path, *, is_safe: bool = False) -> list[dict[str, str]]:
    IDENTIFICATION.export(project, ExportRequest(project.latest() or "", "tsv", out, is_safe), Progress())
    with (out / "psms.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_row_marks_are_the_last_columns_of_the_saved_table(tmp_path: Path) -> None:
    project, _ = project_with_results(tmp_path / "p")
    bare = saved(project, tmp_path / "bare")
    assert "starred" not in bare[0], "without marks the table is unchanged"
    project.set_row_mark(project.latest() or "", "psms", 5, RowMark(True, '=HYPERLINK("x")'))
    marked = saved(project, tmp_path / "marked")
    assert list(marked[0]) == [*bare[0], "starred", "comment"]
    assert [(row["starred"], row["comment"]) for row in marked] == [
        ("★", '=HYPERLINK("x")') if at == 5 else ("", "") for at in range(len(bare))
    ]
    assert [{name: row[name] for name in bare[0]} for row in marked] == bare
    safe = saved(project, tmp_path / "safe", is_safe=True)
    assert safe[5]["comment"] == '\'=HYPERLINK("x")'
