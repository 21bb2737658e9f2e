"""GPU that records the times of its kernels and transfers by the clock of the device."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from proteoscope.kernels.cuda.modules import CudaGpu

__all__ = ["TimedGpu"]


class TimedGpu(CudaGpu):
    """GPU that measures the times of its kernels and transfers while `is_noting` is True; this slows searches with many launches.

    Attributes
    ----------
    events
        Name, start and end of each kernel and transfer (``transfer``) since the events were last read.
    """

    is_noting = True

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.events: list[tuple[str, Any, Any]] = []

    def launch(self, file: str, kernel: str, *arguments: Any, **options: Any) -> None:
        """Start a kernel and record its time (see `Gpu`)."""
        self._noted(kernel, arguments[3], lambda: super(TimedGpu, self).launch(file, kernel, *arguments, **options))

    def upload(self, buffer: Any, values: NDArray, stream: Any, *, offset: int = 0) -> None:
        """Copy an array to a buffer and record the time (see `Gpu`)."""
        self._noted("transfer", stream, lambda: super(TimedGpu, self).upload(buffer, values, stream, offset=offset))

    def download(self, values: NDArray, buffer: Any, stream: Any, *, offset: int = 0) -> None:
        """Copy bytes of a buffer to an array and record the time (see `Gpu`)."""
        self._noted("transfer", stream, lambda: super(TimedGpu, self).download(values, buffer, stream, offset=offset))

    def _noted(self, name: str, stream: Any, call: Any) -> None:
        if not self.is_noting:
            call()
            return
        start = self.record(stream, is_timed=True)
        call()
        self.events.append((name, start, self.record(stream, is_timed=True)))

    def kernel_seconds(self) -> dict[str, float]:
        """Return the seconds in each kernel since the events were last read, summed over streams."""
        seconds: dict[str, float] = {}
        for kernel, start, stop in self.events:
            if kernel != "transfer":
                seconds[kernel] = seconds.get(kernel, 0.0) + self.seconds_between(start, stop)
        self.events.clear()
        return {kernel: round(value, 6) for kernel, value in seconds.items()}

    def busy_seconds(self) -> tuple[float, float]:
        """Return the seconds with a running kernel, and the seconds with transfers only, since the events were last read."""
        if not self.events:
            return 0.0, 0.0
        self._context.call(self._cuda.cuCtxSynchronize)
        base = self.events[0][1]
        spans = [(name, self.seconds_between(base, start), self.seconds_between(base, stop)) for name, start, stop in self.events]
        self.events.clear()
        of_kernels = _covered([(begin, end) for name, begin, end in spans if name != "transfer"])
        return of_kernels, _covered([(begin, end) for _, begin, end in spans]) - of_kernels


def _covered(spans: list[tuple[float, float]]) -> float:
    """Return the total time covered by at least one of the spans."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
