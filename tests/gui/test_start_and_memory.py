"""What the start of the window loads and makes, what is made later while nobody waits, and what closed results leave behind."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from engine.jobs import JobQueue
from gui.preparation import Preparation
from gui.window import MainWindow
from tests.conftest import REPOSITORY
from tests.engine.views.read_projects import project_with_reads
from tests.engine.views.result_projects import project_with_results
from tests.engine.views.search_projects import project_with_search
from tests.engine.views.structure_projects import project_with_structures
from tests.gui.result_views import settle

_HEAVY = (
    "pyqtgraph", "pyarrow", "duckdb", "numba", "scipy", "pandas", "gemmi", "lxml", "sklearn", "cupy", "gui.forms.search_form",
    "gui.results.run_view",
)  # fmt: skip
_START = f"""
import json, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication, QWidget
from gui.settings import SettingsFile
from gui.theme import Theme
from gui.window import MainWindow
application = QApplication(["proteoscope"])
window = MainWindow(SettingsFile(Path(sys.argv[1])), Theme(application))
window.show()
application.processEvents()
made = [one.kind for one in window.searches.values() if one.made_form is not None or one.made_results is not None]
print(json.dumps([[name for name in {_HEAVY} if name in sys.modules], made, len(window.findChildren(QWidget)), len(sys.modules)]))
window.close()
"""
_MAXIMUM_WIDGETS, _MAXIMUM_MODULES = 200, 620
"""Of a window that was just opened; a form has 500 widgets, and with all views it was 5,000 and 830."""


def test_the_start_loads_and_makes_what_is_seen_and_no_more(display: None, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")} | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", _START, str(tmp_path / "settings.json")]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded, made, n_widgets, n_modules = json.loads(done.stdout)
    assert loaded == [] and made == []
    assert n_widgets <= _MAXIMUM_WIDGETS and n_modules <= _MAXIMUM_MODULES


def test_pages_are_made_in_small_pieces_while_nothing_runs(window: MainWindow, qtbot: QtBot) -> None:
    busy = True
    preparation = Preparation([window.searches["align"]], lambda: not busy, window)
    preparation.begin()
    pages = window.searches["align"]
    qtbot.wait(300)
    assert pages.made_form is None, "nothing is made while something runs"
    busy = False
    n_steps = 0

    def count() -> None:
        nonlocal n_steps
        n_steps += 1

    preparation._timer.timeout.connect(count)
    qtbot.waitUntil(lambda: pages.made_results is not None)
    assert n_steps >= len(pages.search.model.describe()), "each field is a piece of its own"
    assert pages.form is pages.made_form and window.pages.indexOf(pages.form) >= 0
    qtbot.waitUntil(lambda: not preparation._timer.isActive())


def test_a_form_that_is_asked_for_while_it_is_made_is_whole(window: MainWindow) -> None:
    pages = window.searches["modified"]
    for _ in range(5):
        assert pages.prepare()
    form = pages.form
    assert list(form.parameters.fields) == [one.name for one in pages.search.model.describe()]
    assert all(field.editor.window() is window for field in form.parameters.fields.values())


def test_results_that_are_closed_leave_no_objects(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project_with_results(tmp_path / "identify")
    project_with_search(tmp_path / "align")
    project_with_structures(tmp_path / "structures")
    project_with_reads(tmp_path / "reads", "ACGTTGCAAGCTTACGGATC" * 40, n_reads=8)
    folders = [tmp_path / name for name in ("identify", "align", "structures", "reads")]

    def looked_at() -> None:
        for folder in folders:
            window.open_project(folder)
            settle(window.results, qtbot)
            for panel in window.results.panels.values():
                panel.view.choose(0)
            settle(window.results, qtbot)
        window.results.clear()

    for _ in range(2):
        looked_at()
    before = _held(window)
    looked_at()
    more = {name: n - before[name] for name, n in _held(window).items() if n > before[name]}
    assert more == {}


def _held(window: MainWindow) -> Counter[str]:
    """How many objects there are of each class of ours, of Qt in the window, and of tables and connections."""
    gc.collect()
    held = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
    ours = {name: n for name, n in held.items() if name.startswith(("gui.", "engine.", "pyarrow.", "numpy.", "_duckdb", "duckdb"))}
    return Counter({**ours, "children of the window": len(window.findChildren(QObject))})


def test_a_finished_job_holds_neither_its_work_nor_its_settings() -> None:
    class Large:
        pass

    def work_with(large: Large) -> Callable[[object], str]:
        return lambda progress: f"done with {type(large).__name__}"

    queue = JobQueue()
    job = queue.add("one", work_with(Large()))
    assert queue.wait(10) and job.result == "done with Large"
    gc.collect()
    assert [one for one in gc.get_objects() if type(one) is Large] == []
    assert queue.shutdown(5)
