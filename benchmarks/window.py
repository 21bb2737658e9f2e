"""Responsiveness of the window: time until it can be used, longest stalls, and memory after opening fifty results.

    xvfb-run -a python -m benchmarks.window [start memory stalls] [--rounds 50] [--where-above 40] [--unprepared]

One JSON line per figure. On a busy machine, CPU seconds are more reliable than wall seconds.

start
    a separate process, three times, from its first line to the window on the screen with all events processed: CPU and wall seconds, and
    number of imported modules. Modules are compiled by another start before these, as they are when the program is installed.
memory
    megabytes in the idle window (`all`: with pages shared with other programs), and while results of every kind are opened in turn, with a
    row selected in each table and each page shown: after every tenth opening, and after the eleventh, when each of the eleven kinds has
    been opened once; also the numbers of Python and Qt objects. As in the program, pages are created before, in idle moments
    (`--unprepared`: with the first result of their kind). `own` is the memory that the process has written (anonymous pages of
    ``/proc/self/smaps_rollup``), by which growth is measured. `private` also has pages of library files that no other process uses: tens of
    megabytes that are added when functions are first used, and disappear when another program loads the same library. The last line has the
    growth since the tenth and since the eleventh opening.
stalls
    the longest interval between two events of a timer of 2 ms, in each step of a tour through every form and every result: CPU seconds of
    the window's thread (`own`), and wall time, which includes other threads and programs (`clock`). For stalls longer than `--where-above`
    (ms), the position of the window's thread in the code is written to stderr. With `--unprepared` the tour begins immediately, before
    pages are created in idle moments.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proteoscope.engine.execution.heap import limit_retained_memory

KINDS = (
    "identify",
    "align",
    "structures",
    "cluster",
    "explain",
    "reads",
    "modified",
    "import",
    "library",
    "evidence",
    "quantify",
)
_COMPARED = "compared"
"""A project with two identifications."""
_BEAT_MS = 2
_SAMPLE_SECONDS = 0.004
_START = """
import time
began = time.perf_counter()
import json, sys
from proteoscope.engine.execution.heap import limit_retained_memory
from proteoscope.engine.execution.libraries import lighten_libraries
lighten_libraries()
limit_retained_memory()
from proteoscope.gui.launch import no_window_reason
assert not no_window_reason()
from pathlib import Path
from PySide6.QtWidgets import QApplication
from proteoscope.gui.settings import SettingsFile
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
application = QApplication(["proteoscope"])
window = MainWindow(SettingsFile(Path(sys.argv[1]) / "settings.json"), Theme(application))
window.show()
for _ in range(5):
    application.processEvents()
print(json.dumps({"figure": "start", "processor": round(time.process_time(), 3), "clock": round(time.perf_counter() - began, 3),
                  "modules": len(sys.modules)}), flush=True)
window.close()
"""
_MAKE = """
import sys
from pathlib import Path
from tests.engine.views.compared_projects import project_with_runs
from tests.fuzz.result_tables import make
for kind in sys.argv[2:]:
    make(kind, Path(sys.argv[1]) / kind) if kind != "compared" else project_with_runs(Path(sys.argv[1]) / kind, n_runs=2)
"""


def emit(**figures: Any) -> None:
    """Print a figure as a JSON line immediately."""
    print(json.dumps(figures), flush=True)


class StallMeter:
    """Timer of the window's thread that records the longest time between two events; another thread records what delayed the window.

    Parameters
    ----------
    where_above : float
        Seconds; the position in the code is recorded during longer stalls.
    """

    def __init__(self, where_above: float) -> None:
        from PySide6.QtCore import Qt, QTimer

        self.computed = self.clock = 0.0
        self.places: Counter[str] = Counter()
        self._where_above = where_above
        self._thread = threading.get_ident()
        self._last = (time.thread_time(), time.perf_counter())
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(_BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._timer.start()
        self._is_over = False
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def reset(self) -> None:
        """Reset the meter."""
        self.computed = self.clock = 0.0
        self.places.clear()
        self._last = (time.thread_time(), time.perf_counter())

    def stop(self) -> None:
        """Stop the timer and the thread."""
        self._timer.stop()
        self._is_over = True
        self._sampler.join()

    def _beat(self) -> None:
        now = (time.thread_time(), time.perf_counter())
        computed, clock = now[0] - self._last[0], now[1] - self._last[1]
        self.computed, self.clock = max(self.computed, computed), max(self.clock, clock - _BEAT_MS / 1000)
        self._last = (time.thread_time(), time.perf_counter())

    def _sample(self) -> None:
        while not self._is_over:
            time.sleep(_SAMPLE_SECONDS)
            if time.perf_counter() - self._last[1] > self._where_above:
                frame = sys._current_frames().get(self._thread)
                stack = traceback.extract_stack(frame) if frame is not None else []
                ours = [
                    f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in stack if "site-packages" not in frame.filename
                ]
                self.places[" < ".join(reversed(ours[-7:]))] += 1


class Journey:
    """A window with a project of each kind of search, driven in its own process."""

    def __init__(self, folder: Path, where_above: float) -> None:
        from PySide6.QtWidgets import QApplication

        from proteoscope.gui.settings import SettingsFile
        from proteoscope.gui.theme import Theme
        from proteoscope.gui.window import MainWindow

        self.folder = folder
        self.application = QApplication(["proteoscope"])
        self.meter = StallMeter(where_above)
        self.window = MainWindow(SettingsFile(Path(os.environ["XDG_CONFIG_HOME"]) / "settings.json"), Theme(self.application))
        self.window.resize(1280, 800)
        self.window.show()
        self.wait(0.5)

    def wait(self, seconds: float = 0.2, until: Callable[[], bool] = lambda: True) -> None:
        """Process events for some seconds, and then until a condition holds."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or not until():
            self.application.processEvents()
            time.sleep(0.0005)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Run a step of the journey and print its longest stall."""
        self.wait(0.3)
        self.meter.reset()
        yield
        self.wait(0.3)
        computed, clock = round(1000 * self.meter.computed), round(1000 * self.meter.clock)
        emit(figure="stall", step=name, own_ms=computed, clock_ms=clock)
        if self.meter.places:
            print(f"{name}: own {computed} ms, clock {clock} ms", file=sys.stderr, flush=True)
            for place, n in self.meter.places.most_common(6):
                print(f"    {n:4d}  {place}", file=sys.stderr)

    def prepare(self) -> None:
        """Create all pages, as the program itself does in idle moments."""
        from proteoscope.gui.preloading import Preparation

        searches = self.window.searches.values()
        preparation = Preparation(searches, lambda: True, self.window)
        preparation.stepped.connect(gc.freeze)
        preparation.begin()
        self.wait(1.0, lambda: all(search.made_results is not None for search in searches))

    def open(self, kind: str) -> None:
        """Open the results of a kind and wait until all of them are drawn."""
        self.window.open_project(self.folder / kind)
        self.wait(0.1, lambda: not self.window.results.is_busy)
        self.wait(0.1, lambda: not self.window.results.is_busy)

    def choose_rows(self, row: int) -> None:
        """Select a row in each table of the shown results, and wait until its details are drawn."""
        for panel in self.window.results.panels.values():
            if panel.model.rowCount() > row:
                panel.view.choose(row)
                self.wait(0.05, lambda: not self.window.results.is_busy)

    def show_tabs(self) -> None:
        """Show each page of the current results."""
        from PySide6.QtWidgets import QTabWidget

        for tabs in self.window.results.findChildren(QTabWidget):
            for index in range(tabs.count()):
                tabs.setCurrentIndex(index)
                self.wait(0.05, lambda: not self.window.results.is_busy)

    def close(self) -> None:
        """Stop the meter and close the window."""
        self.meter.stop()
        self.window.close()


def measure_start(folder: Path) -> None:
    """Print how soon the window can be used."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(os.environ["XDG_CONFIG_HOME"]) / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for n in range(4):
        done = subprocess.run([sys.executable, "-c", _START, str(folder)], env=environment, capture_output=True, text=True, check=True)
        if n > 0:
            print(done.stdout.strip(), flush=True)


def resident(*kinds: str) -> float:
    """Return the megabytes of this process in pages of the given kinds, which the kernel names."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    kilobytes = [int(line.split()[1]) for line in lines if line.split(":")[0] in kinds]
    return round(sum(kilobytes) / 1024, 1)


def qt_objects(window: Any) -> int:
    """Return the number of objects that a window owns, directly or indirectly."""
    from PySide6.QtCore import QObject

    return len(window.findChildren(QObject))


def measure_memory(folder: Path, rounds: int, is_prepared: bool) -> None:
    """Print the memory after each tenth of `rounds` results opened and closed, and once all kinds were opened."""
    journey = Journey(folder, 1e9)
    if is_prepared:
        journey.prepare()
    emit(figure="memory idle", own=resident("Anonymous"), private=resident("Private_Dirty", "Private_Clean"), all=resident("Rss"))
    private: dict[int, float] = {}
    for n in range(1, rounds + 1):
        journey.open(KINDS[(n - 1) % len(KINDS)])
        journey.choose_rows(1)
        journey.choose_rows(0)
        journey.show_tabs()
        if n % 10 == 0 or n == len(KINDS):
            journey.window.results.clear()
            journey.wait(0.5)
            gc.collect()
            objects = Counter(type(tracked).__name__ for tracked in gc.get_objects())
            private[n] = resident("Anonymous")
            emit(
                figure="memory",
                results=n,
                kinds=min(n, len(KINDS)),
                own=private[n],
                private=resident("Private_Dirty", "Private_Clean"),
                python_objects=sum(objects.values()),
                qt_objects=qt_objects(journey.window),
                threads=threading.active_count(),
                most=dict(objects.most_common(6)),
            )
    if private:
        last = max(private)
        growth = {f"after_{n}": f"{private[last] / private[n] - 1:+.1%}" for n in (10, len(KINDS)) if n in private}
        emit(figure="memory growth", results=last, is_prepared=is_prepared, **growth)
    journey.close()


def measure_stalls(folder: Path, where_above: float, is_prepared: bool) -> None:
    """Print the longest stall of each step of a journey."""
    from PySide6.QtWidgets import QTabWidget

    journey = Journey(folder, where_above)
    window = journey.window
    if is_prepared:
        with journey.step("pages created in idle time"):
            journey.prepare()
    for kind in window.searches:
        with journey.step(f"form of {kind}, first time"):
            window.new_search(kind)
    for kind in KINDS:
        with journey.step(f"results of {kind}, first time"):
            journey.open(kind)
        with journey.step(f"rows of {kind}, first time"):
            journey.choose_rows(1)
        for tabs in window.results.findChildren(QTabWidget):
            for index in range(tabs.count()):
                with journey.step(f"tab {tabs.tabText(index)} of {kind}"):
                    tabs.setCurrentIndex(index)
                    journey.wait(0.1, lambda: not window.results.is_busy)
    journey.open("structures")
    for name in ("first structures in 3D", "3D taken away", "3D again"):
        with journey.step(name):
            window.results.structures_action.toggle()
            journey.wait(0.3, lambda: not window.results.is_busy)
    for kind in KINDS:
        with journey.step(f"results of {kind}, again"):
            journey.open(kind)
    journey.open(_COMPARED)
    runs = window.project_pane.records
    for name in ("page of a run, first time", "page of a run, again"):
        with journey.step(name):
            window.run_actions.show_page(runs[0])
            journey.wait(0.1, lambda: not window.run_actions.is_busy)
    for name in ("comparison, first time", "comparison, again"):
        with journey.step(name):
            window.compare_runs(list(runs[:2]))
            journey.wait(0.1, lambda: window.comparisons.view is not None and not window.comparisons.view.is_busy)
    for name, act in (("show_devices", window.show_devices), ("new_database", window.dialogs.new_database)):
        with journey.step(name):
            act()
    with journey.step("the look"):
        window.set_theme("dark")
        journey.wait(0.1, lambda: not window.theme.is_changing)
    with journey.step("wider"):
        window.resize(1600, 1000)
    journey.close()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", default=["start", "memory", "stalls"])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--where-above", type=float, default=1e6, help="ms")
    parser.add_argument("--unprepared", action="store_true", help="go on before the pages are made")
    parser.add_argument("--projects", type=Path, help="where the projects lie, or are put; else a folder that goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-window-") as name:
        folder = options.projects or Path(name)
        os.environ["XDG_CONFIG_HOME"] = name
        missing = [kind for kind in (*KINDS, _COMPARED) if not (folder / kind).exists()]
        if missing and set(options.figures) - {"start"}:
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-c", _MAKE, str(folder), *missing], check=True)
        if "start" in options.figures:
            measure_start(folder)
        # Each runs in its own process, since the first would load modules for the second.
        measures = {
            "memory": lambda: measure_memory(folder, options.rounds, not options.unprepared),
            "stalls": lambda: measure_stalls(folder, options.where_above / 1000, not options.unprepared),
        }
        for figure in ("memory", "stalls"):
            if figure in options.figures:
                child = os.fork()
                if child == 0:
                    limit_retained_memory()
                    measures[figure]()
                    sys.stdout.flush()
                    os._exit(0)
                os.waitpid(child, 0)


if __name__ == "__main__":
    main()
