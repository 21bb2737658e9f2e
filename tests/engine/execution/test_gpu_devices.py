"""What the probe of the GPUs says decides what a wish gives; whatever befalls the probe becomes a reason, not a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.resources import files
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.errors import ParameterError
from engine.execution import devices as module
from engine.execution.devices import chosen_device, devices, gpus
from kernels.cuda import probe


def gpu(number: int, *, usable: bool = True, reason: str = "") -> dict[str, Any]:
    return {
        "number": number, "name": f"GPU {number}", "memory_bytes": 8 << 30, "compute_capability": "8.9", "usable": usable, "reason": reason,
    }  # fmt: skip


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A machine with the given GPUs."""

    def have(*found: dict[str, Any], reason: str = "") -> None:
        answer = {"driver": "580.1", "cuda": "13.0", "reason": reason, "devices": list(found)}
        monkeypatch.setattr(module, "_probed", lambda: answer)
        gpus.cache_clear()

    gpus.cache_clear()
    yield have
    gpus.cache_clear()


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A probe that ends in the given way."""

    def end(code: int = 0, output: str = "", complaint: str = "", error: Exception | None = None) -> None:
        def run(*_: Any, **__: Any) -> subprocess.CompletedProcess[str]:
            if error:
                raise error
            return subprocess.CompletedProcess([], code, output, complaint)

        monkeypatch.setattr(module.subprocess, "run", run)
        gpus.cache_clear()

    yield end
    gpus.cache_clear()


def test_auto_takes_all_usable_gpus_and_cuda_the_first(machine: Callable[..., None]) -> None:
    machine(gpu(0, usable=False, reason="a test kernel does not run"), gpu(1), gpu(2))
    assert chosen_device("auto").name == "cuda:1+cuda:2"
    assert chosen_device("auto").numbers == (1, 2)
    assert not chosen_device("auto").with_processor
    assert chosen_device("cuda").numbers == (1,)
    assert chosen_device("cuda:2").numbers == (2,)
    assert chosen_device("cpu").numbers == ()
    assert "compute capability 8.9" in devices()[2].description
    assert devices()[2].driver == "580.1"


def test_all_stands_for_every_usable_gpu_and_the_processor(machine: Callable[..., None]) -> None:
    machine(gpu(0), gpu(1, usable=False, reason="broken"), gpu(2))
    chosen = chosen_device("all")
    assert chosen.numbers == (0, 2)
    assert chosen.with_processor
    assert chosen.name == "cuda:0+cuda:2+cpu"
    assert chosen.memory_bytes == 16 << 30
    machine(gpu(0))
    assert chosen_device("all").name == "cuda:0+cpu"
    assert chosen_device("auto").name == "cuda:0"


def test_a_wish_that_cannot_be_met_says_why(machine: Callable[..., None]) -> None:
    machine(gpu(0, usable=False, reason="CuPy is not installed"), reason="CuPy is not installed")
    assert chosen_device("auto").name == "cpu"
    for wish in ("cuda", "all", "cuda:0", "cuda:3"):
        with pytest.raises(ParameterError, match="CuPy is not installed"):
            chosen_device(wish)
    machine(gpu(0))
    with pytest.raises(ParameterError, match=r"cuda:3.*no such GPU.*cuda:0"):
        chosen_device("cuda:3")
    machine(reason="no NVIDIA driver is installed")
    with pytest.raises(ParameterError, match="no NVIDIA driver"):
        chosen_device("cuda")


def test_a_probe_that_crashes_or_hangs_becomes_a_reason(ended: Callable[..., None]) -> None:
    ended(-11)
    assert "signal 11" in gpus()[0].reason
    ended(1, complaint="Traceback\nMemoryError: none left")
    assert "MemoryError: none left" in gpus()[0].reason
    ended(error=subprocess.TimeoutExpired("probe", 60))
    assert "did not answer" in gpus()[0].reason
    ended(error=OSError("no such program"))
    assert "no such program" in gpus()[0].reason
    assert not any(device.usable for device in gpus())


class Cupy(ModuleType):
    """A CuPy that needs a version of CUDA and sees two GPUs, of which the second cannot run what it compiles."""

    def __init__(self, needs: int) -> None:
        super().__init__("cupy")
        self.__spec__ = ModuleSpec("cupy", None)
        properties = {"name": b"GPU", "totalGlobalMem": 8 << 30, "major": 8, "minor": 9}
        runtime = SimpleNamespace(
            runtimeGetVersion=lambda: needs, getDeviceCount=lambda: 2, getDeviceProperties=lambda number: properties
        )  # fmt: skip
        self.used: list[int] = []

        @contextmanager
        def device(number: int) -> Iterator[None]:
            self.used.append(number)
            yield

        def run(blocks: Any, threads: Any, arguments: tuple) -> None:
            if self.used[-1] == 1:
                raise RuntimeError("no kernel image is available\n\n  for execution on the device")
            arguments[0].values = np.arange(32, dtype=np.uint32) * 3 + 1

        def zeros(n: int, kind: Any) -> Any:
            array = SimpleNamespace(values=np.zeros(n, kind))
            array.get = lambda: array.values
            return array

        self.zeros = zeros
        self.cuda = SimpleNamespace(runtime=runtime, Device=device)
        self.RawModule = lambda **_: SimpleNamespace(get_function=lambda name: run)
        self.uint32 = np.uint32


@pytest.mark.parametrize(
    ("driver", "cuda", "needs", "reason"),
    [
        ("470.1", "11.4", 12000, "the driver 470.1 runs CUDA 11.4, at least 12.0 is needed; update the driver"),
        ("535.2", "12.2", 13000, "the CuPy that is installed needs 13.0; update the driver or install the extra 'cuda12' instead"),
    ],
)
def test_an_old_driver_is_named_with_what_to_do(driver: str, cuda: str, needs: int, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", Cupy(needs))
    found: dict[str, Any] = {"driver": driver, "cuda": cuda, "reason": "", "devices": []}
    probe.try_devices(found)
    assert found["reason"].endswith(reason)
    assert "\n" not in found["reason"]


def test_without_cupy_the_extra_that_suits_the_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: None)
    for cuda, extra in (("12.8", "cuda12"), ("13.0", "cuda13")):
        found: dict[str, Any] = {"driver": "580.1", "cuda": cuda, "reason": "", "devices": []}
        probe.try_devices(found)
        assert f"proteoscope[{extra}]" in found["reason"]


def test_a_gpu_that_does_not_run_the_test_kernel_says_why_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", Cupy(13000))
    found: dict[str, Any] = {"driver": "580.1", "cuda": "13.0", "reason": "", "devices": []}
    probe.try_devices(found)
    first, second = found["devices"]
    assert first["usable"]
    assert not first["reason"]
    assert not second["usable"]
    assert second["reason"] == (
        "a test kernel does not run: RuntimeError: no kernel image is available for execution on the device"
    )  # fmt: skip


def test_the_probe_answers_in_one_line_on_this_machine() -> None:
    done = subprocess.run([sys.executable, str(files("kernels.cuda") / "probe.py")], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert set(found) == {"driver", "cuda", "reason", "devices"}
    assert found["reason"] or found["devices"]


def test_cupy_is_not_imported_before_a_card_is_opened() -> None:
    code = "import sys, engine.execution.workers, kernels.cuda.scoring; print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
