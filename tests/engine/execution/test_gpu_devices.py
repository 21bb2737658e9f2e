"""The probe of GPUs decides how names resolve; any failure of the probe becomes a reason, not a crash."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.resources import files
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution import devices as module
from proteoscope.engine.execution.devices import devices, gpus, resolve_device
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.kernels.cuda import probe

REPOSITORY = Path(__file__).resolve().parents[3]


def gpu(number: int, *, usable: bool = True, reason: str = "") -> dict[str, Any]:
    return {
        "number": number,
        "name": f"GPU {number}",
        "memory_bytes": 8 << 30,
        "compute_capability": "8.9",
        "usable": usable,
        "reason": reason,
    }


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that sets the GPUs of the machine."""

    def set_gpus(*listed: dict[str, Any], reason: str = "") -> None:
        answer = {"driver": "580.1", "cuda": "13.0", "reason": reason, "devices": list(listed)}
        monkeypatch.setattr(module, "_probed", lambda progress: answer)
        gpus.cache_clear()

    gpus.cache_clear()
    yield set_gpus
    gpus.cache_clear()


NVML = r"""
#include <cstdlib>
#include <cstring>
extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned) { strcpy(text, "580.65"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int* version) { *version = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** handle) {
    const char* lost = getenv("FAKE_LOST");
    *handle = nullptr;
    return lost && atoi(lost) == static_cast<int>(i) ? 15 : 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned) { strcpy(text, "NVIDIA G\xe9"); return 0; }
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) { memory[0] = 8ull << 30; return 0; }
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) { *major = 8; *minor = 9; return 0; }
const char* nvmlErrorString(int) { return "GPU is lost"; }
}
"""

CUPY = """
import os, signal, sys, time
from types import SimpleNamespace

what, _, where = os.environ["FAKE_FALL"].partition(" ")


def fall(at):
    if at == where and what == "crash":
        os.write(2, b"a driver\\ncomplains \\xff")
        os.kill(os.getpid(), signal.SIGKILL)
    if at == where and what == "hang":
        open(os.environ["FAKE_MARK"], "w").write(str(os.getpid()))
        time.sleep(60)


print("hello from an import hook", end="")
fall("import")
uint32 = int
zeros = lambda n, kind: SimpleNamespace(get=lambda: SimpleNamespace(tolist=lambda: [3 * i + 1 for i in range(32)]))
COUNT = int(os.environ.get("FAKE_COUNT", "3"))


class runtime:
    runtimeGetVersion = staticmethod(lambda: 13000)

    @staticmethod
    def getDeviceCount():
        if COUNT == 0:
            raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        return COUNT

    @staticmethod
    def getDeviceProperties(number):
        return {"name": b"Fake \\xe9 %d" % number, "totalGlobalMem": 8 << 30, "major": 9, "minor": 0}


class Device:
    def __init__(self, number):
        self.number = number

    def __enter__(self):
        fall(str(self.number))

    def __exit__(self, *_):
        pass


cuda = SimpleNamespace(runtime=runtime, Device=Device)
RawModule = lambda **_: SimpleNamespace(get_function=lambda name: lambda *_: None)
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with a driver library of three GPUs and a fake CuPy."""
    if sys.platform != "linux" or shutil.which("g++") is None:
        pytest.skip("the fake driver is compiled with g++ on Linux")
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "nvml.cpp").write_text(NVML)
    subprocess.run(["g++", "-shared", "-fPIC", str(folder / "nvml.cpp"), "-o", str(folder / "libnvidia-ml.so.1")], check=True)
    (folder / "cupy").mkdir()
    (folder / "cupy" / "__init__.py").write_text(CUPY)
    return folder


@pytest.fixture
def driver(libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Return a function that sets up three GPUs and a CuPy that fails as given ("crash 1", "hang import") and returns its hang marker."""

    def set_driver(fall: str = "", **variables: str) -> Path:
        mark = tmp_path / "hangs"
        mark.unlink(missing_ok=True)
        for name, value in {"FAKE_FALL": fall, "FAKE_MARK": str(mark), "LD_LIBRARY_PATH": str(libraries), **variables}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PYTHONPATH", str(libraries))
        gpus.cache_clear()
        return mark

    gpus.cache_clear()
    yield set_driver
    gpus.cache_clear()


@pytest.fixture
def set_probe_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that replaces the probe by a program."""

    def play(program: str) -> None:
        (tmp_path / "probe.py").write_text(program)
        monkeypatch.setattr(module, "files", lambda package: tmp_path)
        gpus.cache_clear()

    yield play
    gpus.cache_clear()


def test_device_auto_selects_all_usable_gpus_and_cuda_the_first(machine: Callable[..., None]) -> None:
    machine(gpu(0, usable=False, reason="a test kernel does not run"), gpu(1), gpu(2))
    assert resolve_device("auto").name == "cuda:1+cuda:2"
    assert resolve_device("auto").numbers == (1, 2)
    assert not resolve_device("auto").with_processor
    assert resolve_device("cuda").numbers == (1,)
    assert resolve_device("cuda:2").numbers == (2,)
    assert resolve_device("cpu").numbers == ()
    assert "compute capability 8.9" in devices()[2].description
    assert devices()[2].driver == "580.1"


def test_device_all_selects_every_usable_gpu_and_the_cpu(machine: Callable[..., None]) -> None:
    machine(gpu(0), gpu(1, usable=False, reason="broken"), gpu(2))
    chosen = resolve_device("all")
    assert chosen.numbers == (0, 2)
    assert chosen.with_processor
    assert chosen.name == "cuda:0+cuda:2+cpu"
    assert chosen.memory_bytes == 16 << 30
    machine(gpu(0))
    assert resolve_device("all").name == "cuda:0+cpu"
    assert resolve_device("auto").name == "cuda:0"


def test_unusable_device_error_gives_the_reason(machine: Callable[..., None]) -> None:
    machine(gpu(0, usable=False, reason="CuPy is not installed"), reason="CuPy is not installed")
    assert resolve_device("auto").name == "cpu"
    for name in ("cuda", "all", "cuda:0", "cuda:3"):
        with pytest.raises(ParameterError, match="CuPy is not installed"):
            resolve_device(name)
    machine(gpu(0))
    with pytest.raises(ParameterError, match=r"cuda:3.*not found; available GPUs: cuda:0"):
        resolve_device("cuda:3")
    machine(reason="no NVIDIA driver is installed")
    with pytest.raises(ParameterError, match="no NVIDIA driver"):
        resolve_device("cuda")


def test_other_gpus_remain_usable_if_one_crashes_the_probe(driver: Callable[..., Path]) -> None:
    for number, usable in ((0, [1, 2]), (1, [0, 2]), (2, [0, 1])):
        driver(f"crash {number}")
        probed = gpus()
        assert [gpu.numbers[0] for gpu in probed if gpu.usable] == usable
        assert probed[number].reason == "a test kernel ended with signal 9 complains \ufffd"
        assert probed[number].description == f"Fake \ufffd {number}, compute capability 9.0, driver 580.65 (CUDA 13.0)"
        assert resolve_device("auto").numbers == tuple(usable)


def test_other_gpus_remain_usable_if_one_hangs_the_probe(driver: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SILENT_SECONDS", 1.5)
    mark = driver("hang 1")
    assert [gpu.usable for gpu in gpus()] == [True, False, True]
    assert gpus()[1].reason == "a test kernel did not answer within 1.5 seconds"
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_gpu_probe_is_not_repeated_after_its_time_limit(driver: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAXIMUM_SECONDS", 0.0)
    driver("crash 1")
    assert [gpu.usable for gpu in gpus()] == [True, False, False]
    assert gpus()[2].reason == "it was not tested: the tests of other GPUs took too long"


def test_gpus_are_listed_by_the_driver_when_cupy_crashes(driver: Callable[..., Path]) -> None:
    driver("crash import")
    assert [gpu.name for gpu in gpus()] == ["cuda:0", "cuda:1", "cuda:2"]
    for gpu in gpus():
        assert gpu.description == "NVIDIA G\ufffd, compute capability 8.9, driver 580.65 (CUDA 13.0)"
        assert gpu.reason.startswith("CuPy ended with signal 9")


@pytest.mark.parametrize(("fall", "number"), [("", 2), ("crash 0", 2), ("crash import", 1)])
def test_gpu_that_cannot_be_opened_is_listed_with_the_reason(fall: str, number: int, driver: Callable[..., Path]) -> None:
    driver(fall, FAKE_LOST="1", FAKE_COUNT="2")
    assert [gpu.numbers for gpu in gpus()] == [(0,), (1,), (2,)]
    lost = gpus()[number]
    assert lost.reason == "the NVIDIA driver cannot open it: GPU is lost (error 15)"
    assert lost.description.startswith("GPU 1 of the driver's list, compute capability unknown, driver 580.65")
    assert sum(gpu.usable for gpu in gpus()) == {"": 2, "crash 0": 1, "crash import": 0}[fall]


@pytest.mark.parametrize("visible", ["", "-1", "7"])
def test_hidden_gpus_error_names_cuda_visible_devices(visible: str, driver: Callable[..., Path]) -> None:
    driver(FAKE_COUNT="0", CUDA_VISIBLE_DEVICES=visible)
    assert f"CUDA_VISIBLE_DEVICES is '{visible}'; unset it" in gpus()[0].reason


def test_cancel_stops_a_hanging_gpu_probe(driver: Callable[..., Path]) -> None:
    mark = driver("hang import")
    events: list[ProgressEvent] = []
    progress = Progress(events.append)

    def cancel() -> None:
        while not mark.exists() or not mark.read_text():
            time.sleep(0.01)
        progress.cancel()

    helper = threading.Thread(target=cancel)
    helper.start()
    with pytest.raises(Cancelled):
        resolve_device("auto", progress)
    helper.join()
    assert [event.stage for event in events] == ["Looking for GPUs"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
    driver()
    assert all(gpu.usable for gpu in gpus()), "a cancelled probe has no later effect"


def test_cancel_stops_waiting_for_gpu_probe_of_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ends, probes = threading.Event(), threading.Event(), []

    def probed(progress: Progress) -> dict[str, Any]:
        probes.append(progress)
        begun.set()
        ends.wait(20)
        return {"driver": "580.1", "cuda": "13.0", "reason": "", "devices": [gpu(0)]}

    monkeypatch.setattr(module, "_probed", probed)
    gpus.cache_clear()
    other = threading.Thread(target=gpus)
    other.start()
    begun.wait(20)
    cancelled = Progress()
    helper = threading.Timer(0.1, cancelled.cancel)
    helper.start()
    with pytest.raises(Cancelled):
        resolve_device("auto", cancelled)
    helper.join()
    ends.set()
    assert resolve_device("auto").name == "cuda:0"
    other.join()
    assert len(probes) == 1
    gpus.cache_clear()


def test_crashing_or_hanging_gpu_probe_gives_a_reason(set_probe_program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    set_probe_program("import os; os.kill(os.getpid(), 9)")
    assert gpus()[0].reason == "the program that tests the NVIDIA driver ended with signal 9"
    set_probe_program("raise MemoryError('none left')")
    assert gpus()[0].reason.endswith("ended with code 1 MemoryError: none left")
    set_probe_program("print('[]'); print('{')")
    assert gpus()[0].reason.endswith("ended with code 0")
    monkeypatch.setattr(module, "_SILENT_SECONDS", 0.2)
    set_probe_program("import time; time.sleep(60)")
    assert "did not answer" in gpus()[0].reason
    assert not any(device.usable for device in gpus())

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no such program")

    monkeypatch.setattr(module.subprocess, "Popen", refuse)
    gpus.cache_clear()
    assert "no such program" in gpus()[0].reason


class Cupy(ModuleType):
    """A CuPy that requires a version of CUDA and has two GPUs; the second cannot run compiled kernels."""

    def __init__(self, needs: int) -> None:
        super().__init__("cupy")
        self.__spec__ = ModuleSpec("cupy", None)
        properties = {"name": b"GPU", "totalGlobalMem": 8 << 30, "major": 8, "minor": 9}
        runtime = SimpleNamespace(runtimeGetVersion=lambda: needs, getDeviceCount=lambda: 2, getDeviceProperties=lambda number: properties)
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
        ("470.1", "11.4", 12000, "the driver 470.1 runs CUDA 11.4, but at least 12.0 is needed; update the driver"),
        (
            "535.2",
            "12.2",
            13000,
            "but the installed CuPy needs 13.0; update the driver, or uninstall this CuPy and install another:"
            " pip install cupy-cuda12x nvidia-cuda-nvrtc-cu12",
        ),
    ],
)
def test_error_for_an_old_gpu_driver_has_a_remedy(driver: str, cuda: str, needs: int, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", Cupy(needs))
    answer: dict[str, Any] = {"driver": driver, "cuda": cuda, "reason": "", "devices": []}
    probe.try_devices(answer)
    assert answer["reason"].endswith(reason)
    assert "\n" not in answer["reason"]


def test_error_without_cupy_names_the_package_for_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: None)
    for cuda, extra in (("12.8", "cuda12"), ("13.0", "cuda13"), ("14.1", "cuda13")):
        answer: dict[str, Any] = {"driver": "580.1", "cuda": cuda, "reason": "", "devices": []}
        probe.try_devices(answer)
        packages = " ".join(requirement.partition(">=")[0] for requirement in extras[extra])
        assert answer["reason"] == f"CuPy is not installed; to install it: pip install {packages}"


def test_gpu_with_a_failing_test_kernel_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", Cupy(13000))
    answer: dict[str, Any] = {"driver": "580.1", "cuda": "13.0", "reason": "", "devices": []}
    probe.try_devices(answer)
    first, second = answer["devices"]
    assert first["usable"]
    assert not first["reason"]
    assert not second["usable"]
    assert second["reason"] == ("a test kernel does not run: RuntimeError: no kernel image is available for execution on the device")


def test_last_line_printed_by_gpu_probe_is_the_json_answer() -> None:
    done = subprocess.run([sys.executable, str(files("proteoscope.kernels.cuda") / "probe.py")], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert set(answer) == {"driver", "cuda", "reason", "devices", "step"}
    assert answer["step"] == "done"
    assert answer["reason"] or answer["devices"]


def test_cupy_is_not_imported_before_a_kernel_is_compiled() -> None:
    code = "import sys, proteoscope.engine.execution.device_lookup, proteoscope.kernels.cuda.scoring; print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
