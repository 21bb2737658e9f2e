"""Summary of a run: numbers for scripts, lines for a terminal, counts for a window."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proteoscope.engine.results.counts import Count

__all__ = ["Summary"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summary of a run; every search derives one that tells more.

    Attributes
    ----------
    run_id, folder : of the run in the project, and of the project; None where there is none.
    seconds : of the whole run. device : what computed. messages : what the user should know.
    stages : seconds and peak memory of the five steps, as `proteoscope.engine.execution.clock.StageClock` measures them.
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
        """What a terminal shows: what was searched, what was found, and the best of it."""
        return [f"{count.number:,} {count.noun}" for count in self.counts()]

    def record(self) -> dict[str, Any]:
        """What a script is told: all attributes by name, of what JSON holds."""
        return {**asdict(self), "folder": None if self.folder is None else str(self.folder)}
