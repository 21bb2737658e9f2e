"""Session of a sequence search on its devices, and the fraction of the scoring that each device computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from proteoscope.engine.execution.executor import PROCESSOR, Executor, Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.sequence_search.scoring import build_workload
from proteoscope.engine.sequence_search.summary import DeviceShare
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.scheme import ScoringScheme

__all__ = ["measure_shares", "open_session"]


@contextmanager
def open_session(database: SequenceDatabase, scheme: ScoringScheme, resources: Resources) -> Iterator[Session]:
    """Open the database on all devices of a run; at the end, report the fraction and speed of each GPU and the CPU."""
    with Executor(resources).session(build_workload(database.residues, database.offsets, scheme)) as session:
        yield session
        shares = measure_shares(session)
        if any(share.device != PROCESSOR for share in shares):
            each = [f"{share.device} scored {share.share * 100:.3g} % of the cells at {_rate(share)}" for share in shares]
            resources.progress.message("; ".join(each))


def measure_shares(session: Session) -> tuple[DeviceShare, ...]:
    """Return the fraction of the scoring that each device computed."""
    return tuple(DeviceShare(share.device, share.share, share.speed / 1e9, share.with_start) for share in session.shares())


def _rate(share: DeviceShare) -> str:
    return f"{share.gcups:,.3g} GCUPS" + (", its start included" if share.with_start else "")
