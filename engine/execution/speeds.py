"""How fast devices were in earlier searches: cost in a second for each kind of work, kept in the user's cache."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from proteoscope.engine.execution.devices import gpus, processor
from proteoscope.engine.project.cache import cache_folder, remember

__all__ = ["Speeds"]


class Speeds:
    """Of one kind of work, by the names of devices.

    Parameters
    ----------
    kind : of `proteoscope.engine.execution.kinds.KINDS`. threads : of the processor.
    """

    def __init__(self, kind: str, threads: int) -> None:
        self._kind, self._threads = kind, threads
        self._known: dict[str, float] | None = None

    def of(self, name: str) -> float | None:
        """Cost in a second of a device; None where nobody knows it."""
        return self._all().get(self._key(name))

    @classmethod
    def all_of(cls, name: str, threads: int) -> dict[str, float]:
        """Cost in a second of a device, by the kinds of work that it has done."""
        found = _remembered(_file())
        keys = {key.partition(": ")[0]: key for key in found}
        every = {kind: cls(kind, threads)._key(name) for kind in keys}
        return {kind: found[key] for kind, key in every.items() if key in found}

    @property
    def are_of_several(self) -> bool:
        """Whether more than one device has done such work."""
        return sum(key.startswith(f"{self._kind}: ") for key in self._all()) > 1

    def _all(self) -> dict[str, float]:
        if self._known is None:
            self._known = _remembered(_file())
        return self._known

    def remember(self, speeds: Mapping[str, float]) -> None:
        """Keep speeds for later searches, beside those of other devices. A disk that refuses is no reason to complain."""
        if speeds:
            found = _remembered(_file()) | {self._key(name): speed for name, speed in speeds.items()}
            remember(_file(), json.dumps(found, indent=1).encode())

    def _key(self, name: str) -> str:
        """What a device is remembered by: the card with its driver; the processor with its threads."""
        if name == "cpu":
            return f"{self._kind}: {processor().description}, {self._threads} used"
        return f"{self._kind}: " + next((gpu.description for gpu in gpus() if gpu.name == name), name)


def _file() -> Path:
    return cache_folder() / "speeds.json"


def _remembered(path: Path) -> dict[str, float]:
    """Speeds as earlier searches left them; empty where nothing can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): float(speed) for name, speed in found.items() if float(speed) > 0}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}
