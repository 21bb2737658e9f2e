"""Speeds of earlier searches, in the user's cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proteoscope.engine.execution.speeds import Speeds


def test_speeds_are_kept_for_the_next_search_beside_others(own_cache: Path) -> None:
    path = own_cache / "speeds.json"
    Speeds("sequences", 3).remember({"cpu": 2.5e9, "a card": 1e12})
    (key, speed), *_ = json.loads(path.read_text()).items()
    assert key.startswith("sequences: ")
    assert key.endswith("3 used")
    assert speed == 2.5e9
    Speeds("spectra", 3).remember({"cpu": 7.0})
    again = Speeds("sequences", 3)
    assert (again.of("cpu"), again.of("a card"), again.of("another")) == (2.5e9, 1e12, None)
    assert again.are_of_several
    assert (Speeds("spectra", 3).of("cpu"), Speeds("spectra", 4).of("cpu")) == (7.0, None)
    assert not Speeds("spectra", 3).are_of_several


def test_nothing_to_remember_writes_nothing(own_cache: Path) -> None:
    Speeds("sequences", 1).remember({})
    assert not (own_cache / "speeds.json").exists()


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"a": "fast"}', "\x00", '{"a": -1}', "[" * 100_000])
def test_a_damaged_file_is_as_good_as_none(own_cache: Path, text: str) -> None:
    (own_cache / "speeds.json").write_text(text)
    assert Speeds("sequences", 1).of("cpu") is None


def test_a_folder_that_cannot_be_written_is_no_obstacle(own_cache: Path) -> None:
    (own_cache / "speeds.json").mkdir()
    Speeds("sequences", 1).remember({"cpu": 1.0})
    assert Speeds("sequences", 1).of("cpu") is None
