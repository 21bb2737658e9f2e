"""Whether a GPU is worth its start is decided by the calibrations of this machine, or those that ship, unless a device is requested."""

from __future__ import annotations

import pytest

from proteoscope import resources
from proteoscope.engine.entry import WORKLOAD_ESTIMATORS, SearchRequest
from proteoscope.engine.estimates import Expectation, estimate, faster_device_rule
from proteoscope.engine.execution.cost.calibration_store import store_calibration
from proteoscope.engine.execution.cost.parameters import DeviceParameters, KindCosts
from proteoscope.engine.execution.cost.reference import reference_parameters
from proteoscope.engine.execution.device_lookup import DeviceLookup
from proteoscope.engine.execution.devices import Device, processor
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.search import identify
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.searches import search_of_kind

CARD = Device("cuda:0", "a card", 1 << 34, True, numbers=(0,))
SPECTRA, DATABASE = (resources.path("samples", name) for name in ("Ecoli_MS2_small.mzML.gz", "18Protein_SoCe_Tr_detergents_trace.fasta.gz"))


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine with a card, of which nothing was measured."""
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("proteoscope.kernels.cuda.driver.identity", lambda number: f"GPU-{number}")
    for module in ("proteoscope.engine.estimates", "proteoscope.engine.execution.devices", "proteoscope.engine.search_run"):
        monkeypatch.setattr(f"{module}.gpus", lambda *_: (CARD,))


def measure(device: Device, *, times: float = 1.0, start: float = 0.9) -> DeviceParameters:
    """Keep what a device is: so many times as slow as the one that ships."""
    shipped = reference_parameters(device, 2)
    kinds = {
        name: KindCosts.model_validate(one.model_dump() | {"kernel": tuple(times * seconds for seconds in one.kernel)})
        for name, one in shipped.kinds.items()
    }
    found = shipped.model_copy(update={"kinds": kinds, "start": start})
    store_calibration(device, 2, found)
    return found


def request(device: str = "auto") -> SearchRequest:
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
    return SearchRequest({"spectra": [SPECTRA], "database": [DATABASE]}, parameters, device=device, threads=2)


def taken(device: str = "auto") -> str:
    return DeviceLookup(device, faster_device_rule("identify", request(device), 2)).device(Progress()).name


def test_the_calibration_decides_whether_a_card_is_opened():
    measure(CARD)
    measure(processor())
    assert taken() == "cpu", "a small search is done before the card is ready"
    measure(processor(), times=1e4)
    assert taken() == "cuda:0", "a slow processor is not"
    measure(CARD, start=1e6)
    assert taken() == "cpu", "nor is a card that takes long to be opened"
    measure(CARD, times=1e9, start=0.0)
    assert taken() == "cpu", "nor one that is slower than the processor"


def test_faster_device_uses_shipped_calibrations_where_none_is_stored():
    assert taken() == "cpu", "a small search"
    measure(processor(), times=1e4)
    assert taken() == "cuda:0", "by the card that ships"
    measure(CARD, start=1e6)
    assert taken() == "cpu"


def test_faster_device_looks_for_no_gpu_where_none_could_be_ready(monkeypatch):
    monkeypatch.setattr("proteoscope.engine.execution.device_lookup.resolve_device", lambda wish: pytest.fail("looked for a GPU"))
    look = DeviceLookup("auto", faster_device_rule("identify", request(), 2))
    assert (look.device(Progress()).name, look.requested) == ("cpu", "cpu")


@pytest.mark.parametrize(("seconds", "name"), [(0.5, "cpu"), (2.0, "cuda:0")])
def test_faster_device_of_uncounted_workloads_depends_on_the_step(monkeypatch, seconds, name):
    monkeypatch.setitem(WORKLOAD_ESTIMATORS, "identify", lambda: lambda request: Expectation((), {"score": seconds}, {}, 0.0))
    look = DeviceLookup("auto", faster_device_rule("identify", request(), 1))
    assert look.device(Progress()).name == name


@pytest.mark.parametrize(("wish", "name"), [("cuda", "cuda:0"), ("cuda:0", "cuda:0"), ("all", "cuda:0+cpu"), ("cpu", "cpu")])
def test_what_the_user_asks_for_is_taken(wish, name):
    measure(CARD, start=1e6)
    measure(processor())
    assert taken(wish) == name


def test_a_run_and_its_estimate_say_what_was_not_taken_and_why(tmp_path):
    measure(CARD, start=1e6)
    measure(processor(), times=1e4)
    found = estimate(search_of_kind("identify"), request())
    assert found.device == "cpu"
    assert found.alternatives["cuda:0"] > 0
    assert any("before a GPU is ready" in note for note in found.notes)
    asked = request()
    asked = SearchRequest(asked.inputs, asked.parameters, tmp_path / "project", threads=2)
    summary = identify(asked)
    assert summary.device == "cpu"
    assert "cuda:0 is not used: the CPU should finish before it is ready (--device cuda uses it)" in summary.messages


def test_files_that_cannot_be_looked_at_are_left_to_the_search(tmp_path):
    measure(CARD)
    measure(processor())
    missing = SearchRequest({"spectra": [tmp_path / "no.mzML"], "database": [DATABASE]}, request().parameters)
    for kind, asked in (("identify", missing), ("a kind that is not there", request())):
        assert DeviceLookup("auto", faster_device_rule(kind, asked, 2)).device(Progress()).name == "cuda:0"
