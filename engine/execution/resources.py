"""Resources and progress of a search step, passed together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from proteoscope.engine.execution.checkpoints import RunCheckpoint
from proteoscope.engine.execution.clock import StageClock
from proteoscope.engine.execution.remote_workers import RemoteWorkers
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.cuda.modules import Card

__all__ = ["Resources"]


@dataclass(frozen=True)
class Resources:
    """Threads, cards, progress and clock of a run.

    Attributes
    ----------
    threads
        Of the processor.
    cards
        GPUs; one that fails is struck from the list, and what comes after does without it.
    with_processor
        True if the processor computes beside them.
    progress
        Told of stages, and asked whether the user wants to stop.
    clock
        Measures the five steps.
    kept
        What the run keeps so that it can be resumed; None of one that keeps nothing.
    elsewhere
        Workers in other processes, which compute in place of these cards and threads; None without.
    """

    threads: int = field(default_factory=available_threads)
    cards: list[Card] = field(default_factory=list)
    with_processor: bool = False
    progress: Progress = field(default_factory=Progress)
    clock: StageClock = field(default_factory=StageClock)
    kept: RunCheckpoint | None = None
    elsewhere: RemoteWorkers | None = None

    def telling(self, progress: Progress) -> Resources:
        """Return the resources with another progress, for background work."""
        return replace(self, progress=progress)

    @property
    def has_cards(self) -> bool:
        """True if GPUs compute, here or remotely."""
        return bool(self.cards) if self.elsewhere is None else self.elsewhere.has_cards

    @property
    def used(self) -> str:
        """Devices that computed, once done, such as ``cuda:0+cpu``."""
        if self.elsewhere is not None:
            return self.elsewhere.name
        cards = [card.name for card in self.cards]
        return "+".join([*cards, *(["cpu"] if self.with_processor or not cards else [])])
