"""Resources and progress of a search step, which are passed as one object."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from proteoscope.engine.execution.checkpoints import RunCheckpoint
from proteoscope.engine.execution.clock import StageClock
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.execution.workload import RemoteWorkers
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.cuda.modules import Gpu

__all__ = ["Resources"]


@dataclass(frozen=True)
class Resources:
    """Threads, GPUs, progress, clock, checkpoint and remote workers of a run.

    Attributes
    ----------
    threads
        Number of CPU threads.
    gpus
        Opened GPUs. A GPU that fails is removed from the list, so that later steps do not use it.
    with_processor
        True if the CPU computes together with the GPUs.
    progress
        Progress, which receives stages and messages, and reports cancellation.
    clock
        Clock that measures the seconds of the stages.
    checkpoint
        Checkpoint with stored results of the run; None if the run cannot be resumed.
    remote_workers
        Workers in other processes that compute instead of the GPUs and threads; None if there are none.
    """

    threads: int = field(default_factory=available_threads)
    gpus: list[Gpu] = field(default_factory=list)
    with_processor: bool = False
    progress: Progress = field(default_factory=Progress)
    clock: StageClock = field(default_factory=StageClock)
    checkpoint: RunCheckpoint | None = None
    remote_workers: RemoteWorkers | None = None

    def reporting_to(self, progress: Progress) -> Resources:
        """Return a copy of the resources with another progress, for computations in the background."""
        return replace(self, progress=progress)

    @property
    def has_gpus(self) -> bool:
        """True if GPUs compute, in this process or in remote workers."""
        return bool(self.gpus) if self.remote_workers is None else self.remote_workers.has_gpus

    @property
    def used(self) -> str:
        """Names of the devices that computed, such as ``cuda:0+cpu``; complete only after the computation."""
        if self.remote_workers is not None:
            return self.remote_workers.name
        gpus = [gpu.name for gpu in self.gpus]
        return "+".join([*gpus, *(["cpu"] if self.with_processor or not gpus else [])])
