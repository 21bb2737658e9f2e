"""Results of every kind whose tables a stranger has spoilt are exported, shown, or refused in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.result_tables import KINDS

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("options", "n"),
    [((), 4), (("--window",), 2), pytest.param((), 40, marks=pytest.mark.long), pytest.param(("--window",), 12, marks=pytest.mark.long)],
)
def test_spoilt_results_of_every_kind_give_results_or_clear_errors(options, n):
    if options:
        pytest.importorskip("PySide6.QtWidgets", reason="Qt's libraries are not there", exc_type=ImportError)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.result_tables", str(n), *options],
        cwd=REPOSITORY, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    refused = [int(part.split()[1]) for part in done.stdout.splitlines()[-1].split("; ")]
    assert len(refused) == len(KINDS) and 0 < sum(refused) < len(KINDS) * n, "some are beyond use, some are not"
