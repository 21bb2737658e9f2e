"""Summaries of runs: values for scripts, lines for the terminal, counts for the window."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proteoscope.engine.results.counts import Count

__all__ = ["Summary"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summary of a run; each search has a subclass with further attributes.

    Attributes
    ----------
    run_id, folder
        Id of the run and folder of its project, or None if the run is not recorded.
    seconds
        Duration of the run in seconds, without the compilation of kernels.
    device
        Name of the device that computed.
    messages
        Messages for the user.
    stages
        Seconds and peak memory of each step, as in `stages` of `proteoscope.engine.execution.resources.StageClock`.
    """

    run_id: str | None
    folder: Path | None
    seconds: float
    device: str
    stages: dict[str, dict[str, float]]
    messages: tuple[str, ...]

    def counts(self) -> list[Count]:
        """Return the numbers of results, the most important first."""
        return []

    def lines(self) -> list[str]:
        """Return the lines for the terminal: inputs, numbers of results and the best results."""
        return [f"{count.number:,} {count.noun}" for count in self.counts()]

    def record(self) -> dict[str, Any]:
        """Return all attributes by name as values for JSON, for scripts."""
        return {**asdict(self), "folder": None if self.folder is None else str(self.folder)}
