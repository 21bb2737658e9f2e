"""Tests that on every page and dialog, in the usual window sizes, no text is cut and no controls overlap."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from pytestqt.qtbot import QtBot

from proteoscope.gui.theme import Theme, ThemeChoice
from proteoscope.gui.window import MainWindow
from tests.gui.every_page import EveryPage
from tests.gui.layout_problems import lasting_problems

_SMALL, _USUAL = (1024, 700), (1280, 800)
_WALK = "test_no_page_tab_or_dialog_cuts_off_its_contents"
_DENSE = "identify", "modified", "evidence"
"""Kinds of results with the most panes, tabs and fields."""


@pytest.mark.parametrize(
    ("choice", "sizes", "is_whole"),
    [
        ("light", (_USUAL,), True),
        ("contrast", (_SMALL,), False),
        pytest.param("light", (_SMALL,), True, marks=pytest.mark.long),
        pytest.param("dark", (_USUAL,), True, marks=pytest.mark.long),
        pytest.param("contrast", (_SMALL, _USUAL), True, marks=pytest.mark.long),
    ],
    ids=["light-1280", "contrast-1024-some", "light-1024", "dark-1280", "contrast"],
)
def test_no_page_tab_or_dialog_cuts_off_its_contents(
    choice: ThemeChoice,
    sizes: tuple[tuple[int, int], ...],
    is_whole: bool,
    theme: Theme,
    make_window: Callable[[], MainWindow],
    finished_run: Callable[[str], Path],
    qtbot: QtBot,
) -> None:
    """In high contrast, more widgets have frames."""
    theme.choose(choice)
    window = make_window()
    window.resize(*sizes[0])

    def settle(is_busy: Callable[[], bool]) -> None:
        qtbot.wait(5)
        qtbot.waitUntil(lambda: not is_busy())

    pause = partial(qtbot.wait, 20)
    problems, names = [], []
    pages = EveryPage(window, finished_run, settle)
    for page in pages if is_whole else chain(pages.form("identify"), *map(pages.results, _DENSE)):
        names.append(page.name)
        for size in sizes if page.widget is window else ():
            window.resize(*size)
            qtbot.wait(1)
            assert (window.width(), window.height()) == size, page.name
            problems += [f"{page.name}, {size[0]} px: {problem}" for problem in lasting_problems(window, pause)]
        if page.widget is not window:
            problems += [f"{page.name}: {problem}" for problem in lasting_problems(page.widget, pause)]
    assert problems == []
    assert len(names) == len(set(names)) > (100 if is_whole else 20)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="needs a large virtual display")
def test_no_page_cuts_off_its_contents_on_a_screen_with_scale_2() -> None:
    """Qt reads the scale when the program starts."""
    environment = {**os.environ, "QT_SCALE_FACTOR": "2", "PYTEST_XDIST_WORKER": "scaled"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"{__file__}::{_WALK}[light-1280]"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout[-20_000:]
