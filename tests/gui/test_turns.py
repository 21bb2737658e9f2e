"""What is left to do is done a piece at a time: counted in turns of the event loop, not in milliseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QObject, QTimer
from PySide6.QtGui import QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.gui import icons
from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.spectrum.mirror_view import MirrorView
from proteoscope.gui.spectrum.spectrum_view import SpectrumView
from proteoscope.gui.window import MainWindow
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.result_projects import project_with_results


class _Count(QObject):
    """Counts the turns of the event loop, and notes in which of them something was done."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0
        self.notes: list[tuple[int, str]] = []
        # Another timer that is due goes off in each turn, and the dispatcher begins each anew.
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


def test_each_piece_has_a_turn_of_its_own(count: _Count, qtbot: QtBot) -> None:
    turns = DeferredTasks(count)
    turns.add(*(lambda name=name: count.note(name) for name in "abc"))
    assert turns.is_busy and not count.notes
    qtbot.waitUntil(lambda: not turns.is_busy)
    assert [name for _, name in count.notes] == ["a", "b", "c"]
    assert len({turn for turn, _ in count.notes}) == 3


def test_what_is_left_can_be_done_at_once(count: _Count) -> None:
    turns = DeferredTasks(count)
    turns.add(*(lambda name=name: count.note(name) for name in "abc"))
    now = count.turn
    turns.finish()
    assert count.notes == [(now, "a"), (now, "b"), (now, "c")] and not turns.is_busy
    turns.finish()


def test_what_is_dropped_is_never_done(count: _Count, qtbot: QtBot) -> None:
    turns = DeferredTasks(count)
    turns.add(lambda: count.note("a"), turns.drop, lambda: count.note("c"))
    qtbot.waitUntil(lambda: not turns.is_busy)
    turn = count.turn
    # Long enough for another task to have begun.
    qtbot.waitUntil(lambda: count.turn > turn + 20)
    qtbot.wait(20)
    assert [name for _, name in count.notes] == ["a"] and not turns.is_busy


def test_another_project_is_taken_a_piece_at_a_time(
    window: MainWindow, count: _Count, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views let the old one go, and forms learn of the new one, each in a turn of its own behind that in which it is opened."""
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
    assert of_opening == [], "nothing of that was in sight"
    assert sorted(name for _, name in count.notes) == sorted(["results", *(f"form of {kind}" for kind in window.searches)])
    assert max(Counter(turn for turn, _ in count.notes).values()) == 1
    assert not results.is_used
    assert all(one.form.project_folder() == tmp_path / "second" for one in window.searches.values() if one.form.given_project is None)


def test_what_the_user_goes_on_with_has_been_done_before(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    """No form that is asked for, and no comparison, comes before its piece."""
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


def test_another_look_is_taken_a_piece_at_a_time(window: MainWindow, count: _Count, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each palette is told to all widgets, and each dozen of icons drawn, in a turn of its own."""

    class Application(QApplication):
        @staticmethod
        def setPalette(palette: QPalette, kind: str | None = None) -> None:  # noqa: N802 - Qt's name
            count.note(f"palette of {kind}")
            QApplication.setPalette(palette, kind)  # type: ignore[arg-type]

    pictures: list[int] = []  # drawn in each piece
    is_refreshing = False

    def drawn(name: str, *given: object) -> QPixmap:
        if is_refreshing:
            pictures[-1] += 1
        return pixmap(name, *given)  # type: ignore[arg-type]

    def refresh() -> Iterator[None]:
        nonlocal is_refreshing
        pieces, is_over = refresh_icons(), False
        while not is_over:
            count.note("icons")
            pictures.append(0)
            is_refreshing = True
            is_over = next(pieces, pieces) is pieces
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


def test_the_parts_of_results_that_take_longest_have_turns_of_their_own(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of the preparation makes one view of spectra at most."""
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
    assert steps == [["SpectrumView"], ["MirrorView"], []]
