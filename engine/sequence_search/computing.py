"""What computes a sequence search: the device that the user wished, looked for while the files are read, and how fast it was before."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.errors import StorageError
from engine.execution.devices import Device, chosen_device, gpus, processor
from engine.execution.workers import cards
from engine.files import atomic_file
from engine.jobs.progress import Progress
from engine.project.cache import cache_folder
from engine.sequence_search.division import PROCESSOR, DividedScorer, Share
from engine.sequences.database import SequenceDatabase
from engine.sequences.scheme import ScoringScheme

__all__ = ["Computing"]

_SHORT_SECONDS = 1.5  # a GPU takes as long to be found and made ready
_LEAST_CELLS_OF_A_THREAD = 8e9  # in a second: an old processor
_LETTERS_OF_A_PACKED_BYTE = 4
_LOOK_SECONDS = 0.05


class Computing:
    """The device of a search, and what is known of its speed.

    Parameters
    ----------
    wish : see `engine.sequence_search.search.align`. queries, databases : the files, whose sizes tell how much work there is.
    threads : of the processor.
    """

    def __init__(self, wish: str, queries: Sequence[Path], databases: Sequence[Path], threads: int) -> None:
        self._threads = threads
        self._speeds = _remembered(_speeds_file())
        cells = float(_letters(queries)) * _letters(databases)
        is_short = cells < _SHORT_SECONDS * self._speeds.get(self._key(PROCESSOR), threads * _LEAST_CELLS_OF_A_THREAD)
        self._wish = "cpu" if wish == "auto" and is_short else wish
        self._device: Device | None = None
        self._error: Exception | None = None
        # A driver that hangs must not keep the program from ending.
        self._looking = threading.Thread(target=self._look, name="proteoscope-looking", daemon=True)
        self._looking.start()
        if self._wish.startswith(("cuda", "all")) or (self._wish == "auto" and len(self._speeds) > 1):
            threading.Thread(target=_import_ahead, name="proteoscope-importing").start()

    def _look(self) -> None:
        try:
            self._device = chosen_device(self._wish)
        except Exception as error:  # it belongs to whoever asks for the device
            self._error = error

    def complain(self) -> None:
        """Raise what is already known to be wrong with the wish, before more work is done for nothing; see `device`."""
        if self._error is not None:
            raise self._error

    def device(self, progress: Progress) -> Device:
        """The device, when it is found.

        Raises
        ------
        ParameterError : the wish names a device that is not there or not usable, and why. Cancelled : the user asked to stop.
        """
        if self._looking.is_alive():
            progress.stage("Looking for GPUs")
        while self._looking.is_alive():
            progress.check()
            self._looking.join(_LOOK_SECONDS)
        self.complain()
        assert self._device is not None
        return self._device

    def scorer(self, database: SequenceDatabase, scheme: ScoringScheme, progress: Progress) -> DividedScorer:
        """What scores the database, on all devices of the wish that can be opened.

        Raises
        ------
        ParameterError, Cancelled : see `device`.
        """
        device = self.device(progress)
        opened = cards(device, progress)
        if device.with_processor:
            # A thread drives each card.
            self._threads = max(1, self._threads - len(opened))
        known = {name: self._speeds.get(self._key(name)) for name in (*(card.name for card in opened), PROCESSOR)}
        scorer = DividedScorer(
            database.residues, database.offsets, scheme, self._threads, opened, with_processor=device.with_processor,
            speeds={name: speed for name, speed in known.items() if speed is not None},
        )  # fmt: skip
        progress.message(f"Scoring on {' and '.join(scorer.devices)}: {device.description if opened else processor().description}")
        if self._wish in ("auto", "all"):
            for gpu in gpus():
                if gpu.numbers and not gpu.usable:
                    progress.message(f"{gpu.name} is not used: {gpu.reason}", "warning")
        return scorer

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


def _letters(files: Sequence[Path]) -> int:
    return sum(path.stat().st_size * (_LETTERS_OF_A_PACKED_BYTE if path.suffix == ".gz" else 1) for path in files)


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
