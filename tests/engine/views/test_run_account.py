"""Account of a run: each type of search, failed runs, and untrusted projects."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs import Cancelled
from proteoscope.engine.matches.methods_paragraph import accepted_sentence, spectrum_search_methods
from proteoscope.engine.project import Project, RunNote, RunRecord
from proteoscope.engine.results.counts import RunFacts, paragraph
from proteoscope.engine.searches import SEARCHES, run_search, search_of_kind
from proteoscope.engine.views.run_account import RunAccount, nearest_preset, run_account
from tests.engine.views.cluster_projects import project_with_clusters
from tests.engine.views.search_projects import project_with_search


def _account(project: Project, run: RunRecord | None = None) -> RunAccount:
    record = run or project.runs()[-1]
    return run_account(project, record, search_of_kind(record.kind))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_search(tmp_path_factory.mktemp("searched"))


def test_run_account_describes_a_sequence_search(searched: Project) -> None:
    account = _account(searched)
    inputs = searched.inputs(account.run.id)
    number, searched_file, preset = account.title.split(" · ")
    assert number == "1" and inputs[0].path.name.startswith(searched_file) and preset == "standard"
    assert [file.sha256 for file in account.files] == [file.sha256 for file in inputs]
    assert {parameter.name for parameter in account.parameters} == set(search_of_kind("align").model.model_fields)
    assert not account.preset.changed and not any(parameter.is_changed for parameter in account.parameters)
    assert "Smith-Waterman" in account.methods and "BLOSUM62" in account.methods and "standard" in account.methods


def test_run_account_shows_the_title_of_the_note(searched: Project) -> None:
    run = searched.runs()[-1]
    searched.set_note(run.id, RunNote("for the paper", "see page 12"))
    account = _account(searched)
    assert account.title == "for the paper" and account.note.note == "see page 12"
    searched.set_note(run.id, RunNote())


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_methods_text_of_each_search_follows_the_run_record(search) -> None:
    parameters = search.parameters_of(search.preset).model_dump(mode="json")
    files = tuple((search_input.name, f"{search_input.name}.file") for search_input in search.inputs)
    facts = RunFacts(search.name, "1.2", "cpu", files, parameters, {"parameters": parameters, "counts": {"spectra": 12, "queries": 3}})
    methods = search.methods_of(facts)
    assert (methods is None) == (not search.methods)
    text = paragraph(facts, methods, search.preset)
    assert "Proteoscope 1.2" in text and "None" not in text and "{" not in text and "  " not in text
    # The text claims nothing that is missing from the record.
    assert "the search accepted" not in text and "were rescored" not in text
    assert "second pass" not in text
    assert methods is None or all(sentence == "" or sentence.endswith(".") for sentence in methods.sentences)


@pytest.mark.parametrize(
    ("kind", "counts", "parameters", "text", "is_expected"),
    [
        ("evidence", {"sites": 3, "placed_sites": 2}, {}, "Of 3 modified residues, 2 were mapped", True),
        ("evidence", {"sites": 3}, {}, "modified residues", False),
        ("evidence", {"placed_sites": 2}, {}, "modified residues", False),
        ("evidence", {"proteins": 4, "on_structures": 1, "chains": 9}, {}, "Of 4 proteins, 1 had a similar chain among 9 chains", True),
        ("evidence", {"proteins": 4, "on_structures": 1}, {}, "had a similar chain", False),
        ("library", {}, {"precursor_tolerance": "200 Da"}, "in a cascade", True),
        ("library", {}, {"precursor_tolerance": "2 Da"}, "in a cascade", False),
        ("library", {}, {"precursor_tolerance": "wide Da"}, "in a cascade", False),
    ],
)
def test_methods_text_states_only_what_the_record_contains(kind, counts, parameters, text, is_expected) -> None:
    facts = RunFacts(kind, "1", "cpu", (), parameters, {"counts": counts, "shifted": 1})
    methods = search_of_kind(kind).methods_of(facts)
    assert methods is not None
    assert (text in " ".join(methods.sentences)) == is_expected


@pytest.mark.parametrize(
    ("localised", "names"),
    [
        ([{"modification": "Phospho"}, {"modification": "GG"}], "Sites of Phospho and GG were localised"),
        ([{"modification": "Phospho"}, 7, {"modification": 3}, {"modification": "X" * 1000}], "Sites of Phospho were localised"),
        ([], None),
        ("Phospho", None),
        (None, None),
    ],
)
def test_methods_text_names_localised_modifications(localised: object, names: str | None) -> None:
    facts = RunFacts("identification", "1.2", "cpu", (), {}, {"localisation": localised})
    methods = spectrum_search_methods(facts)
    text = " ".join(methods.sentences)
    assert ("localised" in text) == (names is not None) == any("Ramsbottom" in citation for citation in methods.citations)
    assert names is None or names in text


def test_methods_text_describes_search_passes_that_were_run() -> None:
    search = search_of_kind("identify")
    parameters = search.parameters_of("high-resolution").model_dump(mode="json")
    done = {
        "name": "first",
        "precursor_tolerance": "14.2 ppm",
        "fragment_tolerance": "20 ppm",
        "isotope_errors": [0, 1],
        "enzyme": "Trypsin",
        "specificity": "specific",
        "missed_cleavages": 2,
        "precursor_medians": [3.1, 3.1],
        "variable_modifications": ["Oxidation (M)"],
    }
    certainty = {"psms": {"targets": 40, "decoys": 1, "false_share_low": 0.001, "false_share_high": 0.12}}
    record = {"parameters": parameters, "passes": [done], "counts": {"psms": 40}, "certainty": certainty}
    facts = RunFacts("identification", "1", "cpu", (), parameters, record, ("Rescoring skipped: 3 peptides are too few",))
    text = " ".join(spectrum_search_methods(facts).sentences)
    assert "14.2 ppm" in text and "+3.1 ppm" in text and "10 ppm" not in text
    # The settings request a second pass, but none was done.
    assert "second pass" not in text and "semi-specific" not in text
    assert "without rescoring (3 peptides are too few)" in text and "Percolator" not in text
    assert "40 PSMs (with 1 decoy; 95 % interval of the false share 0.1 to 12.0 %)" in text

    classes = [
        {"name": name, "method": method, "targets_of_any_score": 9}
        for name, method in (("specific", "group-walk"), ("second pass", "group-walk"), ("variant", "none"), (7, "transferred"))
    ]
    methods = spectrum_search_methods(replace(facts, record={**record, "classes": [*classes, 3]}))
    of_classes = next(sentence for sentence in methods.sentences if sentence.startswith("Each class"))
    assert "group-walk, but not below the rate from its own decoys (specific and second pass); none is estimated" in of_classes
    assert any("Freestone" in source for source in methods.citations) and not any("Fu Y" in source for source in methods.citations)
    assert "Each class" not in text

    nothing = {"targets": 0, "decoys": 0, "false_share_low": 0.0, "false_share_high": 1.0, "targets_at_5_percent": 103}
    empty = {"parameters": parameters, "counts": {"psms": 0}, "certainty": {"psms": nothing}}
    assert "accepted 0 PSMs (103 at 5 %)" in accepted_sentence(replace(facts, record=empty))


def test_run_account_of_clustering_contains_the_method(tmp_path: Path) -> None:
    account = _account(project_with_clusters(tmp_path / "c"))
    assert "hierarchical clustering (average linkage)" in account.methods


def test_nearest_preset_lists_the_changed_parameters() -> None:
    search = search_of_kind("identify")
    values = search.parameters_of("low-resolution").changed(missed_cleavages=1).model_dump(mode="json")
    preset = nearest_preset(search, values)
    assert preset.name == "low-resolution" and preset.changed == {"missed_cleavages"} and preset.text == "low-resolution, 1 changed"


def test_run_account_describes_failed_and_cancelled_runs(tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "p")
    for error in (InputError("a.mzML", "is cut off"), Cancelled()):
        with pytest.raises(type(error)), project.run("identify", {"fdr": 0.05}) as run:
            run.log("info", "Scoring")
            run.log("warning", "centroided")
            raise error
    failed, cancelled = (_account(project, run) for run in project.runs())
    assert (failed.run.status, cancelled.run.status) == ("failed", "cancelled")
    assert "cut off" in failed.run.message and failed.methods == "" and failed.folder is None
    assert [message.level for message in failed.messages] == ["warning", "info"] and [message.level for message in failed.log] == [
        "info",
        "warning",
    ]
    assert next(parameter for parameter in failed.parameters if parameter.name == "fdr").is_changed


def test_run_account_accepts_unknown_type_of_run(tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "p")
    with project.run("future", {"<b>x</b>": [1, 2]}) as run:
        run.message = "7 things"
    account = run_account(project, project.runs()[-1], None)
    assert account.title == "1" and account.parameters[0].value == "1, 2" and account.methods == ""


def test_run_account_limits_untrusted_records_and_logs(tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "p")
    parameters = {"score": ["x"] * 50, "fdr": "no number", "ion_series": 7}
    with project.run("identify", parameters) as run:
        record = {
            "counts": {"psms": True, "spectra": "many", "proteins": 3},
            "certainty": {"proteins": {"decoys": []}},
            "passes": [7],
            "steps": [1],
        }
        run.write_json("run", record)
    with closing(sqlite3.connect(tmp_path / "p" / "project.sqlite")) as connection:
        rows = [(run.id, "2026-01-01T00:00:00+00:00", "warning", "w" * 10_000) for _ in range(3000)]
        connection.executemany("INSERT INTO log (run, time, level, text) VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    account = _account(project)
    assert len(account.log) == 2000 and len(account.messages) == 200 and max(len(message.text) for message in account.log) == 2000
    assert [(count.number, count.certainty) for count in account.counts] == [(3, None)]
    assert account.passes == () and len(json.dumps(account.methods)) < 20_000


def test_recorded_parameters_reproduce_the_search(searched: Project, tmp_path: Path) -> None:
    run = searched.runs()[-1]
    files = {kind: [file.path for file in searched.inputs(run.id) if file.kind == kind] for kind in ("queries", "database")}
    run_search("align", files, project=tmp_path / "again", out=tmp_path / "again.tsv", **run.parameters)
    again = Project.open(tmp_path / "again")
    assert again.runs()[-1].parameters == run.parameters and again.runs()[-1].message == run.message


@pytest.mark.parametrize(
    ("command", "text"),
    [(["proteoscope", "align", "a b.fasta"], "proteoscope align 'a b.fasta'"), ([1, 2], None), ("rm", None), (None, None)],
)
def test_run_account_shows_command_and_source(tmp_path: Path, command: object, text: str | None) -> None:
    project = Project.create_or_open(tmp_path / "p")
    with project.run("align", {}) as run:
        run.write_json("run", {"command": command, "commit": "0123abcd"})
    facts = dict(_account(project).facts)
    assert (facts.get("Command"), facts["Source"]) == (text, "0123abcd")
