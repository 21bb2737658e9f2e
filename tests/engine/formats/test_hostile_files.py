"""Files made to exhaust time or memory, and impossible spectra, are reported in one line or read, within limits."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("processes are made and limited as on Linux", allow_module_level=True)

from tests.engine.formats.hostile_files import CASES, REPOSITORY


@pytest.fixture(scope="module")
def lines() -> dict[str, dict[str, str]]:
    done = subprocess.run([sys.executable, "-m", "tests.engine.formats.hostile_files"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", CASES)
def test_hostile_files_are_read_or_rejected_within_limits(lines: dict[str, dict[str, str]], name: str) -> None:
    case, line = CASES[name], lines[name]
    assert re.search(case.expected, line["message"]), line["message"]
    if not line["message"].startswith("read "):
        assert line["message"].startswith(line["path"])
        assert line["message"].endswith((".", "?"))
        assert len(line["message"]) < 1000
    if case.skipped is not None:
        assert re.search(case.skipped, line["skipping_message"]), line["skipping_message"]
