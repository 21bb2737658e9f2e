"""Mutated files for each reader (700 with --all) are read or rejected with an error within bounds; other outcomes are noticed."""

from __future__ import annotations

import ast
import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.recognition import recognise
from proteoscope.engine.formats.registry import FORMATS
from proteoscope.engine.formats.sources import ByteSource

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are made and limited as on Linux")
if sys.platform.startswith("linux"):
    from tests.fuzz.readers import READERS, REPOSITORY, beginnings, case
else:
    READERS, REPOSITORY, beginnings, case = {}, Path(), None, None


@pytest.fixture(scope="module", params=[21, pytest.param(700, marks=pytest.mark.long)])
def n_cases(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def outcomes(n_cases: int) -> dict[str, dict]:
    command = [sys.executable, "-m", "tests.fuzz.readers", "--cases", str(n_cases)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return {line["reader"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("reader", READERS)
def test_mutated_files_are_read_or_rejected_within_bounds(outcomes: dict[str, dict], n_cases: int, reader: str) -> None:
    outcome = outcomes[reader]
    assert outcome["failures"] == []
    assert outcome["n_read"] + outcome["n_refused"] == n_cases
    # Mutations that break all files, or none, would test nothing. Binary formats have checksums: few changed files are read.
    is_binary = reader in ("results-parquet", "libraries-blib", "bcif")
    assert outcome["n_read"] >= (n_cases // 100 if is_binary else -(-n_cases // 50))
    # Readers of structures and tracks omit invalid records and read the others.
    assert outcome["n_refused"] >= n_cases // (20 if reader in ("pdb", "track") else 5)


_OTHER_NAMES = {"BinaryCIF": "bcif"}


def test_every_registered_format_has_a_file_to_mutate(tmp_path: Path) -> None:
    formats = set()
    for reader in READERS.values():
        for content in beginnings(reader):
            path = tmp_path / "case"
            path.write_bytes(content)
            # Presets, matrices and other texts have no format of the registry.
            with contextlib.suppress(InputError), ByteSource(path) as source:
                formats.add(recognise(source).name)
    # Structures and reads are recognised by their readers.
    formats |= {
        entry.name
        for entry in FORMATS
        if entry.content in ("reads", "structures") and _OTHER_NAMES.get(entry.name, entry.name.lower()) in READERS
    }
    assert {entry.name for entry in FORMATS} <= formats


def test_mutated_file_depends_only_on_seed_and_number() -> None:
    for reader in READERS:
        assert beginnings(READERS[reader]) == tuple(READERS[reader].files())
        assert case(reader, 5, 17)[0] == case(reader, 5, 17)[0]
    assert len({case("mgf", seed, number)[0] for seed in (1, 2) for number in range(20)}) > 30


BAD_READERS = {
    "raise ValueError('a foreign error')": "a foreign error",
    "raise ProteoscopeError('two\\nlines')": "several lines",
    "warnings.warn('a warning')": "a warning",
    "bytearray(1 << 31)": "MemoryError",
    "while True: pass": "status 24",
    "os.kill(os.getpid(), 11)": "status 11",
}


def test_check_of_readers_reports_bad_readers_and_continues() -> None:
    script = (
        "import os, random, sys, warnings; from pathlib import Path; from proteoscope.engine.errors import ProteoscopeError\n"
        "import tests.fuzz.readers as harness\n"
        "harness.PROCESSOR_SECONDS = 0\n"
        "action = ''\n"
        "def read(path, chance):\n"
        "    if path.read_bytes() == b'bad': exec(action)\n"
        "    return 1\n"
        "harness.READERS['toy'] = harness.Reader(lambda: [b'good'], read, harness._LINES, (b'x',))\n"
        "def case(name, seed, number): return (b'bad' if number == 2 else b'good'), random.Random(number)\n"
        "harness.case = case\n"
        "for action in sys.argv[1:]:\n"
        "    outcome = harness.examine('toy', 5, 1)\n"
        "    print(repr([outcome.n_read, outcome.failures]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *BAD_READERS], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line, (action, expected) in zip(done.stdout.splitlines(), BAD_READERS.items(), strict=True):
        n_read, ((number, message),) = ast.literal_eval(line)
        assert (n_read, number) == (4, 2), action
        assert expected in message, action
