"""What a run tells when it is done: numbers for scripts, lines for a terminal, counts for a window."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = ["Certainty", "Count", "Summary"]


class Certainty(NamedTuple):
    """How sure a count is: decoys that were accepted too, and the 95 % interval of the share of false ones, as parts of one."""

    decoys: int
    low: float
    high: float


class Count(NamedTuple):
    """How many of something were found, and how sure that is, where it is known. `total`: of how many, where that is worth a word."""

    number: int
    one: str
    several: str
    certainty: Certainty | None = None
    total: int | None = None

    @property
    def noun(self) -> str:
        """Its name in the number that fits."""
        return self.one if self.number == 1 else self.several


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a run tells when it is done; every search derives one that tells more.

    Attributes
    ----------
    run_id, folder : of the run in the project, and of the project; None where there is none.
    seconds : of the whole run. device : what computed. messages : what the user should know.
    stages : seconds and peak memory of the five steps, as `engine.execution.clock.StageClock` measures them.
    """

    run_id: str | None
    folder: Path | None
    seconds: float
    device: str
    stages: dict[str, dict[str, float]]
    messages: tuple[str, ...]

    def counts(self) -> list[Count]:
        """What was found, the most interesting first."""
        return []

    def lines(self) -> list[str]:
        """What a terminal shows: what was searched, what was found, and the best of it."""
        return [f"{one.number:,} {one.noun}" for one in self.counts()]
