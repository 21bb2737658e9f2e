"""Tests of the parameters in which runs differ."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import InputRecord, RunRecord
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.run_parameters import parameter_differences


def record(kind: str, **changed: Any) -> RunRecord:
    now = datetime.now(UTC)
    try:
        parameters = search_of_kind(kind).model().model_dump(mode="json")
    except ProteoscopeError:  # a search that does not exist
        parameters = {}
    return RunRecord("a", kind, parameters | changed, "0", "cpu", "done", now, now, "")


def database(digest: str, name: str = "p.fasta") -> list[InputRecord]:
    return [InputRecord(Path(f"/data/{digest}.mzML"), "spectra", 1, digest), InputRecord(Path("/data") / name, "database", 1, digest)]


def test_equal_parameters_and_databases_have_no_difference() -> None:
    other = [InputRecord(Path("/moved/renamed.fasta"), "database", 1, "a" * 64)]
    assert parameter_differences([record("identify"), record("identify")], [database("a" * 64), other]) == ()


def test_differences_are_named_with_the_values_of_each_run() -> None:
    runs = [record("identify"), record("identify", fdr=0.05, variable_modifications=["Oxidation (M)", "Acetyl (Protein N-term)"])]
    inputs, modifications = database("a" * 64), runs[0].parameters["variable_modifications"]
    result = {row.name: row for row in parameter_differences(runs, [inputs, database("b" * 64)])}
    assert list(result) == ["database", "variable_modifications", "fdr"]
    assert result["database"].values == ("p.fasta (aaaaaaaa)", "p.fasta (bbbbbbbb)") and result["database"].title == "Protein databases"
    assert result["fdr"].values == ("0.01", "0.05") and result["fdr"].title == "False discovery rate"
    assert result["variable_modifications"].values[1] == "Oxidation (M), Acetyl (Protein N-term)"
    assert modifications != runs[1].parameters["variable_modifications"]


def test_parameters_missing_from_a_run_are_shown_as_dashes() -> None:
    runs = [record("identify"), record("modified"), record("of the future", new_one=[1, 2])]
    result = {row.name: row.values for row in parameter_differences(runs, [[], [], []])}
    assert result["search"] == ("identification", "search for modified peptides", "of the future")
    assert result["new_one"] == ("–", "–", "1, 2")
    assert result["mass_shift"][0] == result["mass_shift"][2] == "–" != result["mass_shift"][1]
