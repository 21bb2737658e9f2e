"""Tests of the window in its own process: ended by a signal, and on a screen of scale 2."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from proteoscope.gui.settings import SettingsFile
from tests.conftest import REPOSITORY
from tests.engine.views.result_projects import project_with_results

_SECONDS, _PAUSE = 60.0, 0.05

_CHANGED_AND_LEFT = """
import sys
from PySide6.QtCore import QTimer
import proteoscope.gui.application as application
shown = application.MainWindow.show
def show(self):
    shown(self)
    QTimer.singleShot(0, self.menus.themes["dark"].trigger)
application.MainWindow.show = show
from proteoscope.gui.launch import main
sys.exit(main(sys.argv[1:]))
"""
"""Program that starts as its command does; the user selects the dark theme, and leaves the window open."""

_OPENED_AND_ENDED = """
import os, signal, sys, threading, time
from pathlib import Path
from PySide6.QtCore import QTimer
import proteoscope.gui.application as application
import proteoscope.gui.settings as settings
written, opened = settings.atomic_file, threading.Event()
def slowly(path):
    opened.wait()
    time.sleep(0.5)
    return written(path)
settings.atomic_file = slowly
shown = application.MainWindow.show
def show(self):
    shown(self)
    def act():
        self.open_project(Path(sys.argv[1]))
        opened.set()
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    QTimer.singleShot(0, act)
application.MainWindow.show = show
sys.exit(application.run_window())
"""
"""Program that opens a project on a slow disk, and is killed immediately, before anything can have been written."""

_AT_TWICE = """
import json, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from proteoscope.gui.settings import SettingsFile
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
application = QApplication(["proteoscope"])
window = MainWindow(SettingsFile(Path(sys.argv[1])), Theme(application))
window.show()
window.new_search("identify")
window.dock_jobs.show()
for _ in range(20):
    application.processEvents()
screen = window.screen().availableGeometry()
parts = {}
for name, part in (("run", window.form.run_button), ("status bar", window.statusBar()), ("devices", window.device_button)):
    at = part.mapTo(window, part.rect().bottomRight())
    parts[name] = window.rect().contains(at) and part.isVisible()
print(json.dumps([window.devicePixelRatio(), window.width(), window.height(), screen.width(), screen.height(), parts]))
window.close()
"""


def _environment(**more: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return {**environment, "PYTHONPATH": str(REPOSITORY), **more}


def _wait_until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    for _ in range(round(_SECONDS / _PAUSE)):
        if holds():
            return
        if process.poll() is not None:
            pytest.fail(process.communicate()[1])
        time.sleep(_PAUSE)
    pytest.fail("nothing came")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_window_ended_by_a_signal_has_saved_its_settings(display: None, tmp_path: Path) -> None:
    project_with_results(tmp_path / "mine")
    path = tmp_path / "proteoscope" / "settings.json"
    process = subprocess.Popen(
        [sys.executable, "-c", _CHANGED_AND_LEFT, str(tmp_path / "mine")],
        env=_environment(XDG_CONFIG_HOME=str(tmp_path)),
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:

        def is_stored() -> bool:
            return path.exists() and json.loads(path.read_text(encoding="utf-8")).get("theme") == "dark"

        _wait_until(is_stored, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(_SECONDS) == -signal.SIGTERM
    finally:
        process.kill()
        process.communicate()
    settings = SettingsFile(path).values
    assert settings.theme == "dark" and settings.recent_projects == (str(tmp_path / "mine"),) and settings.geometry
    assert [path.name for path in path.parent.iterdir()] == ["settings.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", *(pytest.param(name, marks=pytest.mark.long) for name in ("SIGHUP", "SIGINT"))])
def test_project_opened_before_a_signal_is_remembered(display: None, tmp_path: Path, name: str) -> None:
    """Check that a signal waits for settings written in another thread, then ends the program as its sender expects."""
    project_with_results(tmp_path / "mine")
    done = subprocess.run(
        [sys.executable, "-c", _OPENED_AND_ENDED, str(tmp_path / "mine"), name],
        env=_environment(XDG_CONFIG_HOME=str(tmp_path)),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == -getattr(signal, name), done.stderr
    path = tmp_path / "proteoscope" / "settings.json"
    settings = SettingsFile(path).values
    assert settings.recent_projects == (str(tmp_path / "mine"),) and settings.recent_runs[str(tmp_path / "mine")].kinds == ("identify",)
    assert [path.name for path in path.parent.iterdir()] == ["settings.json"]


def test_window_at_first_start_fits_a_screen_with_scale_2(display: None, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _AT_TWICE, str(tmp_path / "settings.json")],
        env=_environment(QT_SCALE_FACTOR="2"),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ratio, width, height, screen_width, screen_height, parts = json.loads(done.stdout)
    assert ratio == 2.0
    assert width <= screen_width and height <= screen_height
    assert all(parts.values()), parts
