"""Tests of views under random clicks, keys, orders and filters: each part shows what is selected, as in the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.results.comparison_view import ComparisonView
from proteoscope.gui.theme import Theme
from tests.engine.views.cluster_projects import project_with_clusters
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.library_projects import project_with_library_search
from tests.engine.views.quantity_projects import quantified_project
from tests.gui.random_use import CHECKS, Tables, User, check_comparison, check_view, settle, texts_of

STEPS = 200
SEEDS = {"cluster": 101, "structures": 101, "align": 204, "evidence": 201}
"""Seeds whose steps have shown wrong rows."""


@pytest.fixture(scope="module")
def project_of(finished_run: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Project]:
    """Return a project with a finished run of a kind with enough rows."""
    folder = tmp_path_factory.mktemp("random-use")

    def make(kind: str) -> Project:
        match kind:
            case "library":
                return project_with_library_search(folder / "library-files", folder / "library", n_compounds=12)
            case "cluster":
                return project_with_clusters(folder / "cluster", sizes=(9, 6, 5, 4, 3, 3, 2, 2, 1, 1, 1))
            case "quantify":
                return quantified_project(folder / "quantify")
            case "compare":
                return project_with_runs(folder / "compare", n_spectra=40)[0]
            case "import":
                return Project.open(finished_run("evidence"))
            case _:
                return Project.open(finished_run(kind))

    return make


@pytest.fixture
def shown_view(qtbot: QtBot, theme: Theme) -> Iterator[Callable[[Any], Any]]:
    """Show a view, and release its files at the end."""
    views: list[Any] = []

    def show(view: Any) -> Any:
        qtbot.addWidget(view)
        view.resize(1300, 850)
        view.show()
        views.append(view)
        return view

    yield show
    for view in views:
        view.clear()


def use(view: Any, user: User, check: Callable[[], None], qtbot: QtBot) -> None:
    """Act one to three times between checks, so that answers about earlier rows are still pending."""
    random = np.random.default_rng(STEPS)
    settle(view, qtbot)
    check()
    while len(user.done) < STEPS:
        for _ in range(int(random.choice([1, 1, 2, 3]))):
            user.act()
        settle(view, qtbot)
        try:
            check()
        except AssertionError as error:
            pytest.fail(f"after {len(user.done)} steps, the last of them {'; '.join(user.done[-8:])}: {error}")


def first_run(project: Project, kind: str) -> str:
    """Return the id of the first run of a kind."""
    return next(run.id for run in project.runs() if run.kind == kind)


@pytest.mark.parametrize("kind", CHECKS)
def test_result_views_show_the_selected_rows_after_random_input(
    kind: str, project_of: Callable[[str], Project], shown_view: Callable[[Any], Any], qtbot: QtBot
) -> None:
    view_of, _ = CHECKS[kind]
    project = project_of(kind)
    tables = Tables(project.folder, first_run(project, kind))
    view = shown_view(view_of(search_of_kind(kind)))
    for bar in (view.filter_bar, view):
        if hasattr(bar, "_later"):
            bar._later.setInterval(0)
    view.show_run(project, None)
    settle(view, qtbot)
    user = User(view, view.filter_bar, texts_of(tables, list(view.panels)), seed=SEEDS.get(kind, 8))
    use(view, user, lambda: check_view(view, kind, tables), qtbot)


def test_run_comparison_shows_selected_rows_after_random_input(
    project_of: Callable[[str], Project], shown_view: Callable[[Any], Any], qtbot: QtBot
) -> None:
    project = project_of("compare")
    tables = Tables(project.folder, first_run(project, "identify"))
    view = shown_view(ComparisonView(project, [run.id for run in project.runs()]))
    settle(view, qtbot)
    bar = view.level_box.parentWidget()
    use(view, User(view, bar, [], seed=202), lambda: check_comparison(view, tables), qtbot)
