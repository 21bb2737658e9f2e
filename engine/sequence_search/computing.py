"""What computes a sequence search: the device that the user wished, looked for while the files are read, and how fast it was before."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.errors import StorageError
from engine.execution.devices import gpus, processor
from engine.execution.looking import DeviceLook
from engine.execution.resources import Resources
from engine.execution.threads import available_threads
from engine.files import atomic_file
from engine.jobs.progress import Progress
from engine.project.cache import cache_folder
from engine.search_run import Asked
from engine.sequence_search.division import PROCESSOR, DividedScorer, Share
from engine.sequences.database import SequenceDatabase
from engine.sequences.scheme import ScoringScheme

__all__ = ["Computing"]

_SHORT_SECONDS = 1.5  # a GPU takes as long to be found and made ready
_LEAST_CELLS_OF_A_THREAD = 8e9  # in a second: an old processor
_LETTERS_OF_A_PACKED_BYTE = 4


class Computing:
    """The device of a search, and what is known of its speed.

    The sizes of the files that are `asked` for tell how much work there is.
    """

    def __init__(self, asked: Asked) -> None:
        wish, threads = asked.device, asked.threads or available_threads()
        self._threads = threads
        self._speeds = _remembered(_speeds_file())
        cells = float(_letters(asked.files["queries"])) * _letters(asked.files["database"])
        is_short = cells < _SHORT_SECONDS * self._speeds.get(self._key(PROCESSOR), threads * _LEAST_CELLS_OF_A_THREAD)
        self.look = DeviceLook("cpu" if wish == "auto" and is_short else wish)
        """For the device, begun: done on the processor before a GPU would be ready, the work takes the processor."""
        if self.look.wish.startswith(("cuda", "all")) or (self.look.wish == "auto" and len(self._speeds) > 1):
            threading.Thread(target=_import_ahead, name="proteoscope-importing").start()

    def scorer(self, database: SequenceDatabase, scheme: ScoringScheme, resources: Resources) -> DividedScorer:
        """What scores the database, on all devices of the wish that could be opened."""
        opened = resources.cards
        if resources.with_processor:
            # A thread drives each card.
            self._threads = max(1, self._threads - len(opened))
        known = {name: self._speeds.get(self._key(name)) for name in (*(card.name for card in opened), PROCESSOR)}
        return DividedScorer(
            database.residues, database.offsets, scheme, self._threads, opened, with_processor=resources.with_processor,
            speeds={name: speed for name, speed in known.items() if speed is not None},
        )  # fmt: skip

    def finish(self, scorer: DividedScorer, progress: Progress) -> None:
        """Say what each device did, and remember how fast it was."""
        shares = scorer.shares()
        if any(share.device != PROCESSOR for share in shares):
            each = [f"{one.device} scored {one.share * 100:.3g} % of the cells at {_rate(one)}" for one in shares]
            progress.message("; ".join(each))
        _remember(_speeds_file(), {self._key(name): speed for name, speed in scorer.speeds().items()})

    def _key(self, name: str) -> str:
        """What a device is remembered by: the card with its driver; the processor with its threads."""
        if name == PROCESSOR:
            return f"{processor().description}, {self._threads} used"
        return next((gpu.description for gpu in gpus() if gpu.name == name), name)


def _rate(share: Share) -> str:
    return f"{share.gcups:,.3g} GCUPS" + (", its start included" if share.with_start else "")


def _import_ahead() -> None:
    """Import CuPy, which takes a second, while the files are read; what hinders it is told when a card is opened."""
    if importlib.util.find_spec("cupy") is not None:
        with contextlib.suppress(Exception):
            importlib.import_module("cupy")


def _letters(files: Iterable[str | Path]) -> int:
    """About how many, of the files that are there."""
    paths = [path for path in map(Path, files) if path.is_file()]
    return sum(path.stat().st_size * (_LETTERS_OF_A_PACKED_BYTE if path.suffix == ".gz" else 1) for path in paths)


def _speeds_file() -> Path:
    return cache_folder() / "speeds.json"


def _remembered(path: Path) -> dict[str, float]:
    """Cells in a second of devices, as earlier searches left them; empty where nothing can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): float(speed) for name, speed in found.items() if float(speed) > 0}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _remember(path: Path, speeds: Mapping[str, float]) -> None:
    """Keep speeds for later searches, beside those of other devices. A disk that refuses is no reason to complain."""
    if speeds:
        with contextlib.suppress(StorageError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as file:
                file.write(json.dumps(_remembered(path) | dict(speeds), indent=1).encode())
