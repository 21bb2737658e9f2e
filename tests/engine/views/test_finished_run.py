"""Opening finished runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.project import Project
from proteoscope.engine.views.conditions import compares
from proteoscope.engine.views.finished_run import open_run
from tests.engine.views.search_projects import project_with_search


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a project with a search of three queries."""
    return project_with_search(tmp_path_factory.mktemp("searched") / "project").folder


def test_run_messages_start_with_warnings(searched: Path, tmp_path: Path) -> None:
    shutil.copytree(searched, tmp_path / "project")
    project = Project.open(tmp_path / "project")
    with project.run("align", project.runs()[-1].parameters, [], version="1", device="cpu") as run:
        for level, text in (("info", "read"), ("warning", "few pairs"), ("info", "fitted"), ("warning", "do not trust")):
            run.log(level, text)
        for name in ("queries", "hits", "score_counts"):
            run.write_table(name, pq.read_table(project.table(name, "align-0001")))
    opened = open_run(project, run.id)
    opened.close()
    assert opened.messages == ("few pairs", "do not trust", "read", "fitted")


def test_open_run_opens_latest_or_requested_run(searched: Path) -> None:
    with open_run(searched) as run:
        assert run.run.id == "align-0001" and set(run.tables.paths) == {"queries", "hits", "score_counts", "score_expectations"}
        assert run.parameters["matrix"] == "BLOSUM62" and [kind for kind, _ in run.inputs] == ["queries", "database"]
        hits = run.tables.source("hits")
        assert hits.sibling("queries").total == 3 == hits.query("SELECT count(*) AS n FROM queries")["n"][0].as_py()
        assert (
            hits.sibling("hits").rows([compares("query_index", "=", np.int64(0))]).tolist()
            == hits.rows([compares("query_index", "=", 0)]).tolist()
        )
        with pytest.raises(ParameterError, match="has no table 'psms'; it has queries, hits"):
            run.tables.source("psms")
    with open_run(str(searched), "align-0001") as again:
        assert again.run == run.run and again.ions is None
        with pytest.raises(ParameterError, match="run 'align-0001' has no false discovery rate"):
            _ = again.fdr


def test_open_run_rejects_unknown_runs_and_searches(searched: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run 'align-0009'"):
        open_run(searched, "align-0009")
    empty = Project.create_or_open(tmp_path / "empty")
    with pytest.raises(InputError, match="holds no finished run"):
        open_run(empty)
    with empty.run("astrology", {}) as run:
        run.write_json("run", {})
    with pytest.raises(ParameterError, match="there is no search 'astrology'"):
        open_run(empty)
