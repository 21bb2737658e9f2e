"""Devices of a sequence search: the device that the user wished, looked for while the files are read, and how fast it was before."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import worthwhile
from proteoscope.engine.execution.cost.kept import known_parameters
from proteoscope.engine.execution.device_lookup import DeviceLookup
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.execution.executor import PROCESSOR, Executor, Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.speeds import Speeds
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.sequence_search.scoring import KIND, work_of
from proteoscope.engine.sequence_search.summary import DeviceShare
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.scheme import ScoringScheme

__all__ = ["Computing", "shares_of"]

_SHORT_SECONDS = 1.5  # a GPU takes as long to be found and made ready
_MINIMUM_CELLS_OF_A_THREAD = 8e9  # in a second: an old processor
_LETTERS_OF_A_PACKED_BYTE = 4


class Computing:
    """The device of a search, and what is known of its speed.

    The sizes of the files of the request tell how much work there is.
    """

    def __init__(self, request: SearchRequest) -> None:
        wish, threads = request.device, request.threads or available_threads()
        speeds = Speeds(KIND, threads)
        cells = float(_letters(request.files("queries"))) * _letters(request.files("database"))
        is_short = cells < _SHORT_SECONDS * (speeds.of(PROCESSOR) or _measured_speed(threads) or threads * _MINIMUM_CELLS_OF_A_THREAD)
        is_chosen = wish == "auto" and is_short
        self.look = DeviceLookup("cpu" if is_chosen else wish, None if is_chosen else worthwhile("align", request, threads))
        """For the device, begun: done on the processor before a GPU would be ready, the work takes the processor."""
        if self.look.wish.startswith(("cuda", "all")) or (self.look.wish == "auto" and speeds.are_of_several):
            threading.Thread(target=_import_ahead, name="proteoscope-importing").start()

    @contextmanager
    def session(self, database: SequenceDatabase, scheme: ScoringScheme, resources: Resources) -> Iterator[Session]:
        """The database on all devices of the wish that could be opened; in the end, what each did is told."""
        with Executor(resources).session(work_of(database.residues, database.offsets, scheme)) as session:
            yield session
            shares = shares_of(session)
            if any(share.device != PROCESSOR for share in shares):
                each = [f"{one.device} scored {one.share * 100:.3g} % of the cells at {_rate(one)}" for one in shares]
                resources.progress.message("; ".join(each))


def shares_of(session: Session) -> tuple[DeviceShare, ...]:
    """Each device's share of the scoring."""
    return tuple(DeviceShare(share.device, share.share, share.speed / 1e9, share.with_start) for share in session.shares())


def _rate(share: DeviceShare) -> str:
    return f"{share.gcups:,.3g} GCUPS" + (", its start included" if share.with_start else "")


def _measured_speed(threads: int) -> float | None:
    """Cells in a second of the processor, as the cost model has measured it on this machine."""
    known = known_parameters(processor(), threads)
    return None if known is None or KIND not in known.kinds else known.kinds[KIND].rate


def _import_ahead() -> None:
    """Import CuPy, which takes a second, while the files are read; what hinders it is told when a card is opened."""
    if importlib.util.find_spec("cupy") is not None:
        with contextlib.suppress(Exception):
            importlib.import_module("cupy")


def _letters(files: Iterable[Path]) -> int:
    """About how many, of the files that are there."""
    paths = [path for path in files if path.is_file()]
    return sum(path.stat().st_size * (_LETTERS_OF_A_PACKED_BYTE if path.suffix == ".gz" else 1) for path in paths)
