"""A bounded sample of hostile environments, paths and values of parameters; the long forms are programs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import command_parsers
from proteoscope.engine.searches import SEARCHES
from tests.fuzz import environments, odd_paths, parameter_values

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits, modes and streams are set in another way elsewhere")

SITUATIONS = {
    "HOME empty": "quantify",
    "HOME home sign": "quantify",
    "TMPDIR file": "convert",
    "PROTEOSCOPE_CACHE dangling link": "quantify",
    "RLIMIT_FSIZE 1000": "convert",
    "closed (0, 1, 2)": "convert",
    "full both": "parameters",
    "unread output": "presets",
}
"""Situations, each with a command that runs in it; few commands, because each also runs undisturbed."""

PATHS = (
    ("identify", "IN/spectra.mgf", "255 bytes"),
    ("convert", "IN/spectra.mgf", "control characters"),
    ("convert", "OUT/converted.mzML", "pipe"),
    ("align", "IN/proteins.fasta", "5000 bytes"),
    ("export", "OUT/exported.pin", "not UTF-8"),
    ("runs", "PROJECT", "loop of links"),
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the inputs of all commands."""
    return environments.make_inputs(tmp_path_factory.mktemp("environments") / "inputs")


@pytest.fixture(scope="module")
def place(inputs: Path) -> environments.Place:
    return environments.Place(inputs.parent, inputs)


@pytest.mark.parametrize("name", SITUATIONS)
def test_command_in_hostile_environment_works_or_prints_one_line(name: str, place: environments.Place) -> None:
    situation = next(situation for situation in environments.situations() if situation.name == name)
    environments.check(place, situation, SITUATIONS[name])


@pytest.mark.parametrize(("command", "argument", "name"), PATHS)
def test_command_uses_or_rejects_an_unusual_path(command: str, argument: str, name: str, inputs: Path, tmp_path: Path) -> None:
    odd_paths.Watch(tmp_path, inputs).check(command, environments.COMMANDS[command].index(argument), name)


def test_every_command_has_arguments_for_tests_of_environments() -> None:
    assert sorted(environments.COMMANDS) == sorted(command_parsers())


@pytest.mark.parametrize("command", parameter_values.models())
def test_extreme_parameter_values_are_accepted_or_reported(command: str) -> None:
    accepted, n_refused = parameter_values.accepted_values(command)
    assert accepted and n_refused > 100


@pytest.mark.parametrize("command", [search.kind for search in SEARCHES])
def test_preset_error_names_the_parameter_with_an_extreme_value(command: str, tmp_path: Path) -> None:
    assert parameter_values.refused_in_preset(command, tmp_path) > 100
