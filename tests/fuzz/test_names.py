"""Planted names are read as text, written so that other programs read them as text, and shown as text (all of them with --all)."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.fuzz.named_inputs import INPUTS, LONE_SURROGATE, Outcome, check_name
from tests.fuzz.names import KINDS, NAMES, problems

REPOSITORY = Path(__file__).resolve().parents[2]
UNPRINTABLE = [name for name in NAMES if (name.isascii() and "\x1b" in name) or "\u2028" in name]


@pytest.fixture(scope="module", params=[3, pytest.param(1, marks=pytest.mark.long)])
def some_names(request: pytest.FixtureRequest) -> list[str]:
    return [*dict.fromkeys([*UNPRINTABLE, *NAMES[:: request.param], LONE_SURROGATE])]


@pytest.mark.parametrize("format", INPUTS)
def test_hostile_names_in_files_are_read_or_rejected(format: str, some_names: list[str], tmp_path: Path) -> None:
    outcomes = {name: check_name(format, tmp_path, name) for name in some_names}
    as_they_are = [name for name, outcome in outcomes.items() if name in outcome.names]
    assert len(as_they_are) >= len(some_names) // 2
    # No other name is read as one of these.
    read = [text for outcome in outcomes.values() for text in outcome.names]
    assert all(
        read.count(name) <= 1 + sum(some_name.startswith(name) for some_name in some_names if some_name != name) for name in as_they_are
    )
    escaped = [outcomes[name] for name in UNPRINTABLE]
    assert any(outcome.has_warned for outcome in escaped) or all(map(_is_refused_or_shorter, escaped))


def _is_refused_or_shorter(outcome: Outcome) -> bool:
    """True if a file with control characters was refused, or its name ended at them."""
    return bool(outcome.refusal) or outcome.names == ["a"]


def planted(*options: str) -> list[dict]:
    command = [sys.executable, "-m", "tests.fuzz.names", *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [outcome["failures"] for outcome in outcomes if outcome["failures"]] == [], done.stderr[-2000:]
    assert done.returncode == 0, done.stderr[-3000:]
    return outcomes


def has_qt() -> bool:
    try:
        import_module("PySide6.QtWidgets")
    except ImportError:
        return False
    return True


def test_hostile_names_are_written_and_shown_as_text() -> None:
    (outcome,) = planted("--kinds", "import", "--share", "0.1", *(["--both"] if has_qt() else []))
    assert outcome["places"] > 1
    assert outcome["written"] > 4


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_all_hostile_names_are_written_and_shown_as_text(kind: str) -> None:
    (outcome,) = planted("--kinds", kind, *(["--both"] if has_qt() else []))
    assert outcome["written"] > 0


BAD_FILES = {
    "a.tsv": "a\tb\nc\n",
    "b.tsv": "a\x1b\n",
    "c.mzid": "<a b='<'/>",
    "d.html": "<html><body><p>x<img src=x></p></body></html>",
    "e.html": "<html><body><p onclick='x'>x</p></body></html>",
    "f.html": "<html><body><a href='http://x'>x</a></body></html>",
    "g.sam": "@HD\tVN:1.6\n@SQ\tSN:a\tLN:9\n@CO\tx\n",
    "h.sam": "@HD\tVN:1.6\na b\t4\t*\t0\t0\t*\t*\t0\t0\tA\t*\n",
    "i.gff3": "##gff-version 3\na b\tx\tCDS\t1\t3\t.\t+\t0\tID=1\n",
    "j.gff3": "##gff-version 3\na\tx\tCDS\t1\t3\t.\t+\t0\tID=1;b=c=d\n",
    "k.pin": "SpecId\tLabel\tScanNr\nx\n",
    "l.mgf": "BEGIN IONS\nTITLE=a\nb\nEND IONS\n",
    "m.msp": "Name: A/2\nx\n",
    "n.mzspeclib.txt": "<mzSpecLib>\nx\n",
    "o.paf": "a\t1\n",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_check_of_written_files_finds_invalid_files(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(BAD_FILES[name])
    assert problems(tmp_path / name)
