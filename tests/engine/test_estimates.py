"""Every search is estimated without running it, reports errors like the search, and its runs record the estimate."""

from __future__ import annotations

import contextlib
import json
import os

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import STEPS, Expectation, estimate, predicted_run, remember_run
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.formats.sizes import input_size
from proteoscope.engine.project import Project
from proteoscope.engine.searches import SEARCHES, search_of_kind
from proteoscope.engine.views.run_prediction import PARTS, draw_stacks, run_prediction, stacked_bars
from tests.engine.structures.examples import as_pdb, atoms_of, helix

SPECTRA = resources.path("samples", "BSA1.mzML.gz")
OTHERS = resources.path("samples", "Ecoli_MS2_small.mzML.gz")
DATABASE = resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def inputs(tmp_path):
    """Return the inputs of each search by its kind."""
    (tmp_path / "genome.fasta").write_text(">g\n" + "ACGTTGCA" * 4000 + "\n")
    (tmp_path / "reads.fastq").write_text("".join(f"@r{n}\n{'ACGTTGCA' * 12}\n+\n{'I' * 96}\n" for n in range(50)))
    (tmp_path / "chain.pdb").write_bytes(as_pdb(atoms_of(helix(60))))
    header = "peptide\tproteins\tscannr\thyperscore\tfilename\trank\tlabel\tcharge"
    (tmp_path / "hits.sage.tsv").write_text(header + "\nAAK\tp\t1\t3\tf\t1\t1\t2\n")
    peaks = "".join(f"{mz}.1 {mz}\n" for mz in range(200, 230))
    (tmp_path / "library.msp").write_text("".join(f"Name: AAK{n}/2\nMW: {900 + n}\nNum peaks: 30\n{peaks}\n" for n in range(20)))
    Project.create_or_open(tmp_path / "project")
    spectra, database = [SPECTRA], [DATABASE]
    return {
        "identify": {"spectra": spectra, "database": database},
        "modified": {"spectra": spectra, "database": database},
        "cluster": {"spectra": spectra},
        "explain": {"project": [tmp_path / "project"]},
        "align": {"queries": database, "database": database},
        "library": {"spectra": spectra, "library": [tmp_path / "library.msp"]},
        "quantify": {"project": [tmp_path / "project"]},
        "evidence": {"project": [tmp_path / "project"], "structures": [tmp_path / "chain.pdb"]},
        "structures": {"queries": [tmp_path / "chain.pdb"], "database": [tmp_path / "chain.pdb"]},
        "reads": {"texts": [tmp_path / "genome.fasta"], "patterns": [tmp_path / "reads.fastq"]},
        "import": {"results": [tmp_path / "hits.sage.tsv"], "spectra": spectra, "database": database},
    }


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_every_search_has_an_estimate(search, inputs, own_cache):
    request = SearchRequest(inputs[search.kind], search.parameters_of(search.preset), device="cpu", threads=2)
    result = estimate(search, request)
    assert result.seconds == pytest.approx(sum(result.steps.values()))
    assert set(result.steps) == {*STEPS, "start"}
    assert result.transfer + result.kernel + result.synchronisation + result.host == pytest.approx(result.seconds)
    assert sum(result.shares().values()) == pytest.approx(1.0)
    assert result.bound in ("transfer", "memory", "compute", "host")
    assert result.memory_bytes > 1e8
    assert result.notes == ()
    assert json.loads(json.dumps(result.record()))["kind"] == search.kind
    more = SearchRequest(
        {name: files * 3 for name, files in inputs[search.kind].items() if name != "project"}, request.parameters, device="cpu"
    )
    if "project" not in inputs[search.kind]:
        assert estimate(search, more).seconds > result.seconds


def test_estimate_option_does_not_run_the_search(inputs, tmp_path, own_cache, capsys):
    out = tmp_path / "hits.tsv"
    command = ["align", str(DATABASE), str(DATABASE), "--out", str(out), "--device", "cpu"]
    assert main(["estimate", *command]) == 0
    output = capsys.readouterr().out
    for word in (
        "seconds" if "seconds" in output else " s",
        "-bound",
        "transfer",
        "kernel",
        "synchronisation",
        "host",
        "GB on the host",
        "cells",
    ):
        assert word in output
    assert main(["estimate", "--json", *command]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "cpu"
    assert not out.exists()
    output = tmp_path / "unnamed"
    output.mkdir()
    with contextlib.chdir(output):
        assert main(["estimate", *command[:3], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "cpu" and not list(output.iterdir())


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ((), "expected a search with its arguments"),
        (("dance",), "expected a search with its arguments"),
        (("align", "missing.fasta", "missing.fasta", "--out", "x"), "does not exist"),
        (("align", "{empty}", "{empty}", "--out", "x"), "empty"),
        (("align", "{garbage}", "{garbage}", "--out", "x"), "binary data"),
        (("align", "{good}", "{good}", "--out", "x", "--set", "gap_open=-3"), "gap_open"),
        (("align", "{good}", "{good}", "--out", "x", "--device", "tpu"), "device = 'tpu'"),
        (("cluster", "{cut}", "--out", "x"), "gz"),
    ],
)
def test_estimate_reports_errors_like_the_search(command, output, tmp_path, own_cache, capsys):
    files = {"empty": b"", "garbage": bytes(range(256)) * 9, "good": b">a\nMKV\n", "cut.gz": SPECTRA.read_bytes()[:9]}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = {name.removesuffix(".gz"): str(tmp_path / name) for name in files}
    assert main(["estimate", *(part.format(**paths) for part in command)]) == 2
    complaint = capsys.readouterr().err
    assert output in complaint
    assert complaint.count("\n") == 1


def test_estimate_reads_only_the_start_of_input_files(tmp_path):
    rng = np.random.default_rng(1)
    lengths = rng.integers(50, 500, 3000)
    path = tmp_path / "proteins.fasta"
    path.write_text("".join(f">p{number}\n{'A' * length}\n" for number, length in enumerate(lengths)))
    size = input_size([path])
    assert size.records == pytest.approx(3000, rel=0.05)
    assert size.residues == pytest.approx(lengths.sum(), rel=0.05)
    many = input_size([path] * 40)
    assert many.files == 40
    assert many.residues == pytest.approx(40 * size.residues)
    assert input_size([SPECTRA]).records > 100


def test_recorded_run_times_correct_later_predictions(tmp_path, own_cache):
    proteins = tmp_path / "proteins.fasta"
    proteins.write_text("".join(f">p{number}\n{'MKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLG'[number % 20 :]}\n" for number in range(40)))
    for number in range(3):  # The first run may compile, which is not recorded.
        command = ["align", str(proteins), str(proteins), "--out", str(tmp_path / "hits.tsv"), "--device", "cpu", "--quiet"]
        assert main([*command, "--project", str(tmp_path / f"project{number}")]) == 0
    (path,) = (tmp_path / "project2" / "results").glob("*/run.json")
    record = json.loads(path.read_text())
    prediction = record["prediction"]
    assert prediction["runs"] >= 1
    assert record["workload_seconds"]["sequences"]["cpu"] > 0
    bars = stacked_bars(record)
    assert [bar.title for bar in bars] == ["predicted", "measured", "predicted steps", "measured steps"]
    assert bars[0].seconds == pytest.approx(prediction["seconds"], rel=0.01)
    assert bars[1].seconds == pytest.approx(record["seconds"])
    assert bars[1].parts["kernel"] == record["workload_seconds"]["sequences"]["cpu"]
    assert {"score", "report"} <= set(bars[3].parts)
    assert all(set(bar.parts) <= set(PARTS) for bar in bars[2:])
    drawing = draw_stacks(bars)
    assert drawing.title.startswith("Predicted and measured: predicted")
    assert "measured steps" in drawing.title, "people who cannot see the bars get all of them as text"
    search = search_of_kind("align")
    request = SearchRequest({"queries": [proteins], "database": [proteins]}, search.parameters_of(), device="cpu")
    assert estimate(search, request).n_runs >= 2


@pytest.mark.parametrize(("seconds", "start"), [(7.0, 4.0), (2.0, 0.0)])
def test_remembered_step_times_sum_to_the_time_of_the_run(own_cache, seconds, start):
    """Check steps that overlap, too."""
    expectation = Expectation((), {"read": 1.0, "score": 2.0}, {}, 0.0)
    remember_run(predicted_run("align", expectation, processor(), 1), processor(), 1, {"read": 1.0, "score": 2.0}, seconds)
    prediction = predicted_run("align", expectation, processor(), 1)
    assert prediction.seconds == pytest.approx(seconds)
    assert prediction.steps["start"] == pytest.approx(start)
    assert prediction.n_runs == 1


def test_estimated_time_is_shorter_with_a_cached_index(inputs, tmp_path, own_cache):
    search, database = search_of_kind("identify"), tmp_path / "proteins.fasta"
    database.write_text("".join(f">p{number}\n{'MKWVTFISLLLLFSSAYSRGVFRR' * 40}\n" for number in range(500)))
    request = SearchRequest({"spectra": [SPECTRA], "database": [database]}, search.parameters_of(search.preset), device="cpu", threads=1)
    first = estimate(search, request)
    remember_run(first, processor(), 1, first.raw_steps, first.seconds)
    later = estimate(search, request)
    assert first.index and later.index == first.index
    assert 0.0 < later.raw_steps["index"] < 0.1 * first.raw_steps["index"]
    assert {step: seconds for step, seconds in later.raw_steps.items() if step != "index"} == {
        step: seconds for step, seconds in first.raw_steps.items() if step != "index"
    }
    assert "index" not in first.record()
    os.utime(database, (1e9, 1e9))
    assert estimate(search, request).raw_steps["index"] == first.raw_steps["index"]


def test_remembered_step_times_exclude_rounding_errors():
    steps = dict.fromkeys(("start", "read", "index"), 0.1)
    whole, more = 0.1 + 0.1 + 0.1 + 1e-15, 0.5
    for seconds, names in ((whole, ["start", "read", "index"]), (more, ["start", "read", "index", "rest"])):
        (bar,) = stacked_bars({"prediction": {"steps": steps, "seconds": seconds}})
        assert list(bar.parts) == names


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"prediction": 1},
        {"prediction": {"steps": [1], "seconds": "x"}, "steps": 5},
        {"prediction": {"steps": {"read": -1, "score": 1e99}}},
    ],
)
def test_untrusted_run_record_gives_no_time_prediction(record):
    assert stacked_bars(record) == ()
    assert run_prediction(record) is None


def test_cost_model_report_lists_every_benchmark(tmp_path, own_cache, capsys, monkeypatch):
    monkeypatch.setattr("proteoscope.engine.cost_model._SIZES", (1000, 100_000))
    monkeypatch.setattr("proteoscope.engine.cost_model._SIDES", (16, 32))
    path = tmp_path / "report.html"
    assert main(["cost-model", "report", "--out", str(path), "--device", "cpu", "--quiet"]) == 0
    page = path.read_text(encoding="utf-8")
    for word in ("Vector addition", "Matrix multiplication", "Reduction", "Prefix scan", "<svg", "No GPU is used", "predicted"):
        assert word in page
    assert "<script" not in page
    assert main(["cost-model", "report", "--out", str(tmp_path / "no" / "r.html")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_calibrate_command_measures_and_reports_devices(own_cache, capsys, monkeypatch):
    monkeypatch.setattr("proteoscope.engine.calibration.KINDS", {"structures": ""})
    assert main(["devices", "--calibrate", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output[0]["measured"]["kinds"]["structures"]["operations"]
    assert main(["devices"]) == 0
    assert "measured for structures" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["evidence", "structures"])
def test_estimate_rejects_missing_structures(kind, inputs, own_cache, capsys):
    there, missing = str(inputs["evidence"]["project"][0]), str(inputs["evidence"]["structures"][0]) + ".no.pdb"
    arguments = {"evidence": [there, "--structures", missing], "structures": [missing, "--database", missing, "--out", "hits"]}[kind]
    assert main(["estimate", kind, *arguments]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("search", [search for search in SEARCHES if not search.workload_types], ids=lambda search: search.kind)
def test_estimate_rejects_workers_for_searches_without_workloads(search, inputs, own_cache, tmp_path, capsys):
    given = {input_file.name: [str(path) for path in inputs[search.kind].get(input_file.name, ())] for input_file in search.inputs}
    placed = [path for input_file in search.inputs if not input_file.option for path in given[input_file.name]]
    named = [
        word for input_file in search.inputs if input_file.option for path in given[input_file.name] for word in (input_file.option, path)
    ]
    out = ["--out", str(tmp_path / "p")] if search.writes == "project" else []
    for before in ([], ["estimate"]):
        assert main([*before, search.kind, *placed, *named, *out, "--workers", "local:2"]) == 2
        assert capsys.readouterr().err == f"proteoscope: {search.kind} cannot use worker processes: leave out --workers\n"
    assert main([search.kind, "--help"]) == 0
    assert "--workers" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["import", SPECTRA, "--spectra", OTHERS], "is mzML, not results of a search engine. Give it with --spectra."),
        (
            ["import", "hits.sage.tsv", "--spectra", DATABASE],
            "is a FASTA file of sequences, not a file of spectra. Give it as the database.",
        ),
        (["identify", SPECTRA, "--database", "hits.sage.tsv"], "contains identifications (Sage); expected a FASTA file of proteins."),
    ],
)
def test_estimate_reports_wrong_file_type_like_the_search(command, output, inputs, tmp_path, own_cache, capsys):
    words = [str(tmp_path / word) if word == "hits.sage.tsv" else str(word) for word in command]
    for before in (["estimate"], []):
        assert main([*before, *words, "--out", str(tmp_path / "p")]) == 2
        assert output in capsys.readouterr().err


def test_estimate_rejects_invalid_workers(own_cache, capsys):
    command = ["identify", str(SPECTRA), "--database", str(DATABASE), "--out", "unused", "--workers", "local:0"]
    assert main(["estimate", *command]) == 2
    assert "local:N with N from 1" in capsys.readouterr().err


def test_estimate_of_first_run_reports_unpredicted_compilation():
    predicted = {"seconds": 0.9, "host": 0.9, "bound": "host", "steps": {"read": 0.5}}
    record = {
        "seconds": 210.0,
        "workload_seconds": {},
        "steps": {"read": {"seconds": 0.5}},
        "prediction": predicted | {"was_compiled": False},
    }
    first, later = (run_prediction(run_record) for run_record in (record, record | {"prediction": predicted | {"was_compiled": True}}))
    assert first is not None and later is not None
    assert "233 times as long as predicted" in first.lines[0] and "compiled first" in first.lines[1]
    assert not any("compiled" in line for line in later.lines)


def test_estimate_with_workers_names_this_machine(inputs, own_cache):
    search = search_of_kind("align")
    requests = {
        workers: SearchRequest(inputs["align"], search.parameters_of(), device="cpu", workers=workers) for workers in ("", "local:2")
    }
    here, there = (estimate(search, requests[workers]) for workers in ("", "local:2"))
    assert there.seconds == here.seconds and here.notes == () and "workers" in there.notes[0]
