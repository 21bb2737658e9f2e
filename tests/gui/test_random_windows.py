"""Ten random sequences of actions in a window with two projects: what is shown belongs to what is selected.

Each error found this way has its own short test in `test_shown_runs`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.panes import Pane, PaneView
from proteoscope.gui.results.comparison_view import ComparisonView
from proteoscope.gui.results.run_page import RunPage
from proteoscope.gui.results.run_view import RunView
from proteoscope.gui.selection_page import SelectionPage
from proteoscope.gui.window import MainWindow
from tests.gui.random_use import MODIFIERS, Tables, User, check_comparison, check_view, texts_of
from tests.gui.two_projects import StoredRun, made, projects, settle, stored_runs

__all__ = ["made", "projects"]

STEPS = 100
SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(10, 40))]
KINDS = ("identify", "align", "cluster")
MINIMUM_RUNS = 3
"""Number of runs below which none is deleted."""


class WindowUser:
    """Simulated user of a window, who also chooses runs, pages, projects and panes at random."""

    def __init__(self, window: MainWindow, projects: list[Path], seed: int) -> None:
        self.window, self._projects = window, projects
        self._random = np.random.default_rng(seed)
        self.done: list[str] = []
        self._tables: dict[tuple[Path, str], Tables] = {}
        self._ways: dict[Callable[[], str], float] = {
            self._use_view: 0.42,
            self._select_run: 0.15,
            self._press_button: 0.1,
            self._turn_page: 0.07,
            self._new_search: 0.03,
            self._switch_project: 0.05,
            self._delete: 0.03,
            self._rename: 0.04,
            self._undo: 0.05,
            self._redo: 0.02,
            self._arrange_panes: 0.04,
        }

    def act(self) -> None:
        """Perform one action."""
        way = self._one(list(self._ways), list(self._ways.values()))
        self.done.append(f"{way.__name__.strip('_')} {way()}")

    def tables(self, run: str) -> Tables:
        """Return the tables of a run of the open project."""
        project = self.window.project_pane.project
        assert project is not None
        key = project.folder, run
        if key not in self._tables:
            self._tables[key] = Tables(*key)
        return self._tables[key]

    def _one(self, of: list[Any], weights: list[float] | None = None) -> Any:
        if not of:
            return None
        return of[int(self._random.choice(len(of), p=None if weights is None else np.array(weights) / sum(weights)))]

    def _use_view(self) -> str:
        page = self.window.pages.currentWidget()
        if isinstance(page, ComparisonView):
            bar, texts = page.level_box.parentWidget(), []
        elif isinstance(page, RunView) and page.run is not None and not page.is_busy:
            bar, texts = page.filter_bar, texts_of(self.tables(page.run.id), list(page.panels))
        else:
            return self._select_run()
        user = User(page, bar, texts, self._random)
        user.act()
        return user.done[0]

    def _select_run(self) -> str:
        runs = self.window.project_pane.runs
        row = int(self._random.integers(max(1, runs.count())))
        if row >= runs.count():
            return ""
        modifier = self._one(list(MODIFIERS))
        QTest.mouseClick(runs.viewport(), Qt.MouseButton.LeftButton, modifier, runs.visualItemRect(runs.item(row)).center())
        return f"{row} {modifier.name}"

    def _press_button(self) -> str:
        """Press a button of the project pane, the message bar, the page of a run, or the header of results."""
        window, page = self.window, self.window.pages.currentWidget()
        pane = window.project_pane
        buttons: list[QAbstractButton] = [pane.about_button, pane.compare_button, window.message_bar.button]
        if isinstance(page, RunPage):
            buttons += [page.results_button, page.again_button, page.results_button, page.methods_button]
        elif isinstance(page, RunView):
            buttons += [page.header.about_button, page.header.details_button]
            buttons += [button for button in page.header.findChildren(QAbstractButton) if button.text().endswith("…")]
        elif isinstance(page, SearchForm):
            buttons += [page.last_button]
        button = self._one([button for button in buttons if button.isVisible() and button.isEnabled()])
        if button is None:
            return ""
        text = button.text()
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        return text

    def _turn_page(self) -> str:
        key = self._one([Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_2, Qt.Key.Key_4])
        QTest.keyClick(self.window, key, Qt.KeyboardModifier.ControlModifier)
        return str(key.name)

    def _new_search(self) -> str:
        kind = self._one([*KINDS, "explain"])
        self.window.menus.new[kind].trigger()
        return str(kind)

    def _switch_project(self) -> str:
        folder = self._one(self._projects)
        next(action for action in self.window.menus.recent.actions() if action.data() == str(folder)).trigger()
        return folder.name

    def _delete(self) -> str:
        pane = self.window.project_pane
        if len(pane.records) <= MINIMUM_RUNS or not pane.discard_action.isEnabled() or pane.selected_run is None:
            return ""
        run = pane.selected_run.id
        pane.discard_action.trigger()
        return run

    def _rename(self) -> str:
        page = self.window.pages.currentWidget()
        if not isinstance(page, RunPage) or page.account is None:
            return self._press_button()
        page.title.setFocus()
        page.title.selectAll()
        title = self._one(["control", "heat shock", "third", ""])
        QTest.keyClicks(page.title, title)
        if not title:
            QTest.keyClick(page.title, Qt.Key.Key_Delete)
        if self._random.random() < 0.5:
            QTest.keyClick(page.title, Qt.Key.Key_Return)
        return f"{page.account.run.id} {title}"

    def _undo(self) -> str:
        text = self.window.menus.undo.text()
        self.window.menus.undo.trigger()
        return text

    def _redo(self) -> str:
        text = self.window.menus.redo.text()
        self.window.menus.redo.trigger()
        return text

    def _arrange_panes(self) -> str:
        page = self.window.pages.currentWidget()
        pane = self._one(page.panes if isinstance(page, PaneView) and not page.text else [])
        if pane is None:
            return ""
        assert isinstance(pane, Pane)
        way = self._one(
            [pane.toggle_maximised, lambda: pane.set_collapsed(not pane.is_collapsed), pane.attach if pane.is_detached else pane.detach]
        )
        way()
        return f"{pane.title}: {'maximised ' * pane.is_maximised}{'collapsed ' * pane.is_collapsed}{'detached' * pane.is_detached}"


def check(user: WindowUser) -> None:
    """Check that what the window shows belongs to the open project and to what is selected."""
    window, page = user.window, user.window.pages.currentWidget()
    pane = window.project_pane
    assert pane.project is not None
    folder = pane.project.folder
    stored = stored_runs(folder)
    assert window.windowTitle() == f"{folder.name} – Proteoscope" and pane.name.text() == folder.name
    assert pane.state.text() == f"{len(stored)} run{'s' * (len(stored) > 1)}"
    check_list(window, stored)
    selected = [run.id for run in pane.selected_runs]
    for results in window.made_results():
        if results.run is not None:
            assert results._project is not None and results._project.folder == folder, results.search.kind
            assert results.run.id in [run.id for run in stored], f"{results.run.id} does not exist"
    assert pane.about_button.isVisibleTo(pane) == (len(selected) == 1)
    assert pane.compare_button.isVisibleTo(pane) == (len(selected) > 1)
    menus = window.menus
    assert (menus.form.isChecked(), menus.results.isChecked()) == (isinstance(page, SearchForm), isinstance(page, RunView))
    assert {action.isEnabled() for action in menus.of_form} == {isinstance(page, SearchForm)}
    if isinstance(page, RunView):
        check_results(user, page, selected)
    elif isinstance(page, RunPage):
        check_run_page(page, folder, stored, selected)
    elif isinstance(page, ComparisonView):
        assert [*page.run_ids] == selected, f"{page.run_ids} are compared, {selected} selected"
        check_comparison(page, user.tables(min(page.run_ids)))
    elif isinstance(page, SelectionPage):
        assert len(selected) != 1
        assert all(pane.title_of(run) in page.text for run in pane.selected_runs)
        assert page.text.startswith(f"{len(selected)} runs" if selected else "No run")
    elif isinstance(page, SearchForm):
        check_form(page, folder)


def check_list(window: MainWindow, stored: list[StoredRun]) -> None:
    """Check the runs listed in the project pane."""
    runs = window.project_pane.runs
    texts = [str(runs.item(row).data(Qt.ItemDataRole.AccessibleTextRole)) for row in range(runs.count())]
    assert len(texts) == len(stored)
    for text, run in zip(texts, stored, strict=True):
        assert f", {run.id}, {run.status}, " in text and (not run.title or text.startswith(f"{run.title}, ")), (text, run)


def check_results(user: WindowUser, page: RunView, selected: list[str]) -> None:
    """Check a page of results: it shows the selected run, or a text if that run has none."""
    if page.run is None:
        assert page.text
        assert all(panel.model.rowCount() == 0 for panel in page.panels.values())
        return
    assert selected == [page.run.id], f"{page.run.id} is shown, {selected} selected"
    assert page.header._run.text().startswith(f"{page.run.id}, ")
    check_view(page, page.run.kind, user.tables(page.run.id))


def check_run_page(page: RunPage, folder: Path, stored: list[StoredRun], selected: list[str]) -> None:
    """Check the page with the details of a run."""
    assert page.account is not None
    run = next((run for run in stored if run.id == page.account.run.id), None)
    assert run is not None, f"details of {page.account.run.id}, which does not exist"
    assert selected == [run.id], f"details of {run.id}, selected {selected}"
    assert not run.title or page.title.text() == run.title
    assert page.account.run.status == run.status and page.results_button.isEnabled() == (run.status == "done")
    assert page.account.folder is None or page.account.folder.is_relative_to(folder)


def check_form(page: SearchForm, folder: Path) -> None:
    """Check that a form without content uses the open project."""
    if not page.is_touched:
        assert page.project_folder() == folder


@pytest.mark.parametrize("seed", SEEDS)
def test_window_shows_selected_rows_after_random_input(window: MainWindow, projects: list[Path], seed: int, qtbot: QtBot) -> None:
    window.resize(1280, 800)
    for folder in projects:
        window.open_project(folder)
    user = WindowUser(window, projects, seed)
    # Acts one to three times between checks, so that answers about earlier choices are still pending.
    random = np.random.default_rng(seed)
    settle(window, qtbot)
    while len(user.done) < STEPS:
        for _ in range(int(random.choice([1, 1, 2, 3]))):
            user.act()
        settle(window, qtbot)
        try:
            check(user)
        except AssertionError as error:
            pytest.fail(f"after {len(user.done)} actions, the last of them {'; '.join(user.done[-12:])}: {error}")
