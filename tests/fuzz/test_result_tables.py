"""Corrupt tables of results of every kind are exported, shown, or rejected with an error of one line."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.fuzz.result_tables import EXPORTS, KINDS, WINDOW

REPOSITORY = Path(__file__).resolve().parents[2]


def use_corrupt_results(n, *options):
    """Return the number of projects of each kind that were rejected, for exports and the window."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.result_tables", str(n), *options],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    lines = [line.partition(": ") for line in done.stdout.splitlines() if line.startswith((f"{EXPORTS}: ", f"{WINDOW}: "))]
    return {way: [int(part.split()[1]) for part in of_kinds.split("; ")] for way, _, of_kinds in lines}


def assert_some_are_rejected(rejected, n):
    assert len(rejected) == len(KINDS) and 0 < sum(rejected) < len(KINDS) * n, "some are unusable, some are not"


def has_qt():
    """Return True if Qt's libraries are installed."""
    try:
        import_module("PySide6.QtWidgets")
    except ImportError:
        return False
    return True


def test_corrupt_result_tables_give_results_or_clear_errors():
    # A single process makes the corrupt results for both.
    ways = (EXPORTS, WINDOW) if has_qt() else (EXPORTS,)
    rejected = use_corrupt_results(2, *(["--both"] if WINDOW in ways else []))
    assert tuple(rejected) == ways
    for of_kinds in rejected.values():
        assert_some_are_rejected(of_kinds, 2)


@pytest.mark.long
@pytest.mark.parametrize(("options", "way", "n"), [((), EXPORTS, 40), (("--window",), WINDOW, 12)])
def test_many_corrupt_result_tables_give_results_or_clear_errors(options, way, n):
    if options:
        pytest.importorskip("PySide6.QtWidgets", reason="Qt's libraries are not installed", exc_type=ImportError)
    assert_some_are_rejected(use_corrupt_results(n, *options)[way], n)
