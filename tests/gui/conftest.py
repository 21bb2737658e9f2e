"""Fixtures with a real window on its own display, and the checks that every window test must pass.

A test fails on a Qt warning (pytest-qt, see pyproject.toml), and if it leaves a thread, a top-level widget or a running timer.
"""

from __future__ import annotations

import gc
import gzip
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from itertools import chain, count, repeat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pytestqt.qtbot import QtBot

from proteoscope.kernels.threads import PREFIX

if TYPE_CHECKING:
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from proteoscope.gui.theme import Theme
    from proteoscope.gui.window import MainWindow
    from tests.gui.x_events import Hand

SAMPLES = Path(__file__).resolve().parents[2] / "resources" / "samples"
_SECONDS_TO_END = 30.0
_PATIENCE_MS = 60_000
"""Maximum waiting time of a test. Waiting ends as soon as the condition holds, so a busy machine causes no failure."""

for _wait in (QtBot.waitUntil, QtBot.waitSignal, QtBot.waitSignals, QtBot.waitActive, QtBot.waitExposed):
    _wait.__kwdefaults__["timeout"] = _PATIENCE_MS

_wait_until = QtBot.waitUntil


def _wait_until_soon(qtbot: QtBot, callback: Callable[[], bool | None], *, timeout: int = _PATIENCE_MS) -> None:
    """Wait like pytest-qt, which checks every ten milliseconds, but check every millisecond at first, since most conditions hold soon."""
    pauses, attributes = chain(repeat(1, 20), repeat(10)), vars(qtbot)
    outer = attributes.get("wait")  # the condition itself may wait
    attributes["wait"] = lambda _: QtBot.wait(qtbot, next(pauses))
    try:
        _wait_until(qtbot, callback, timeout=timeout)
    finally:
        del attributes["wait"]
        if outer is not None:
            attributes["wait"] = outer


QtBot.waitUntil = QtBot.wait_until = _wait_until_soon

_servers: list[subprocess.Popen[bytes]] = []


@pytest.fixture(scope="session")
def display(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Existing or virtual display; each process of pytest-xdist has its own, since focus and clipboard belong to a display."""
    pytest.importorskip("PySide6.QtWidgets", reason="Qt's libraries are not installed", exc_type=ImportError)
    # File dialogs remember their folders in the user's own configuration.
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("configuration"))
    is_given = bool(os.environ.get("DISPLAY")) and "PYTEST_XDIST_WORKER" not in os.environ
    if is_given or os.environ.get("QT_QPA_PLATFORM") == "offscreen" or not sys.platform.startswith("linux"):
        yield
        return
    if shutil.which("Xvfb") is None:
        pytest.skip("there is no display and no Xvfb")
    reading, writing = os.pipe()
    # The display server stops after its last client, and the application must not lose its display before the process ends.
    arguments = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "2600x1800x24", "-nolisten", "tcp", "-terminate"]
    server = subprocess.Popen(arguments, pass_fds=[writing], stderr=subprocess.DEVNULL)
    _servers.append(server)
    os.close(writing)
    with os.fdopen(reading) as answer:
        os.environ["DISPLAY"] = ":" + answer.readline().strip()
    yield
    from PySide6.QtWidgets import QApplication

    if QApplication.instance() is None:
        server.terminate()
        server.wait()
    else:
        server.returncode = 0  # It ends after this process, which therefore cannot read its exit status.


@pytest.fixture(scope="session")
def qapp_args(display: None) -> list[str]:
    """Make pytest-qt create its application only after a display is available."""
    return ["proteoscope"]


@pytest.fixture(scope="session")
def shared_theme(qapp: QApplication) -> Theme:
    from proteoscope.gui.theme import Theme

    return Theme(qapp)


@pytest.fixture
def theme(shared_theme: Theme) -> Iterator[Theme]:
    """Theme of the application, light unless a test changes it."""
    shared_theme.choose("light")
    yield shared_theme
    shared_theme.choose("light")


_MODULES_AT_ONCE = 12
"""Number of modules after which older objects are checked for garbage, which takes longer than most tests."""


def _timers_in_sight() -> list[QTimer]:
    """Return the timers known to Python's garbage collector. Types are checked first, which is fast, since most tests leave none."""
    from PySide6.QtCore import QTimer

    objects = gc.get_objects()
    # `isinstance` is not used: on a weak proxy it would need the class of an object that may no longer exist.
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, QTimer)}
    return [timer for timer in objects if type(timer) in kinds] if kinds else []


class OldTimers:
    """Timers of earlier tests that Python's collector no longer lists, and that a later test may leave running."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[QTimer]] = []
        self._n_modules = 0

    def active(self) -> list[QTimer]:
        """Return all running timers, old and new."""
        from shiboken6 import isValid

        timers = _timers_in_sight()
        timers += [timer for reference in self._known if (timer := reference()) is not None]
        return [timer for timer in timers if isValid(timer) and timer.isActive()]

    def freeze(self) -> None:
        """Exclude the present objects from garbage collection."""
        self._known = [reference for reference in self._known if reference() is not None]
        self._known += [weakref.ref(reference) for reference in _timers_in_sight()]
        gc.freeze()

    def end_module(self) -> None:
        """Include all objects in garbage collection again if a collection is due."""
        self._n_modules += 1
        if self._n_modules % _MODULES_AT_ONCE == 0:
            gc.unfreeze()
            gc.collect()
            self._known.clear()


@pytest.fixture(scope="session")
def old_timers(qapp: QApplication) -> Iterator[OldTimers]:
    yield OldTimers()
    gc.unfreeze()
    gc.collect()


@pytest.fixture(scope="module", autouse=True)
def old_objects(old_timers: OldTimers) -> Iterator[None]:
    """Exclude older objects from garbage collection during a test, since it would take most of the time of a short test.

    Garbage among them is collected after some modules."""
    old_timers.freeze()
    yield
    old_timers.end_module()


@pytest.fixture(autouse=True)
def no_leaks(qapp: QApplication, old_timers: OldTimers, request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves threads, top-level widgets or running timers. A module whose tests share a window is checked as a whole."""
    yield from check_leaks(qapp, old_timers, request.node.funcargs)


def check_leaks(qapp: QApplication, old_timers: OldTimers, fixtures: dict[str, object]) -> Iterator[None]:
    """Fail if threads, top-level widgets or running timers are left after the `yield`; the values of fixtures are released first."""
    from PySide6.QtCore import QEvent

    def widgets() -> list[str]:
        return [
            f"{type(topLevelWidget).__name__} {topLevelWidget.objectName() or topLevelWidget.windowTitle()!r}"
            for topLevelWidget in qapp.topLevelWidgets()
        ]

    threads, n_widgets, running = set(threading.enumerate()), len(widgets()), old_timers.active()
    yield
    # pytest would retain the windows made by fixtures, and everything that they own.
    fixtures.clear()
    deadline = time.monotonic() + _SECONDS_TO_END
    for n_checks in count():
        qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        qapp.processEvents()
        new_threads = [thread for thread in set(threading.enumerate()) - threads if not thread.name.startswith(PREFIX)]
        leaked_threads = [thread.name for thread in new_threads if thread.is_alive()]
        # Threads of closed windows end soon. Until then, collecting garbage would take most of the time of a short test.
        if leaked_threads and n_checks % 20 != 19:
            time.sleep(0.005)
            continue
        gc.collect()
        leaked_timers = [repr(timer) for timer in old_timers.active() if not any(timer is old for old in running)]
        left = widgets()
        if not leaked_threads and len(left) <= n_widgets and not leaked_timers:
            break
        if time.monotonic() > deadline:
            pytest.fail(f"left over: threads {leaked_threads}, widgets {left}, timers {leaked_timers}")
        time.sleep(0.02)
    del running
    old_timers.freeze()


@pytest.fixture
def make_window(qapp: QApplication, theme: Theme, tmp_path: Path, qtbot: QtBot) -> Iterator[Callable[[], MainWindow]]:
    """Open windows that share one settings file, and close those still open at the end.

    Each window is active when a test gets it: Qt passes shortcuts only to the active window, which a shown window becomes with delay on
    a busy display."""
    from PySide6.QtCore import QEvent
    from shiboken6 import isValid

    from proteoscope.gui.settings import SettingsFile
    from proteoscope.gui.window import MainWindow

    windows: list[MainWindow] = []

    def make() -> MainWindow:
        window = MainWindow(SettingsFile(tmp_path / "settings.json"), theme)
        windows.append(window)
        with qtbot.waitActive(window):
            window.show()
            window.activateWindow()
        return window

    yield make
    for window in windows:
        if not isValid(window):
            continue
        window.queue.cancel_all()
        assert window.queue.wait(30)
        window.close()
        assert window.queue.shutdown(60)
        window.deleteLater()
    windows.clear()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@pytest.fixture(scope="session")
def small_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bovine albumin, the protein of the sample BSA1, and the first 400 other proteins of its database; searches take a seventh."""
    entries = gzip.decompress((SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz").read_bytes()).decode().split("\n>")
    albumin = next(entry for entry in entries if "ALBU_BOVIN" in entry.partition("\n")[0])
    path = tmp_path_factory.mktemp("small-database") / "albumin_and_others.fasta"
    path.write_text("\n>".join([*entries[:400], albumin]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def small_spectra(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 150 spectra of the sample BSA1, first only MS1 spectra, under its name: a form inspects each file that it gets."""
    text = gzip.decompress((SAMPLES / "BSA1.mzML.gz").read_bytes()).decode("latin-1")
    places = [match.start() for match in re.finditer("<spectrum ", text)]
    head = re.sub(r'<spectrumList count="\d+"', '<spectrumList count="150"', text[text.index("<mzML") : places[0]])
    some = head + text[places[800] : places[950]]
    path = tmp_path_factory.mktemp("small-spectra") / "BSA1.mzML.gz"
    path.write_bytes(gzip.compress(f'<?xml version="1.0" encoding="ISO-8859-1"?>\n{some}</spectrumList></run></mzML>'.encode("latin-1")))
    return path


@pytest.fixture(scope="session")
def identified_once(tmp_path_factory: pytest.TempPathFactory, cache_of_tests: Path, small_database: Path) -> Path:
    """Project with an identification of the sample, made as by the demo, against those proteins."""
    from proteoscope.engine.searches import run_search, search_of_kind

    folder, demo = tmp_path_factory.mktemp("identified-once") / "project", search_of_kind("identify").demo
    assert demo is not None
    inputs = {"spectra": [SAMPLES / "BSA1.mzML.gz"], "database": [small_database]}
    run_search("identify", inputs, project=folder, preset=demo.preset, device="cpu", threads=2)
    return folder


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory, cache_of_tests: Path) -> Callable[[str], Path]:
    """Folder of a project with a finished run of a kind, made once for all tests that only read it."""
    from tests.fuzz.result_tables import make

    folder = tmp_path_factory.mktemp("finished")
    made: dict[str, Path] = {}

    def of_kind(kind: str) -> Path:
        if kind not in made:
            made[kind] = make(kind, folder / kind).folder
        return made[kind]

    return of_kind


@pytest.fixture
def window(make_window: Callable[[], MainWindow]) -> MainWindow:
    return make_window()


@pytest.fixture
def hand(window: MainWindow, qtbot: QtBot) -> Iterator[Hand]:
    """Mouse and keyboard through X events; skips the test if X events are unavailable."""
    from tests.gui.x_events import Hand, move_onto_screen

    move_onto_screen(window, qtbot)
    made = Hand(qtbot)
    yield made
    made.close()
