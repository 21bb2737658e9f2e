"""Recorded parameters of a run are used only if the search accepts them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.identification.entry import IDENTIFICATION
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.searches import SEARCHES


def run_with(parameters: dict[str, Any]) -> RunRecord:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return RunRecord("identify-0001", "identify", parameters, "0", "cpu", "done", now, now, "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fdr", "x"),
        ("fdr", None),
        ("fdr", float("inf")),
        ("fragment_tolerance", "\x1b[31m"),
        ("ion_series", []),
        ("variable_modifications", [["a"]]),
        ("translation", 7),
        ("decoys", {}),
        ("enzyme", None),
    ],
)
def test_recorded_parameters_rejects_forged_values(tmp_path: Path, name: str, value: object) -> None:
    project = Project.create_or_open(tmp_path / "project")
    with pytest.raises(InputError, match="the recorded parameters of identify-0001 are damaged") as error:
        IDENTIFICATION.recorded_parameters(project, run_with({name: value}))
    assert "\n" not in str(error.value) and len(str(error.value)) < 1000


def test_recorded_parameters_ignores_unknown_parameters(tmp_path: Path) -> None:
    IDENTIFICATION.recorded_parameters(Project.create_or_open(tmp_path / "project"), run_with({"charges_of_1999": "a", "__class__": 1}))


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_recorded_parameters_accepts_the_defaults_of_each_search(tmp_path: Path, search: Any) -> None:
    parameters = search.model().model_dump(mode="json")
    search.recorded_parameters(Project.create_or_open(tmp_path / "project"), run_with(parameters))
