"""Tests of the command ``proteoscope``: window or command line, and its messages if no window can open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proteoscope.engine.execution import heap
from proteoscope.engine.project import Project
from proteoscope.gui import launch

_REPOSITORY = Path(__file__).parents[2]


def run(arguments: list[str], environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from proteoscope.gui.launch import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, cwd=cwd, timeout=60, check=False
    )


def without_display(**more: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    return {**environment, "PYTHONPATH": str(_REPOSITORY), **more}


def test_program_without_display_reports_one_line(tmp_path: Path) -> None:
    answer = run([], without_display(), tmp_path)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert len(answer.stderr.splitlines()) == 1
    assert "no display" in answer.stderr and "proteoscope --help" in answer.stderr


def test_program_error_has_the_name_of_an_unreachable_display(tmp_path: Path) -> None:
    answer = run([], without_display(DISPLAY=":4711"), tmp_path)
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 1
    assert ":4711" in answer.stderr


def test_project_folder_as_argument_opens_the_window(tmp_path: Path) -> None:
    Project.create_or_open(tmp_path / "project")
    answer = run(["project"], without_display(), tmp_path)
    assert answer.returncode == 2 and "no display" in answer.stderr


def test_open_command_opens_files_in_the_window(tmp_path: Path) -> None:
    answer = run(["open", "run.mzML"], without_display(), tmp_path)
    assert answer.returncode == 2 and "no display" in answer.stderr


def test_window_limits_retained_memory_before_threads_start(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def no_window() -> str:
        done.append("looked for a display")
        return "there is none"

    monkeypatch.setattr(heap, "limit_retained_memory", lambda: done.append("bounded"))
    monkeypatch.setattr(launch, "no_window_reason", no_window)
    assert launch.main([]) == 2 and done == ["bounded", "looked for a display"]


def test_command_line_arguments_run_without_importing_qt(tmp_path: Path) -> None:
    code = (
        "import sys; from proteoscope.gui.launch import main; status = main(['presets']); "
        "assert not any(name.startswith('PySide6') for name in sys.modules); sys.exit(status)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=without_display(), cwd=tmp_path, timeout=60, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert "high-resolution" in answer.stdout


def test_program_without_qt_runs_commands_but_opens_no_window(tmp_path: Path) -> None:
    """The packages of the extra `gui` are not installed."""
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('PySide6', 'shiboken6', 'pyqtgraph', 'tomli_w'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent)\n"
        "import importlib.util, proteoscope.gui.launch as launch\n"
        "launch.find_spec = lambda name: None\n"
        "sys.exit(launch.main(sys.argv[1:]))"
    )

    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=without_display(), cwd=tmp_path, timeout=60, check=False)

    protein = tmp_path / "protein.fasta"
    protein.write_text(">one\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVK\n")
    assert (searched := program("align", str(protein), str(protein), "--out", str(tmp_path / "project"))).returncode == 0, searched.stderr
    assert program("--version").returncode == 0
    assert (window := program()).returncode == 2
    assert "pip install -e '.[gui]'" in window.stderr and "proteoscope --help" in window.stderr and window.stderr.count("\n") == 1


def test_folder_that_is_not_a_project_does_not_open_the_window(tmp_path: Path) -> None:
    answer = run([str(tmp_path)], without_display(), tmp_path)
    assert answer.returncode == 2
    assert "invalid choice" in answer.stderr


@pytest.mark.parametrize("missing", ["libEGL.so.1: cannot open shared object file"])
def test_missing_qt_libraries_are_reported_with_the_remedy(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name == "PySide6.QtWidgets":
                raise ImportError(missing)

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delitem(sys.modules, "PySide6.QtWidgets", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken, *sys.meta_path])
    reason = launch.no_window_reason()
    assert missing in reason and "apt install" in reason


def test_program_opens_and_closes_the_window(display: None, tmp_path: Path) -> None:
    # A timer in the program's own loop closes the window, as a person would a moment later.
    code = (
        "import sys; from PySide6.QtCore import QTimer; import proteoscope.gui.application as a; real = a.MainWindow.show\n"
        "def show(self):\n    real(self); QTimer.singleShot(300, self.close)\n"
        "a.MainWindow.show = show\n"
        "from proteoscope.gui.launch import main; sys.exit(main([]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(_REPOSITORY), "XDG_CONFIG_HOME": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert (tmp_path / "proteoscope" / "settings.json").exists()


def test_installed_pyside_version_emits_signals_without_a_crash(display: None) -> None:
    # Version 6.12.0 drops a reference of True at each emit, which ends Python 3.11 after some hundreds of them.
    code = (
        "from PySide6.QtCore import QObject, Signal\nclass Sender(QObject):\n    sent = Signal()\n"
        "sender = Sender()\nfor _ in range(20_000): sender.sent.emit()"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
