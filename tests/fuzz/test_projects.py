"""A project whose files were changed at random is used as far as possible, or rejected in one line."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_randomly_changed_projects_give_results_or_clear_errors():
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.projects", "100"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    refused = int(done.stdout.splitlines()[-1].split()[2])
    assert 25 < refused < 100, "some are beyond use, some are not"
