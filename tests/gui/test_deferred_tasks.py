"""Tests that deferred tasks are done in small steps, counted in turns of the event loop, not in milliseconds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QObject, QTimer
from PySide6.QtGui import QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui import icons
from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.spectrum.mirror_view import MirrorView
from proteoscope.gui.spectrum.spectrum_view import SpectrumView
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.window import MainWindow
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.result_projects import project_with_results
from tests.fuzz.result_tables import make
from tests.gui.result_views import settle


class _Count(QObject):
    """Counter of the turns of the event loop, which records in which turn something was done."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0
        self.notes: list[tuple[int, str]] = []
        # Another timer that is due fires in each turn, and the dispatcher restarts each.
        self.timer = QTimer(self)
        self.timer.start()
        QAbstractEventDispatcher.instance().awake.connect(self._next)

    def note(self, what: str) -> None:
        self.notes.append((self.turn, what))

    def _next(self) -> None:
        self.turn += 1


@pytest.fixture
def count(qtbot: QtBot) -> Iterator[_Count]:
    made = _Count()
    yield made
    made.timer.stop()
    QAbstractEventDispatcher.instance().awake.disconnect(made._next)


def test_each_deferred_task_runs_in_a_separate_event_loop_turn(count: _Count, qtbot: QtBot) -> None:
    turns = DeferredTasks(count)
    turns.add(*(lambda name=name: count.note(name) for name in "abc"))
    assert turns.is_busy and not count.notes
    qtbot.waitUntil(lambda: not turns.is_busy)
    assert [name for _, name in count.notes] == ["a", "b", "c"]
    assert len({turn for turn, _ in count.notes}) == 3


def test_finish_runs_all_remaining_deferred_tasks_immediately(count: _Count) -> None:
    turns = DeferredTasks(count)
    turns.add(*(lambda name=name: count.note(name) for name in "abc"))
    now = count.turn
    turns.finish()
    assert count.notes == [(now, "a"), (now, "b"), (now, "c")] and not turns.is_busy
    turns.finish()


def test_dropped_deferred_tasks_are_never_run(count: _Count, qtbot: QtBot) -> None:
    turns = DeferredTasks(count)
    turns.add(lambda: count.note("a"), turns.drop, lambda: count.note("c"))
    qtbot.waitUntil(lambda: not turns.is_busy)
    turn = count.turn
    # Long enough for another task to have begun.
    qtbot.waitUntil(lambda: count.turn > turn + 20)
    qtbot.wait(20)
    assert [name for _, name in count.notes] == ["a"] and not turns.is_busy


def test_another_project_is_opened_in_steps_of_the_event_loop(
    window: MainWindow, count: _Count, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that views release the old project and forms receive the new one, each in its own later turn."""
    project_with_results(tmp_path / "first")
    Project.create_or_open(tmp_path / "second")
    window.open_project(tmp_path / "first")
    qtbot.waitUntil(lambda: not window.results.is_busy)
    results = window.results

    def noted(of: QObject, name: str, what: str) -> None:
        act = getattr(of, name)

        def noting(*given: object) -> None:
            count.note(what)
            act(*given)

        monkeypatch.setattr(of, name, noting)

    for kind in window.searches:
        noted(window.searches[kind].form, "offer_project", f"form of {kind}")
    noted(results, "clear", "results")
    before = count.turn
    window.open_project(tmp_path / "second")
    of_opening = [name for turn, name in count.notes if turn == before]
    qtbot.waitUntil(lambda: not window.deferred.is_busy)
    assert of_opening == [], "none of these parts was visible"
    assert sorted(name for _, name in count.notes) == sorted(["results", *(f"form of {kind}" for kind in window.searches)])
    assert max(Counter(turn for turn, _ in count.notes).values()) == 1
    assert not results.is_used
    forms = [search.form for search in window.searches.values() if search.form.given_project is None]
    assert all(form.project_folder() == tmp_path / "second" for form in forms)


def test_results_of_workers_are_delivered_in_separate_turns(count: _Count, qtbot: QtBot) -> None:
    workers = [TableWorker(None, count) for _ in range(3)]
    for name, worker in zip("abc", workers, strict=True):
        worker.submit("note", lambda: None, lambda _, name=name: count.note(name), pytest.fail)
    for thread in threading.enumerate():
        if thread.name == "results":
            thread.join()
    qtbot.waitUntil(lambda: not any(worker.is_busy for worker in workers))
    assert sorted(name for _, name in count.notes) == ["a", "b", "c"]
    assert len({turn for turn, _ in count.notes}) == 3


@pytest.mark.parametrize("kind", ["identify", "explain", "quantify"])
def test_run_is_opened_in_steps_without_queries_in_gui_thread(
    window: MainWindow, count: _Count, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    make(kind, tmp_path / kind)
    results, queried = window.searches[kind].results, threads_of_queries(monkeypatch)
    begin, show_panes = results._begin, results._show_panes
    monkeypatch.setattr(results, "_begin", lambda *given: (count.note("begin"), begin(*given)))
    monkeypatch.setattr(results, "_show_panes", lambda: (count.note("show"), show_panes()))
    window.open_project(tmp_path / kind)
    assert results.text == "Opening the results…"
    settle(results, qtbot)
    assert results.text == "" and results.run is not None
    assert [name for _, name in count.notes] == ["begin", "show"], "tables without rows would look empty"
    assert len({turn for turn, _ in count.notes}) == 2
    assert queried and threading.get_ident() not in queried


def test_comparison_is_opened_without_queries_in_gui_thread(
    window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, *_ = project_with_runs(tmp_path / "compared", n_runs=2)
    window.open_project(tmp_path / "compared")
    settle(window.results, qtbot)
    queried = threads_of_queries(monkeypatch)
    window.compare_runs(project.runs())
    view = window.comparisons.view
    assert view is not None
    settle(view, qtbot)
    assert view.text == "" and view.panel.model.rowCount() and view.overlaps.drawing is not None
    assert queried and threading.get_ident() not in queried


def threads_of_queries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the thread of each later query of a table is added."""
    threads: list[int] = []
    query = TableSource.query

    def noting(source: TableSource, *given: Any) -> pa.Table:
        threads.append(threading.get_ident())
        return query(source, *given)

    monkeypatch.setattr(TableSource, "query", noting)
    return threads


def test_deferred_tasks_finish_before_a_page_is_shown(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    """Check that a requested form or comparison never comes before its task."""
    project, *_ = project_with_runs(tmp_path / "second", n_runs=2)
    project_with_results(tmp_path / "first")
    window.open_project(tmp_path / "first")
    qtbot.waitUntil(lambda: not window.results.is_busy)
    waiting = window.searches["cluster"].form
    window.open_project(tmp_path / "second")
    window.new_search("cluster")
    assert waiting.project_folder() == tmp_path / "second" and not window.deferred.is_busy
    window.open_project(tmp_path / "first")
    window.open_project(tmp_path / "second")
    window.compare_runs(project.runs())
    qtbot.waitUntil(lambda: window.comparisons.view is not None and not window.comparisons.view.is_busy)
    qtbot.wait(50)
    assert window.comparisons.view is not None and window.pages.currentWidget() is window.comparisons.view


def test_another_theme_is_applied_in_steps_of_the_event_loop(
    window: MainWindow, count: _Count, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that each palette is sent to all widgets, and each dozen icons drawn, in its own turn."""

    class Application(QApplication):
        @staticmethod
        def setPalette(palette: QPalette, kind: str | None = None) -> None:  # noqa: N802 - Qt's name
            count.note(f"palette of {kind}")
            QApplication.setPalette(palette, kind)  # type: ignore[arg-type]

    pictures: list[int] = []  # It is drawn in each step.
    is_refreshing = False

    def drawn(name: str, *given: object) -> QPixmap:
        if is_refreshing:
            pictures[-1] += 1
        return pixmap(name, *given)  # type: ignore[arg-type]

    def refresh() -> Iterator[None]:
        nonlocal is_refreshing
        steps, is_over = refresh_icons(), False
        while not is_over:
            count.note("icons")
            pictures.append(0)
            is_refreshing = True
            is_over = next(steps, steps) is steps
            is_refreshing = False
            if not is_over:
                yield

    _ = window.form
    monkeypatch.setattr("proteoscope.gui.theme.QApplication", Application)
    pixmap, refresh_icons = icons.pixmap, icons.refresh_icons
    monkeypatch.setattr(icons, "pixmap", drawn)
    monkeypatch.setattr("proteoscope.gui.theme.refresh_icons", refresh)
    window.theme.changed.connect(lambda: count.note("parts of the window"))
    window.set_theme("dark")
    assert count.notes == []
    qtbot.waitUntil(lambda: not window.theme.is_changing)
    in_turns = Counter(turn for turn, _ in count.notes)
    assert len(in_turns) >= 11 and max(in_turns.values()) == 1, "palettes, icons and parts"
    assert len(pictures) >= 2 and max(pictures) <= 12 * 14, "an icon has 14"


def test_each_preparation_step_builds_at_most_one_spectrum_view(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that each step of the preparation builds at most one view of spectra."""
    pages = window.searches["identify"]
    _ = pages.form
    made: list[str] = []
    steps = []

    def noted(kind: type[SpectrumView | MirrorView]) -> None:
        begin: Callable[..., None] = kind.__init__

        def noting(self: SpectrumView | MirrorView, *given: QWidget) -> None:
            made.append(kind.__name__)
            begin(self, *given)

        monkeypatch.setattr(kind, "__init__", noting)

    for kind in (SpectrumView, MirrorView):
        noted(kind)
    while pages.made_results is None:
        before = len(made)
        assert pages.prepare()
        steps.append(made[before:])
    assert [step for step in steps if step] == [["SpectrumView"], ["MirrorView"]]
