"""Summary of a run: numbers for scripts, lines for a terminal, counts for a window."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proteoscope.engine.results.counts import Count

__all__ = ["Summary"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summary of a run; each search derives one with more attributes.

    Attributes
    ----------
    run_id, folder
        Run and folder of the project, or None.
    seconds
        Duration of the run.
    device
        Device that computed.
    messages
        Remarks for the user.
    stages
        Seconds and peak memory of the five steps, measured by `proteoscope.engine.execution.clock.StageClock`.
    """

    run_id: str | None
    folder: Path | None
    seconds: float
    device: str
    stages: dict[str, dict[str, float]]
    messages: tuple[str, ...]

    def counts(self) -> list[Count]:
        """Results, the most interesting first."""
        return []

    def lines(self) -> list[str]:
        """Return the terminal output: inputs, counts, and the best results."""
        return [f"{count.number:,} {count.noun}" for count in self.counts()]

    def record(self) -> dict[str, Any]:
        """Return the output for scripts: all attributes by name as JSON values."""
        return {**asdict(self), "folder": None if self.folder is None else str(self.folder)}
