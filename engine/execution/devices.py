"""Devices of this machine: the CPU, and usable GPUs; command lines of child processes that run this program.

Testing GPUs takes a second. GPUs that were usable within the last hour are not tested again unless something changed on which the
test depends: the start of the machine, the driver, its devices, CuPy, and the CUDA variables of the environment.
"""

import atexit
import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, Any

from pydantic import ConfigDict, with_config

from proteoscope import kernels
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.device_store import Facts
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.version import VERSION

__all__ = ["Device", "begin_contexts", "devices", "forget_gpus", "gpus", "own_program", "printed_lines", "processor", "resolve_device"]


def own_program(statements: str) -> list[str]:
    """Return the command line that runs Python statements with the interpreter and module path of this process.

    Parameters
    ----------
    statements : str
        Python statements separated by ``;``. They import the modules of this process, regardless of the content of the working directory.
    """
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {statements}"]


def printed_lines(file: IO[bytes]) -> list[str]:
    """Return the lines that a process has written to a file so far, without blank lines at the start and the end."""
    file.seek(0)
    return file.read().decode(errors="replace").strip().splitlines()


_SILENT_SECONDS = 30.0  # seconds without output until the driver counts as hung; importing CuPy and compiling took 10 s on a slow machine
_MAXIMUM_SECONDS = 60.0  # seconds of the whole test; later, it is not restarted without the GPU at which it failed
_CHECK_SECONDS = 0.05  # seconds between two checks for cancellation
_KILLED_SECONDS = 0.2
_REMEMBERED_SECONDS = 3600.0
_MAXIMUM_CHARACTERS = 300  # maximum characters of an error message of the test
_DRIVER = Path("/proc/driver/nvidia/version"), Path("/sys/module/nvidia/version")  # a container may have only one of them
_START = Path("/proc/sys/kernel/random/boot_id")
_REQUESTED = re.compile(r"auto|cpu|cuda|all|cuda:0*(?P<number>[0-9]{1,6})")


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Device:
    """A device, or several devices used together, such as all GPUs.

    Attributes
    ----------
    name
        Value of ``--device`` that selects the device.
    reason
        Reason why the device is not usable, or ''.
    driver, compute_capability
        Version of the NVIDIA driver, and compute capability such as 9.0; '' for the CPU, or if the driver cannot open the GPU.
    numbers
        Numbers of the CUDA devices; empty for the CPU.
    with_processor
        True if the CPU computes together with the GPUs.
    """

    name: str
    description: str
    memory_bytes: int
    usable: bool
    reason: str = ""
    driver: str = ""
    compute_capability: str = ""
    numbers: tuple[int, ...] = ()
    with_processor: bool = False


def devices() -> list[Device]:
    """Return all devices of this machine, with the CPU first.

    With a driver and CuPy, the first call runs a kernel on each GPU, which takes one or two seconds.
    """
    return [processor(), *gpus()]


@lru_cache
def processor() -> Device:
    """Return the CPU; GPUs are not detected."""
    return Device("cpu", f"{_processor_name()}, {available_threads()} threads", _memory_bytes(), True)


class _Gpus:
    """Callable object that returns the GPUs of this machine; the first call detects the GPUs, and concurrent calls wait for it."""

    def __init__(self) -> None:
        self._found: tuple[Device, ...] | None = None
        self._detection_lock = threading.Lock()

    def __call__(self, progress: Progress | None = None) -> tuple[Device, ...]:
        """Return the GPUs, usable or not; if GPUs cannot be listed, return a single device with the reason.

        A separate process tests the GPUs, so that a driver that crashes or hangs does not affect the program. If the process fails at a
        GPU, another process tests the following GPUs. `progress` shows the detection as a stage.

        Raises
        ------
        Cancelled
            If the user cancels.
        """
        if self._found is None:
            progress = progress or Progress()
            progress.stage("Looking for GPUs")
            while not self._detection_lock.acquire(timeout=_CHECK_SECONDS):
                progress.check()
            try:
                self._found = self._found or _remembered_gpus() or _remember_gpus(_listed(_probed(progress)))
            finally:
                self._detection_lock.release()
        return self._found

    def cache_clear(self) -> None:
        """Detect and test the GPUs again in the next call, for example after a driver was installed."""
        self._found = None
        forget_gpus()


gpus = _Gpus()
_TESTED: Facts[list[Device]] = Facts("gpus", list[Device], 1)


def _remembered_gpus() -> tuple[Device, ...]:
    """Return the GPUs that `_remember_gpus` stored; an empty tuple if they may have changed."""
    state = _machine_state()
    result = None if state is None else _TESTED.get(state, maximum_age=_REMEMBERED_SECONDS)
    return tuple(result) if result is not None and _are_usable(result) else ()


def _remember_gpus(tested: tuple[Device, ...]) -> tuple[Device, ...]:
    """Store the tested GPUs for later processes, if all are usable, and return them."""
    state = _machine_state()
    if state is not None and _are_usable(tested):
        _TESTED.store({state: [*tested]})
    return tested


def forget_gpus() -> None:
    """Remove the stored GPUs, so that the next process tests them again."""
    _TESTED.clear()


def _are_usable(tested: Sequence[Device]) -> bool:
    return [gpu.numbers for gpu in tested if gpu.usable and not gpu.reason] == [(number,) for number in range(len(tested))]


def _machine_state() -> str | None:
    """Return a digest of all facts on which the test of GPUs depends; None if the system does not report them."""
    try:
        cupy = importlib.util.find_spec("cupy")
        if cupy is None or cupy.origin is None:
            return None
        state = {
            "version": VERSION,
            "python": sys.executable,
            "driver": next(path.read_text(encoding="utf-8") for path in _DRIVER if path.exists()),
            "start": _START.read_text(encoding="utf-8"),
            "devices": sorted(path.name for path in Path("/dev").glob("nvidia*")),
            "cupy": [cupy.origin, Path(cupy.origin).stat().st_mtime],
            "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(("CUDA_", "NVIDIA_", "CUPY_"))},
        }
    except (OSError, ValueError, ImportError, StopIteration):
        return None
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def _listed(probe: dict[str, Any]) -> tuple[Device, ...]:
    listed = tuple(
        Device(
            f"cuda:{gpu['number']}",
            f"{gpu['name']}, compute capability {gpu['compute_capability'] or 'unknown'}, driver {probe['driver']} (CUDA {probe['cuda']})",
            gpu["memory_bytes"],
            gpu["usable"],
            gpu["reason"],
            probe["driver"],
            gpu["compute_capability"],
            (gpu["number"],),
        )
        for gpu in probe["devices"]
    )
    return listed or (Device("cuda", "no GPU", 0, False, probe["reason"] or "the NVIDIA driver shows no GPU", probe["driver"]),)


def resolve_device(requested: str, progress: Progress | None = None) -> Device:
    """Return the device for ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``all``.

    ``auto`` selects all usable GPUs, or the CPU if there is no usable GPU; ``all`` selects all usable GPUs and the CPU; ``cuda`` selects
    the first usable GPU. `progress` is checked for cancellation, and shows GPU detection if needed.

    Raises
    ------
    ParameterError
        If the device does not exist or is not usable; the message contains the reason.
    Cancelled
        If the user cancels.
    """
    if requested == "cpu":
        return processor()
    expected = _REQUESTED.fullmatch(requested)
    if expected is None:
        raise ParameterError(f"device = '{requested:.40}': expected auto, cpu, cuda, cuda:N or all")
    number, every = expected["number"], gpus(progress)
    usable = [gpu for gpu in every if gpu.usable]
    if requested == "auto" and not usable:
        return processor()
    for gpu in every:
        if number is not None and gpu.numbers == (int(number),):
            if gpu.usable:
                return gpu
            raise ParameterError(f"device = '{requested}': {gpu.description} is not usable: {gpu.reason}")
    if not usable:
        reasons = "; ".join(dict.fromkeys(gpu.reason for gpu in every))
        raise ParameterError(f"device = '{requested}': no GPU is usable: {reasons}. Use auto or cpu")
    if number is not None:
        raise ParameterError(f"device = '{requested}': not found; available GPUs: {', '.join(gpu.name for gpu in every)}")
    if requested == "cuda" or (requested == "auto" and len(usable) == 1):
        return usable[0]
    together = [*usable, processor()] if requested == "all" else usable
    return Device(
        "+".join(device.name for device in together),
        "; ".join(device.description for device in together),
        sum(gpu.memory_bytes for gpu in usable),
        True,
        driver=usable[0].driver,
        numbers=tuple(number for gpu in usable for number in gpu.numbers),
        with_processor=requested == "all",
    )


def begin_contexts(device: Device) -> None:
    """Create the CUDA contexts of a device's GPUs in background threads, so that opening the GPUs later is fast."""
    for number in device.numbers:
        threading.Thread(target=kernels.cuda.driver.begin_context, args=(number,), name=f"proteoscope-driver-{number}", daemon=True).start()


def _probed(progress: Progress) -> dict[str, Any]:
    """Return the report of the test program ``kernels/cuda/probe.py`` on all GPUs.

    If the program crashes at a GPU, the report contains the reason for this GPU, and another process tests the following GPUs.
    """
    began = time.monotonic()
    result = _probe(0, progress)
    while untried := [gpu for gpu in result["devices"] if not gpu["usable"] and not gpu["reason"]]:
        if not result["reason"] and time.monotonic() - began <= _MAXIMUM_SECONDS:
            first = untried[0]["number"]
            again = _probe(first, progress)
            result["devices"][first:], result["reason"] = again["devices"][first:] or untried, again["reason"]
        else:
            for gpu in untried:
                gpu["reason"] = result["reason"] or "it was not tested: the tests of other GPUs took too long"
    return result


def _probe(first: int, progress: Progress) -> dict[str, Any]:
    """Run the test program for the GPUs from index `first` on; return its last report. If it did not finish, the report has the reason."""
    result: dict[str, Any] = {"driver": "", "cuda": "", "reason": "", "devices": [], "step": "driver"}
    try:
        # Files, not pipes: a full pipe would block the process, and a process that cannot be killed would block the reader.
        with (
            as_file(files(kernels.cuda) / "probe.py") as program,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as complaint,
        ):
            command = [sys.executable, str(program), str(first)]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=complaint)
            problem = _ending(process, output, progress)
            for line in printed_lines(output):
                with contextlib.suppress(ValueError):
                    answer = json.loads(line)
                    if isinstance(answer, dict) and "step" in answer:
                        result = answer
            if problem.startswith("ended"):
                problem = f"{problem} {''.join(printed_lines(complaint)[-1:])[:_MAXIMUM_CHARACTERS]}".strip()
    except OSError as error:
        problem = f"could not be started: {error}"
    step = result["step"]
    if isinstance(step, int):
        result["devices"][step]["reason"] = f"a test kernel {problem}"
    elif step != "done":
        result["reason"] = f"{'CuPy' if step == 'CuPy' else 'the program that tests the NVIDIA driver'} {problem}"
    return result


def _ending(process: subprocess.Popen[bytes], output: IO[bytes], progress: Progress) -> str:
    """Wait until a process ends or prints nothing for too long; return a description of how it ended.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    atexit.register(process.kill)
    size, heard = 0, time.monotonic()
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(_CHECK_SECONDS)
                progress.check()
                return f"ended with signal {-code}" if code < 0 else f"ended with code {code}"
            progress.check()
            before, size = size, os.fstat(output.fileno()).st_size
            if size > before:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENT_SECONDS:
                return f"did not answer within {_SILENT_SECONDS:g} seconds"
    finally:
        atexit.unregister(process.kill)
        process.kill()
        # A process that is stuck in the driver ends only when the driver call returns.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILLED_SECONDS)


def _processor_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "processor"


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
