"""What the probe of the GPUs says decides what a wish gives; whatever befalls the probe becomes a reason, not a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest

from engine.errors import ParameterError
from engine.execution import devices as module
from engine.execution.devices import chosen_device, devices, gpus


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


def test_auto_and_cuda_take_the_first_usable_gpu(machine: Callable[..., None]) -> None:
    machine(gpu(0, usable=False, reason="a test kernel does not run"), gpu(1), gpu(2))
    assert chosen_device("auto").name == "cuda:1"
    assert chosen_device("cuda").numbers == (1,)
    assert chosen_device("cuda:2").numbers == (2,)
    assert chosen_device("cpu").numbers == ()
    assert "compute capability 8.9" in devices()[2].description
    assert devices()[2].driver == "580.1"


def test_all_stands_for_every_usable_gpu(machine: Callable[..., None]) -> None:
    machine(gpu(0), gpu(1, usable=False, reason="broken"), gpu(2))
    assert chosen_device("all").numbers == (0, 2)
    assert chosen_device("all").name == "cuda:0+cuda:2"
    assert chosen_device("all").memory_bytes == 16 << 30
    machine(gpu(0))
    assert chosen_device("all").name == "cuda:0"


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


def test_the_probe_answers_in_one_line_on_this_machine() -> None:
    done = subprocess.run([sys.executable, str(files("kernels.cuda") / "probe.py")], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert set(found) == {"driver", "cuda", "reason", "devices"}
    assert found["reason"] or found["devices"]


def test_cupy_is_not_imported_before_a_card_is_opened() -> None:
    code = "import sys, engine.execution.gpu, kernels.cuda.scoring; print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
