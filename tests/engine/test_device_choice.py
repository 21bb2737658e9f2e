"""The choice of a GPU by its start time, from the calibrations of this machine or shipped ones, unless a device is requested."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from proteoscope import resources
from proteoscope.engine.entry import ESTIMATED_SEARCHES, SearchRequest
from proteoscope.engine.estimates import Expectation, estimate, faster_device_rule
from proteoscope.engine.execution.cost.calibration_store import reference_parameters, store_calibration
from proteoscope.engine.execution.cost.parameters import DeviceParameters, KindCosts
from proteoscope.engine.execution.device_lookup import DeviceLookup
from proteoscope.engine.execution.devices import Device, processor
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.search import identify
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.searches import search_of_kind
from tests.engine.structures.examples import as_pdb, atoms_of, helix

GPU = Device("cuda:0", "a GPU", 1 << 34, True, numbers=(0,))
SPECTRA, DATABASE = (resources.path("samples", name) for name in ("Ecoli_MS2_small.mzML.gz", "18Protein_SoCe_Tr_detergents_trace.fasta.gz"))


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """Return a machine with a GPU that has not been measured."""
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("proteoscope.kernels.cuda.driver.identity", lambda number: f"GPU-{number}")
    for module in ("proteoscope.engine.estimates", "proteoscope.engine.execution.devices", "proteoscope.engine.search_run"):
        monkeypatch.setattr(f"{module}.gpus", lambda *_: (GPU,))


def measure(device: Device, *, times: float = 1.0, start: float = 0.9, threads: int = 2) -> DeviceParameters:
    """Store a calibration of a device that is `times` times as slow as the shipped one."""
    shipped = reference_parameters(device, threads)
    kinds = {
        name: KindCosts.model_validate(costs.model_dump() | {"kernel": tuple(times * seconds for seconds in costs.kernel)})
        for name, costs in shipped.kinds.items()
    }
    calibration = shipped.model_copy(update={"kinds": kinds, "start": start})
    store_calibration(device, threads, calibration)
    return calibration


def request(device: str = "auto") -> SearchRequest:
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
    return SearchRequest({"spectra": [SPECTRA], "database": [DATABASE]}, parameters, device=device, threads=2)


def taken(device: str = "auto") -> str:
    return DeviceLookup(device, faster_device_rule("identify", request(device), 2)).device(Progress()).name


def test_device_calibration_decides_whether_the_gpu_is_opened():
    measure(GPU)
    measure(processor())
    assert taken() == "cpu", "a small search is done before the GPU is ready"
    measure(processor(), times=1e4)
    assert taken() == "cuda:0", "a slow CPU is not"
    measure(GPU, start=1e6)
    assert taken() == "cpu", "a GPU that takes long to open is not used either"
    measure(GPU, times=1e9, start=0.0)
    assert taken() == "cpu", "a GPU slower than the CPU is not used"


def test_faster_device_uses_shipped_calibration_by_default():
    assert taken() == "cpu", "a small search"
    measure(processor(), times=1e4)
    assert taken() == "cuda:0", "by the shipped GPU calibration"
    measure(GPU, start=1e6)
    assert taken() == "cpu"


def test_gpu_detection_is_skipped_when_no_gpu_can_start_in_time(monkeypatch):
    monkeypatch.setattr("proteoscope.engine.execution.device_lookup.resolve_device", lambda requested: pytest.fail("looked for a GPU"))
    look = DeviceLookup("auto", faster_device_rule("identify", request(), 2))
    assert (look.device(Progress()).name, look.requested) == ("cpu", "cpu")


@pytest.mark.parametrize(("seconds", "name"), [(0.3, "cpu"), (2.0, "cuda:0")])
def test_faster_device_uses_step_times_without_workloads(monkeypatch, seconds, name):
    uncounted = SimpleNamespace(workload_estimator=lambda: lambda request: Expectation((), {"score": seconds}, {}, 0.0), keeps=())
    monkeypatch.setitem(ESTIMATED_SEARCHES, "identify", uncounted)
    look = DeviceLookup("auto", faster_device_rule("identify", request(), 1))
    assert look.device(Progress()).name == name


@pytest.mark.parametrize(("requested", "name"), [("cuda", "cuda:0"), ("cuda:0", "cuda:0"), ("all", "cuda:0+cpu"), ("cpu", "cpu")])
def test_requested_device_is_used_without_comparison(requested, name):
    measure(GPU, start=1e6)
    measure(processor())
    assert taken(requested) == name


def test_run_and_estimate_explain_unused_gpu(tmp_path):
    measure(GPU, start=1e6)
    measure(processor(), times=1e4)
    result = estimate(search_of_kind("identify"), request())
    assert result.device == "cpu"
    assert result.alternatives["cuda:0"] > 0
    assert any("before a GPU is ready" in note for note in result.notes)
    requested = request()
    requested = SearchRequest(requested.inputs, requested.parameters, tmp_path / "project", threads=2)
    summary = identify(requested)
    assert summary.device == "cpu"
    assert "cuda:0 is not used: the CPU should finish before it is ready (--device cuda uses it)" in summary.messages


def test_faster_device_accepts_unreadable_files(tmp_path):
    measure(GPU)
    measure(processor())
    missing = SearchRequest({"spectra": [tmp_path / "no.mzML"], "database": [DATABASE]}, request().parameters)
    for kind, requested in (("identify", missing), ("a kind that is not there", request())):
        assert DeviceLookup("auto", faster_device_rule(kind, requested, 2)).device(Progress()).name == "cuda:0"


def write_spectra(path: Path, n: int) -> Path:
    peaks = "".join(f"{100.0 + 25.0 * i:.4f} {1000 - i}\n" for i in range(40))
    ions = (f"BEGIN IONS\nTITLE={i}\nPEPMASS={400.0 + i % 600}\nCHARGE=2+\n{peaks}END IONS\n" for i in range(n))
    path.write_text("\n".join(ions))
    return path


def write_proteins(path: Path, n: int) -> Path:
    sequence = "ACDEFGHIKLMNPQRSTVWY" * 22
    path.write_text("".join(f">protein{i}\n{sequence}\n" for i in range(n)))
    return path


@pytest.mark.parametrize(
    ("kind", "n_spectra", "n_queries", "n_database", "name"),
    [
        ("identify", 2269, 0, 6769, "cpu"),
        ("cluster", 39_212, 0, 0, "cpu"),
        ("structures", 0, 1, 855, "cpu"),
        ("align", 0, 1, 200, "cpu"),
        ("modified", 2269, 0, 27_583, "cuda:0"),
        ("align", 0, 90, 20_000, "cuda:0"),
        ("structures", 0, 60, 855, "cuda:0"),
    ],
)
def test_faster_device_selects_the_cpu_only_for_small_searches(kind, n_spectra, n_queries, n_database, name, tmp_path):
    measure(GPU, threads=16)
    measure(processor(), threads=16)
    search, inputs = search_of_kind(kind), dict[str, list[Path]]()
    if kind == "structures":
        chains = [tmp_path / f"chain{i}.pdb" for i in range(n_database)]
        for chain in chains:
            chain.write_bytes(as_pdb(atoms_of(helix(20))))
        inputs = {"queries": chains[:n_queries], "database": [tmp_path]}
    else:
        if n_spectra:
            inputs["spectra"] = [write_spectra(tmp_path / "spectra.mgf", n_spectra)]
        if n_queries:
            inputs["queries"] = [write_proteins(tmp_path / "queries.fasta", n_queries)]
        if n_database:
            inputs["database"] = [write_proteins(tmp_path / "database.fasta", n_database)]
    requested = SearchRequest(inputs, search.parameters_of(search.preset), threads=16)
    assert DeviceLookup("auto", faster_device_rule(kind, requested, 16)).device(Progress()).name == name
