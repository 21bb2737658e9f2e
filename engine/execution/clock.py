"""Measurement of the time and the peak memory of the stages of a run."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["COMPILATION", "StageClock"]

COMPILATION = "compile"
"""Name of the stage in which kernels are compiled, which happens once on a machine and is not part of the time of a run."""

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_SCHEDULING, _MACHINE = Path("/proc/thread-self/schedstat"), Path("/proc/stat")
_BUSY = 0, 1, 2, 5, 6, 7  # columns of `_MACHINE`: user, nice, system, irq, softirq, steal
_SHORT = 0.01  # minimum seconds of computing; with fewer, the waiting time may be due to chance


class _CpuUse(NamedTuple):
    """CPU seconds of this thread, of this process and of the whole machine, and seconds for which this thread waited for a CPU."""

    thread: float = 0.0
    waited: float = 0.0
    process: float = 0.0
    machine: float = 0.0


class StageClock:
    """Clock of named stages; if a stage is entered several times, the seconds are added.

    Attributes
    ----------
    stages : dict
        Maps the name of a stage to ``{"seconds": float, "peak_memory_mb": float}``: wall time, and the peak resident memory of the process
        during the stage in megabytes (10^6 bytes). If the system cannot reset the peak, it is the peak since the start of the process.
    workload_seconds : dict
        Maps a workload type to the busy seconds of each device, by device name.
    """

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, float]] = {}
        self.workload_seconds: dict[str, dict[str, float]] = {}
        self._began = _cpu_use()

    @property
    def seconds(self) -> float:
        """Sum of the seconds of all stages, without compilation."""
        return sum(stage["seconds"] for name, stage in self.stages.items() if name != COMPILATION)

    def cpu_share(self) -> float:
        """Return the CPU time of this thread as a fraction of the CPU time that it would have had without other programs.

        The fraction is small if other programs use the CPUs, and 1 if the system does not report it. The calling thread must be the thread
        that created the clock. The thread's waiting time is attributed to other programs in proportion to their fraction of the machine's
        CPU time.
        """
        used = _CpuUse(*(now - before for now, before in zip(_cpu_use(), self._began, strict=True)))
        if min(used) < 0.0 or used.thread < _SHORT or used.machine <= 0.0:
            return 1.0
        others = max(0.0, 1.0 - used.process / used.machine)
        return used.thread / (used.thread + others * used.waited)

    def add_work(self, kind: str, device: str, seconds: float) -> None:
        """Add busy seconds of a device for workload type `kind`."""
        of_kind = self.workload_seconds.setdefault(kind, {})
        of_kind[device] = round(of_kind.get(device, 0.0) + seconds, 4)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds and the peak memory of the ``with`` block to the stage `name`."""
        with suppress(OSError):
            _RESET.write_text("5", encoding="ascii")  # Linux: resets the peak memory to the present memory
        began = time.perf_counter()
        try:
            yield
        finally:
            entry = self.stages.setdefault(name, {"seconds": 0.0, "peak_memory_mb": 0.0})
            entry["seconds"] = round(entry["seconds"] + time.perf_counter() - began, 4)
            entry["peak_memory_mb"] = max(entry["peak_memory_mb"], _peak_memory_mb())


def _cpu_use() -> _CpuUse:
    """Return the CPU seconds so far; zeros if the system does not report them."""
    try:
        thread, waited = (int(word) / 1e9 for word in _SCHEDULING.read_text(encoding="ascii").split()[:2])
        columns = _MACHINE.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
        machine = sum(int(columns[i]) for i in _BUSY) / os.sysconf("SC_CLK_TCK")
        return _CpuUse(thread, waited, sum(os.times()[:4]), machine)
    except (OSError, ValueError, IndexError, AttributeError):
        return _CpuUse()


def _peak_memory_mb() -> float:
    with suppress(OSError):
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return round(int(line.split()[1]) * 1024 / 1e6, 1)
    try:
        import resource as system  # not on Windows
    except ImportError:
        return 0.0
    peak = system.getrusage(system.RUSAGE_SELF).ru_maxrss
    return round(peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6, 1)
