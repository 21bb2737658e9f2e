"""Advice on runs with few identifications: its step, limits, cancellation and effect on a finished run."""

import csv
import json

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.identification import advice, low_yield, search
from proteoscope.engine.identification import passes as passes_module
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import score_pass
from proteoscope.engine.jobs.progress import Cancelled, LimitedProgress, Progress, TimeOverError
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from tests.engine.identification.test_search import Simulation, fixed, tryptic
from tests.searching import few_proteins, identify

INCOMPLETE = "More causes were not checked to save time"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write spectra with precursors 35 ppm too heavy, and their database."""
    folder = tmp_path_factory.mktemp("files")
    database = few_proteins(folder)
    entries = (entry.split("\n", 1) for entry in database.read_text().split(">")[1:])
    proteins = {header: sequence.replace("\n", "") for header, sequence in entries}
    simulation = Simulation(21, 4, 10)
    for number, sequence in enumerate(tryptic(proteins, 5, 60)):
        simulation.add(sequence, 2 + number % 2, fixed(sequence))
    text = simulation.write(folder / "right.mgf").read_text()
    lines = (f"PEPMASS={float(line[8:].split()[0]) * (1 + 35e-6):.6f}" if line[:8] == "PEPMASS=" else line for line in text.splitlines())
    (folder / "tune.mgf").write_text("\n".join(lines) + "\n")
    return folder / "tune.mgf", database


@pytest.fixture
def passes(monkeypatch):
    """Numbers of spectra of each scored pass."""
    scored = []

    def counting(plan):
        scored.append(plan.spectra.n_searched)
        return score_pass(plan)

    for module in (search, passes_module):
        monkeypatch.setattr(module, "score_pass", counting)
    return scored


def searched(files, folder, progress=None, **options):
    parameters = IdentificationParameters.checked(read_preset("identify", "high-resolution")).changed(second_pass=False)
    return identify([files[0]], [files[1]], folder, parameters.changed(calibrate_tolerance=False), threads=2, progress=progress, **options)


def record_of(folder):
    return json.loads((folder / "run.json").read_text())


def warnings(folder):
    return [
        message for message in record_of(folder)["messages"] if "identified" in message or INCOMPLETE in message or "stopped" in message
    ]


def test_identify_records_the_advice_step(files, tmp_path, passes):
    arguments = ["identify", str(files[0]), "--database", str(files[1]), "--out", str(tmp_path / "p"), "--device", "cpu", "--quiet"]
    assert main([*arguments, "--set", "second_pass=false", "--set", "calibrate_tolerance=false", "--advice", "none"]) == 0
    assert record_of(tmp_path / "p")["steps"]["advice"]["seconds"] >= 0.0
    assert passes == [60]


def test_identify_rejects_an_unknown_advice_level(files, tmp_path, capsys):
    assert main(["identify", str(files[0]), "--database", str(files[1]), "--out", str(tmp_path / "p"), "--advice", "long"]) == 2
    assert "choose from 'brief'" in capsys.readouterr().err
    request = SearchRequest({}, IdentificationParameters(), options={"advice": "long"})
    with pytest.raises(ParameterError, match="expected brief, full, none"):
        advice.advice_level(request)


def test_advice_reports_only_low_yield_when_no_time_is_left(files, tmp_path, passes, monkeypatch):
    monkeypatch.setattr(advice, "_SHARE", 0.0)
    summary = searched(files, tmp_path / "p")
    assert passes == [60] and summary.has_low_yield
    counted, incomplete = warnings(tmp_path / "p")
    assert counted.startswith("Few spectra were identified: ") and "match well" not in counted
    assert incomplete.startswith(INCOMPLETE)


def test_full_advice_is_a_separate_step_after_the_tables(files, tmp_path, passes):
    tables = []

    def watch(event):
        if event.stage == "Checking the tolerances" and not tables:
            tables.extend(path.name for path in (tmp_path / "p").rglob("*.parquet"))

    summary = searched(files, tmp_path / "p", Progress(watch), advice="full")
    assert {"psms.parquet", "peptides.parquet", "proteins.parquet", "spectra.parquet"} <= set(tables)
    assert len(passes) > 1
    (message,) = warnings(tmp_path / "p")
    assert "errors of precursors lie near +35 ppm" in message and message in summary.messages
    steps = record_of(tmp_path / "p")["steps"]
    assert list(steps)[-1] == "advice" and steps["advice"]["seconds"] > 0.0


def test_cancel_during_advice_does_not_undo_the_finished_run(files, tmp_path):
    progress = Progress(lambda event: progress.cancel() if event.stage == "Checking the tolerances" else None)
    summary = searched(files, tmp_path / "p", progress, advice="full")
    project = Project.open(tmp_path / "p")
    assert [run.status for run in project.runs()] == ["done"] and not project.verify()
    assert {"psms", "peptides", "proteins", "spectra", "run"} <= {table.name for table in project.results(summary.run_id)}
    with (tmp_path / "p" / "exports" / "psms.tsv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file, delimiter="\t"))) > 0
    assert warnings(tmp_path / "p")[-1] == "The advice was stopped; the results are complete"


def test_advise_command_adds_warnings_to_a_finished_run(files, tmp_path):
    summary = searched(files, tmp_path / "p", advice="none")
    assert not warnings(tmp_path / "p")
    parameters = IdentificationParameters.checked(record_of(tmp_path / "p")["parameters"])
    request = SearchRequest({"spectra": [files[0]], "database": [files[1]]}, parameters, tmp_path / "p", threads=2)
    stopped = Progress(lambda event: stopped.cancel() if event.stage == "Checking the tolerances" else None)
    with pytest.raises(Cancelled):
        advice.advise(request, summary.run_id, stopped)
    assert not warnings(tmp_path / "p")
    advised = advice.advise(request, summary.run_id)
    assert "errors of precursors lie near +35 ppm" in advised[0]
    project = Project.open(tmp_path / "p")
    assert not project.verify() and project.record(summary.run_id) == record_of(tmp_path / "p")
    assert record_of(tmp_path / "p")["messages"][-len(advised) :] == list(advised)
    assert record_of(tmp_path / "p")["steps"]["advice"]["seconds"] > 0.0
    assert {("warning", text) for text in advised} <= {(entry.level, entry.text) for entry in project.log(summary.run_id)}


def test_advise_command_rejects_a_changed_file(files, tmp_path):
    changed = tmp_path / "changed.mgf"
    changed.write_bytes(files[0].read_bytes())
    summary = searched((changed, files[1]), tmp_path / "p", advice="none")
    changed.write_bytes(files[0].read_bytes() + b"\n")
    parameters = IdentificationParameters.checked(record_of(tmp_path / "p")["parameters"])
    with pytest.raises(InputError, match="has changed since identify-0001"):
        advice.advise(SearchRequest({"spectra": [changed], "database": [files[1]]}, parameters, tmp_path / "p"), summary.run_id)


def test_limited_progress_stops_after_the_time_limit():
    now, stages = [0.0], []
    limited = LimitedProgress(Progress(lambda event: stages.append((event.stage, event.message))), 2.0, lambda: now[0])
    limited.stage("one")
    limited.message("dropped")
    now[0] = 2.0
    assert limited.is_cancelled and limited.seconds_left == 0.0
    for report in (limited.check, limited.advance, lambda: limited.stage("two")):
        with pytest.raises(TimeOverError):
            report()
    assert stages == [("one", "")]


def test_limited_progress_raises_cancelled_after_cancel():
    progress = Progress()
    limited = LimitedProgress(progress)
    limited.check()
    progress.cancel()
    with pytest.raises(Cancelled) as stopped:
        limited.check()
    assert not isinstance(stopped.value, TimeOverError)


def test_advice_probes_fewer_spectra_when_time_is_short(files, tmp_path, passes, monkeypatch):
    monkeypatch.setattr(low_yield, "_MINIMUM_PROBED", 10)
    monkeypatch.setattr(advice, "_SHARE", 1e6)
    monkeypatch.setattr(advice, "_RESIDUES_PER_SECOND", 1e-6)  # no time for enzymes
    monkeypatch.setattr(advice, "_SERIES", ())
    seconds = []

    def half(n_candidates: np.ndarray, n_spectra: int, per_candidate: float, left: float) -> int:
        seconds.append(per_candidate * left)
        return n_spectra // 2

    monkeypatch.setattr(low_yield, "affordable_spectra", half)
    searched(files, tmp_path / "p")
    assert passes[0] == 60 and set(passes[1:]) == {30} and len(passes) == 1 + len(seconds)
    assert all(second > 0 for second in seconds)
    assert warnings(tmp_path / "p")[-1].startswith(INCOMPLETE)
