"""Tests of the parts that the window loads at the start, builds later when idle, and leaves in memory after results are closed."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from proteoscope.engine.jobs import JobQueue
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.garbage import GarbageCollector
from proteoscope.gui.preloading import Preparation
from proteoscope.gui.results.modified_view import ModifiedView
from proteoscope.gui.window import MainWindow
from tests.conftest import REPOSITORY
from tests.engine.views.read_projects import project_with_reads
from tests.engine.views.result_projects import project_with_results
from tests.engine.views.search_projects import project_with_search
from tests.engine.views.structure_projects import project_with_structures
from tests.gui.result_views import settle

_HEAVY = (
    "pyqtgraph",
    "pyarrow",
    "duckdb",
    "numba",
    "scipy",
    "pandas",
    "gemmi",
    "lxml",
    "sklearn",
    "cupy",
    "proteoscope.gui.forms.search_form",
    "proteoscope.gui.results.run_view",
)
_DRAWING = (
    "OpenGL",
    "PIL",
    "proteoscope.gui.structure.structure_panel",
    "proteoscope.gui.structure.opengl_renderer",
    "proteoscope.engine.structures.meshes",
)
_START = f"""
import json, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication, QWidget
from proteoscope.gui.settings import SettingsFile
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
application = QApplication(["proteoscope"])
window = MainWindow(SettingsFile(Path(sys.argv[1])), Theme(application))
window.show()
application.processEvents()
made = [one.kind for one in window.searches.values() if one.made_form is not None or one.made_results is not None]
at_first = [[name for name in {_HEAVY} if name in sys.modules], made, len(window.findChildren(QWidget)), len(sys.modules)]
window.menus.new["structures"].trigger()
application.processEvents()
print(json.dumps([at_first, [name for name in {_DRAWING} if name in sys.modules]]))
assert not {{"engine", "gui", "kernels", "resources"}} & sys.modules.keys()
window.close()
window.queue.shutdown(5)
"""
_MAXIMUM_WIDGETS, _MAXIMUM_MODULES = 200, 580
"""Bounds of a window just opened. A form has 500 widgets; a window with all views had 5,000 widgets and 830 modules."""


class _Started(NamedTuple):
    loaded: list[str]
    made: list[str]
    n_widgets: int
    n_modules: int


@pytest.fixture(scope="module")
def started(display: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[_Started, list[str]]:
    """Return what a new window has in its own process, and which structure modules other than their form are loaded."""
    tmp_path = tmp_path_factory.mktemp("started")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")} | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", _START, str(tmp_path / "settings.json")]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    at_first, drawing = json.loads(done.stdout)
    return _Started(*at_first), drawing


def test_new_window_builds_and_imports_only_visible_parts(started: tuple[_Started, list[str]]) -> None:
    at_first, _ = started
    assert at_first.loaded == [] and at_first.made == []
    assert at_first.n_widgets <= _MAXIMUM_WIDGETS and at_first.n_modules <= _MAXIMUM_MODULES


def test_new_window_without_structures_imports_no_opengl(started: tuple[_Started, list[str]]) -> None:
    _, drawing = started
    assert drawing == []


def test_form_and_results_are_built_in_small_steps_when_idle(window: MainWindow, qtbot: QtBot) -> None:
    busy = True
    preparation = Preparation([window.searches["align"]], lambda: not busy, window)
    preparation.begin()
    pages = window.searches["align"]
    qtbot.wait(300)
    assert pages.made_form is None, "nothing is built while something runs"
    busy = False
    n_steps = 0

    def count() -> None:
        nonlocal n_steps
        n_steps += 1

    preparation._timer.timeout.connect(count)
    qtbot.waitUntil(lambda: pages.made_results is not None)
    n_parts = len(pages.search.model.describe()) + len(pages.search.result_tables)
    assert n_steps >= n_parts, "each field and each table is built in its own step"
    assert pages.form is pages.made_form and window.pages.indexOf(pages.form) >= 0
    qtbot.waitUntil(lambda: not preparation._timer.isActive())


def test_form_requested_during_its_preparation_is_complete(window: MainWindow) -> None:
    pages = window.searches["modified"]
    for _ in range(5):
        assert pages.prepare()
    form = pages.form
    assert list(form.parameters.fields) == [parameter.name for parameter in pages.search.model.describe()]
    assert all(field.editor.window() is window for field in form.parameters.fields.values())


@pytest.mark.parametrize("page", ["form", "results"])
def test_page_that_failed_to_build_is_built_later(window: MainWindow, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    pages = window.searches["modified"]

    def broken(*_: object, **__: object) -> None:
        raise OSError("a plug came off")

    with monkeypatch.context() as now:
        for of in (SearchForm, ModifiedView):
            now.setattr(of, "__init__", broken)
        for _ in range(2):
            with pytest.raises(OSError, match="a plug came off"):
                getattr(pages, page)
        # Building pages when idle hits the error of each once and continues with the others.
        n_errors, n_steps = 0, 0
        while n_steps < 200:
            n_steps += 1
            try:
                if not pages.prepare():
                    break
            except OSError:
                n_errors += 1
        assert n_errors == 1 and n_steps < 200, "the requested page is not tried again, the other one once"
        with pytest.raises(OSError, match="a plug came off"):
            getattr(pages, page)
    assert all(window.pages.indexOf(made) >= 0 for made in (pages.form, pages.results))


def test_garbage_collector_visits_few_objects_after_imports(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the objects created by a quarter of a second of importing; none are garbage."""
    n_at_once, looked_at, objects = 25_000, [], []
    assert gc.get_threshold()[0] < n_at_once, "an earlier test changed the thresholds of the process"
    window._garbage.stop()
    gc.disable()
    gc.collect()
    collector = GarbageCollector(lambda: False, window)
    collector._timer.stop()

    def collect(generation: int) -> int:
        looked_at.append(sum(len(gc.get_objects(level)) for level in range(generation + 1)))
        return really(generation)

    really = gc.collect
    monkeypatch.setattr(gc, "collect", collect)
    for _ in range(30):
        objects.append([[i] for i in range(n_at_once)])
        collector.collect_if_due()
    collector.stop()
    assert len(looked_at) == 30 and max(looked_at) < 5 * n_at_once


def test_closed_results_leave_no_objects(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project_with_results(tmp_path / "identify")
    project_with_search(tmp_path / "align")
    project_with_structures(tmp_path / "structures")
    project_with_reads(tmp_path / "reads", "ACGTTGCAAGCTTACGGATC" * 40, n_reads=8)
    folders = [tmp_path / name for name in ("identify", "align", "structures", "reads")]

    def show_and_close_results() -> None:
        for folder in folders:
            window.open_project(folder)
            settle(window.results, qtbot)
            for panel in window.results.panels.values():
                panel.view.choose(0)
            settle(window.results, qtbot)
        window.results.clear()

    for _ in range(2):
        show_and_close_results()
    before = _held(window)
    show_and_close_results()
    more = {name: n - before[name] for name, n in _held(window).items() if n > before[name]}
    assert more == {}


def _held(window: MainWindow) -> Counter[str]:
    """Return the number of objects of each class of Proteoscope, of Qt in the window, and of tables and connections."""
    gc.collect()
    held = Counter(f"{type(obj).__module__}.{type(obj).__qualname__}" for obj in gc.get_objects())
    ours = {name: n for name, n in held.items() if name.startswith(("gui.", "engine.", "pyarrow.", "numpy.", "_duckdb", "duckdb"))}
    return Counter({**ours, "children of the window": len(window.findChildren(QObject))})


def test_finished_job_releases_its_function_and_settings() -> None:
    class Large:
        pass

    def work_with(large: Large) -> Callable[[object], str]:
        return lambda progress: f"done with {type(large).__name__}"

    queue = JobQueue()
    job = queue.add("one", work_with(Large()))
    assert queue.wait(60) and job.result == "done with Large"
    gc.collect()
    assert [obj for obj in gc.get_objects() if type(obj) is Large] == []
    assert queue.shutdown(60)
