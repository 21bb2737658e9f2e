"""HTML report of a run: content for each type of search, size limits, and untrusted names as text."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from lxml import html

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project, RunNote
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.identification import accepted_counts
from proteoscope.engine.views.run_report import MAXIMUM_ROWS, write_report
from tests.engine.views.cluster_projects import project_with_clusters
from tests.engine.views.result_projects import project_with_results
from tests.engine.views.search_projects import project_with_search

_EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp.exe&quot;'\""


def _page(project: Project, folder: Path) -> tuple[str, html.HtmlElement]:
    run = project.runs()[-1]
    paths = write_report(project, run, search_of_kind(run.kind), folder, Progress())
    assert [path.name for path in paths] == [f"{run.id}.html", f"{run.id}-methods.txt"]
    text = paths[0].read_text(encoding="utf-8")
    return text, html.fromstring(text.encode())


def _rows(page: html.HtmlElement, title: str) -> list[list[str]]:
    (section,) = [section for section in page.iter("section") if section.find("h2").text == title]
    return [[cell.text_content() for cell in row] for row in section.iter("tr")]


def test_run_report_of_identification_is_complete(tmp_path: Path) -> None:
    project = project_with_results(tmp_path / "p")[0]
    text, page = _page(project, tmp_path / "out")
    search = search_of_kind("identify")
    assert len(list(page.iter("svg"))) == 2 and "Score distribution" in text
    from proteoscope.engine.views.finished_run import open_run

    with open_run(project) as run:
        counts = accepted_counts(run.tables.source("psms"), run.fdr)
    for title, n in (("PSMs", counts.psms.number), ("Peptides", counts.peptides.number)):
        assert len(_rows(page, title)) - 1 == min(n, MAXIMUM_ROWS)
    assert {row[1] for row in _rows(page, "Parameters")[1:]} == {parameter.title for parameter in search.model.describe()}


@pytest.mark.parametrize("create_project", [project_with_clusters, project_with_search], ids=["clusters", "hits"])
def test_run_report_of_other_searches_has_figure_and_tables(create_project, tmp_path: Path) -> None:
    project = create_project(tmp_path / "p")
    _, page = _page(project, tmp_path / "out")
    assert len(list(page.iter("svg"))) >= 1
    for table in search_of_kind(project.runs()[-1].kind).result_tables:
        assert len(_rows(page, table.title)) > 1


def test_run_report_shows_untrusted_names_as_text(tmp_path: Path) -> None:
    project = project_with_results(tmp_path / "p")[0]
    run = project.runs()[-1]
    project.set_note(run.id, RunNote(_EVIL, _EVIL))
    with closing(sqlite3.connect(tmp_path / "p" / "project.sqlite")) as connection:
        connection.execute(
            "INSERT INTO log (run, time, level, text) VALUES (?, '2026-01-01T00:00:00+00:00', 'warning', ?)", (run.id, _EVIL)
        )
        connection.execute("INSERT INTO inputs (id, path, size, sha256, kind) VALUES (99, ?, 1, ?, ?)", (f"/a/{_EVIL}", _EVIL, _EVIL))
        connection.execute("INSERT INTO run_inputs VALUES (?, 9, 99)", (run.id,))
        connection.execute("UPDATE runs SET message = ?, device = ?, version = ?", (_EVIL,) * 3)
        connection.commit()
    text, page = _page(project, tmp_path / "out")
    assert not list(page.iter("script", "img", "iframe", "link", "a"))
    assert not [name for element in page.iter() for name in element.attrib if name.startswith("on") or name in ("src", "href")]
    assert "alert(1)" in page.text_content() and "\u202e" not in text
    assert "default-src 'none'" in text


def test_run_report_rejects_forged_parameters(tmp_path: Path) -> None:
    project = project_with_results(tmp_path / "p")[0]
    with closing(sqlite3.connect(tmp_path / "p" / "project.sqlite")) as connection:
        connection.execute("UPDATE runs SET parameters = json_set(parameters, '$.enzyme', ?)", (_EVIL,))
        connection.commit()
    with pytest.raises(InputError, match=r"the recorded parameters of .* are damaged"):
        _page(project, tmp_path / "out")


def test_run_report_limits_long_logs(tmp_path: Path) -> None:
    project = project_with_results(tmp_path / "p")[0]
    run = project.runs()[-1]
    with closing(sqlite3.connect(tmp_path / "p" / "project.sqlite")) as connection:
        rows = [(run.id, "2026-01-01T00:00:00+00:00", "warning", "<" * 10_000) for _ in range(2000)]
        connection.executemany("INSERT INTO log (run, time, level, text) VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    text, _ = _page(project, tmp_path / "out")
    assert len(text) < 3_000_000


def test_report_command_writes_report_of_latest_or_named_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = project_with_results(tmp_path / "p")[0]
    run = project.runs()[-1].id
    assert main(["report", str(tmp_path / "p"), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "out" / f"{run}{ending}") for ending in (".html", "-methods.txt")]
    assert main(["report", str(tmp_path / "p"), "--run", "identify-0099", "--out", str(tmp_path / "out")]) == 2
    assert "no finished run 'identify-0099'" in capsys.readouterr().err
    # Files of the project are not overwritten.
    assert main(["report", str(tmp_path / "p"), "--out", str(tmp_path / "p" / "results")]) == 2


def test_run_report_tables_scroll_instead_of_breaking_words(tmp_path: Path) -> None:
    """Columns are as wide as their longest word, up to a limit; ``anywhere`` would let them shrink to one character."""
    text, page = _page(project_with_results(tmp_path / "p")[0], tmp_path / "out")
    (cells,) = re.findall(r"td,th\{([^}]*)\}", text)
    assert "overflow-wrap:break-word" in cells and "anywhere" not in cells
    assert all(table.getparent().get("class") == "wide" for table in page.iter("table") if table.get("class") != "counts")
