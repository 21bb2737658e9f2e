"""The estimated memory agrees with measured commands, at every measured size."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import Expectation, predicted_run
from proteoscope.engine.execution.devices import Device, processor
from proteoscope.engine.formats.sizes import InputSize
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.workload import expectation
from proteoscope.engine.matches.workload import estimate_peptides
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.quantification import workload as of_quantification
from proteoscope.engine.quantification.identified import SourceFile
from proteoscope.engine.searches import search_of_kind

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "growth.jsonl"
QUANTIFIED = [
    row
    for row in map(json.loads, MEASURED.with_name("quantified_runs.jsonl").read_text(encoding="utf-8").splitlines())
    if row["figure"] == "quantify"
]
ROWS = [row for row in map(json.loads, MEASURED.read_text(encoding="utf-8").splitlines()) if row["figure"] != "growth of reads"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))


def expected(row: dict, monkeypatch: pytest.MonkeyPatch) -> Expectation:
    spectra = InputSize(1, 0, 1e6 * row["input_megabytes"], row["items"], 60.0 * row["items"])
    if row["figure"] == "growth of cluster":
        monkeypatch.setattr("proteoscope.engine.clustering.workload.input_size", lambda files: spectra)
        search = search_of_kind("cluster")
        from proteoscope.engine.clustering.workload import estimate_workload as of_clustering

        return of_clustering(SearchRequest({"spectra": []}, search.parameters_of(search.preset)))
    parameters = IdentificationParameters.checked(read_preset("identify", "high-resolution"))
    of_residue = estimate_peptides(InputSize(residues=1.0), parameters)
    return expectation(spectra, InputSize(1, 0, 0.0, 27_583, row["counts"]["peptides_in_index"] / of_residue), parameters)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['figure']}, {row['items']}, {row['processor'][:5]}")
def test_estimated_memory_agrees_with_measured_memory(row, monkeypatch):
    memory = predicted_run("", expected(row, monkeypatch), processor(), 2).memory_bytes
    assert memory == pytest.approx(1e6 * row["peak_megabytes"], rel=0.2)


@pytest.mark.parametrize("row", QUANTIFIED, ids=lambda row: f"{row['runs']} runs")
def test_memory_estimate_of_a_quantification_holds_for_many_runs(row, monkeypatch):
    class OfProject:
        folder, record = Path("p"), staticmethod(lambda run: {"counts": row["counts"]})

    files = tuple(SourceFile(f"{number}.mzML", "", 0) for number in range(row["runs"]))
    runs = tuple(SimpleNamespace(run=f"run_{number}") for number in range(row["runs"]))
    monkeypatch.setattr(of_quantification, "sources", lambda *_: SimpleNamespace(runs=runs, files=files))
    monkeypatch.setattr(of_quantification, "Project", SimpleNamespace(open=lambda _: OfProject()))
    request = SearchRequest({"project": [Path("p")]}, search_of_kind("quantify").parameters_of("label-free"))
    memory = predicted_run("", of_quantification.estimate_workload(request), processor(), 2).memory_bytes
    assert 1.0 <= memory / (1e6 * row["peak_mb"]) <= 1.6


def test_memory_estimate_is_bounded_for_many_spectra():
    small, large = (InputSize(1, 0, n * 2500.0, n) for n in (1e5, 1e8))
    assert small.held_bytes > 2e8
    assert large.held_bytes < 1e9, "their peaks are on disk"
    proteome = InputSize(1, 13_000_000, 1.3e7, 20_500, 1.14e7)
    parameters = IdentificationParameters.checked(read_preset("identify", "high-resolution"))
    gpu = Device("cuda:0", "a GPU", 1 << 37, True, numbers=(0,))
    prediction = predicted_run("", expectation(large, proteome, parameters), gpu, 16)
    assert prediction.memory_bytes < 2e11
    assert 0 < prediction.gpu_bytes < 4e9, "spectra are sent to a GPU in batches"
