"""Results of every kind whose tables a stranger has spoilt are exported, shown, or refused in one line."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.fuzz.result_tables import EXPORTS, KINDS, WINDOW

REPOSITORY = Path(__file__).resolve().parents[2]


def spoilt_and_used(n, *options):
    """Projects of each kind that were refused something, by what was done with them."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.result_tables", str(n), *options],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    told = [line.partition(": ") for line in done.stdout.splitlines() if line.startswith((f"{EXPORTS}: ", f"{WINDOW}: "))]
    return {way: [int(part.split()[1]) for part in of_kinds.split("; ")] for way, _, of_kinds in told}


def assert_some_are_refused(refused, n):
    assert len(refused) == len(KINDS) and 0 < sum(refused) < len(KINDS) * n, "some are beyond use, some are not"


def has_qt():
    """Whether Qt's libraries are there."""
    try:
        import_module("PySide6.QtWidgets")
    except ImportError:
        return False
    return True


def test_spoilt_results_of_every_kind_give_results_or_clear_errors():
    # In one process, which makes and spoils them once for both.
    ways = (EXPORTS, WINDOW) if has_qt() else (EXPORTS,)
    refused = spoilt_and_used(2, *(["--both"] if WINDOW in ways else []))
    assert tuple(refused) == ways
    for of_kinds in refused.values():
        assert_some_are_refused(of_kinds, 2)


@pytest.mark.long
@pytest.mark.parametrize(("options", "way", "n"), [((), EXPORTS, 40), (("--window",), WINDOW, 12)])
def test_many_spoilt_results_of_every_kind_give_results_or_clear_errors(options, way, n):
    if options:
        pytest.importorskip("PySide6.QtWidgets", reason="Qt's libraries are not there", exc_type=ImportError)
    assert_some_are_refused(spoilt_and_used(n, *options)[way], n)
