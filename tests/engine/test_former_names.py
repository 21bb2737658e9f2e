"""Parameters that had another name in earlier versions: presets, records, settings and options may still have it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.project import Project
from proteoscope.engine.searches import SEARCHES
from proteoscope.engine.sequence_search.entry import SEQUENCE_SEARCH
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.views.finished_run import open_finished_run
from tests.fuzz.result_tables import make


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_each_option_that_had_another_name_still_has_it(search: Search) -> None:
    former = search.model.former_names()
    assert set(former.values()) <= set(search.model.model_fields) and not set(former) & set(search.model.model_fields)
    assert dict(search.former_shortcuts) == {old: new for old, new in former.items() if new in search.shortcuts}


def test_settings_and_presets_take_former_names(tmp_path: Path) -> None:
    expected = SequenceSearchParameters(hits_per_query=3, maximum_e_value=2.0)
    assert SequenceSearchParameters().changed(["top=3", "max_e_value=2"]) == expected
    assert SequenceSearchParameters().changed(top=3, maximum_e_value=2.0) == expected
    assert SequenceSearchParameters.checked({"top": 9, "hits_per_query": 3, "max_e_value": 2}) == expected
    with pytest.raises(ParameterError, match="hits_per_query = "):
        SequenceSearchParameters().changed(top=0)


def test_the_command_line_takes_former_options(tmp_path: Path) -> None:
    fasta = tmp_path / "a.fasta"
    fasta.write_text(">a\nMKVLAAGIVGLCAKAYEWTRE\n>b\nMKVLAAGIVGLCAKAYEWTRE\n")
    texts = []
    for i, (option, e_value) in enumerate((("--top", "--max-e-value"), ("--hits-per-query", "--maximum-e-value"))):
        out = tmp_path / f"{i}.tsv"
        assert main(["align", str(fasta), str(fasta), "--out", str(out), option, "1", e_value, "5", "--device", "cpu", "--quiet"]) == 0
        texts.append(out.read_text())
    assert texts[0] == texts[1] and texts[0].count("\n") == 3


def test_a_run_recorded_with_former_names_is_read_with_todays(tmp_path: Path) -> None:
    project = make("align", tmp_path / "project")
    recorded = project.runs("align")[-1].parameters
    former = {new: old for old, new in SequenceSearchParameters.former_names().items()}
    values = {former.get(name, name): value for name, value in {**recorded, "hits_per_query": 17}.items()}
    assert {"top", "max_e_value"} <= set(values)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        connection.execute("UPDATE runs SET parameters = ?", (json.dumps(values),))
    run = open_finished_run(Project.open(project.folder), SEQUENCE_SEARCH, None)
    assert run.parameters["hits_per_query"] == 17 and run.parameters["maximum_e_value"] == recorded["maximum_e_value"]
    assert not {"top", "max_e_value"} & set(run.parameters)
    run.close()
