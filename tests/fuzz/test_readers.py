"""Mutated files for each reader (700 with --all) are read or refused in words within bounds; and what is neither is noticed."""

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
def test_a_mutated_file_is_read_or_refused_within_bounds(outcomes: dict[str, dict], n_cases: int, reader: str) -> None:
    outcome = outcomes[reader]
    assert outcome["failures"] == []
    assert outcome["n_read"] + outcome["n_refused"] == n_cases
    # Mutations that all break a file, or none, would try nothing. Binary formats check themselves: few are read that were changed.
    is_binary = reader in ("results-parquet", "libraries-blib", "bcif")
    assert outcome["n_read"] >= (n_cases // 100 if is_binary else -(-n_cases // 50))
    # Records of structures and tracks that cannot be read are left out, and the others are read.
    assert outcome["n_refused"] >= n_cases // (20 if reader in ("pdb", "track") else 5)


_OTHER_NAMES = {"BinaryCIF": "bcif"}


def test_every_registered_format_has_a_sample(tmp_path: Path) -> None:
    found = set()
    for reader in READERS.values():
        for content in beginnings(reader):
            path = tmp_path / "case"
            path.write_bytes(content)
            # Presets, matrices and other texts have no format of the registry.
            with contextlib.suppress(InputError), ByteSource(path) as source:
                found.add(recognise(source).name)
    # Structures and reads are recognised by their readers.
    found |= {
        one.name for one in FORMATS if one.content in ("reads", "structures") and _OTHER_NAMES.get(one.name, one.name.lower()) in READERS
    }
    assert {one.name for one in FORMATS} <= found


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    for reader in READERS:
        assert beginnings(READERS[reader]) == tuple(READERS[reader].files())
        assert case(reader, 5, 17)[0] == case(reader, 5, 17)[0]
    assert len({case("mgf", seed, number)[0] for seed in (1, 2) for number in range(20)}) > 30


BAD_READERS = {
    "raise ValueError('no error of ours')": "no error of ours",
    "raise ProteoscopeError('two\\nlines')": "several lines",
    "warnings.warn('a warning')": "a warning",
    "bytearray(1 << 31)": "MemoryError",
    "while True: pass": "status 24",
    "os.kill(os.getpid(), 11)": "status 11",
}


def test_what_is_no_clear_error_is_noticed_and_the_other_cases_go_on() -> None:
    script = (
        "import os, random, sys, warnings; from pathlib import Path; from proteoscope.engine.errors import ProteoscopeError\n"
        "import tests.fuzz.readers as harness\n"
        "harness.PROCESSOR_SECONDS = 0\n"
        "deed = ''\n"
        "def read(path, chance):\n"
        "    if path.read_bytes() == b'bad': exec(deed)\n"
        "    return 1\n"
        "harness.READERS['toy'] = harness.Reader(lambda: [b'good'], read, harness._LINES, (b'x',))\n"
        "def case(name, seed, number): return (b'bad' if number == 2 else b'good'), random.Random(number)\n"
        "harness.case = case\n"
        "for deed in sys.argv[1:]:\n"
        "    outcome = harness.examine('toy', 5, 1)\n"
        "    print(repr([outcome.n_read, outcome.failures]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *BAD_READERS], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line, (deed, tells) in zip(done.stdout.splitlines(), BAD_READERS.items(), strict=True):
        n_read, ((number, told),) = ast.literal_eval(line)
        assert (n_read, number) == (4, 2), deed
        assert tells in told, deed
