"""Score: a query against every chain of a database, in both phases, on any devices, as a kind of work."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import structure_search
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.workload import CardShape, PartialResult, Rows, Sample, Workload, by_item
from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.structure_layouts import Rewards, StructureArrays

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.structure_alignment import StructureSearch

__all__ = ["KIND", "STEP_CELLS", "Scores", "StructureAgainstStructures", "build_workload", "score_query"]

KIND = "structures"
STEP_CELLS = 1_000_000
"""Cells in a step of the progress."""


class Scores(NamedTuple):
    """Scores of each database chain.

    Attributes
    ----------
    residues
        (n,) int32, phase 2, -1 if rejected in phase 1.
    elements
        (n,) int32, phase 1, -1 if skipped.
    """

    residues: NDArray[np.int32]
    elements: NDArray[np.int32]


def build_workload(chains: StructureArrays) -> Workload:
    """Return a database as a workload, shortest chains first."""
    return Workload(KIND, {"chains": chains._asdict()}, {})


def score_query(session: Session, query: StructureArrays, rewards: Rewards, least: int) -> Scores:
    """Score a query chain against every database chain. `least` is the phase 1 threshold; 0 skips phase 1.

    Raises
    ------
    Cancelled
        The user cancelled.
    """
    state = {"query": query._asdict(), "rewards": rewards._asdict(), "least": least}
    rows = session.run(state, step_cost=STEP_CELLS)
    return Scores(rows["scores"], rows["element_scores"])


class StructureAgainstStructures:
    """Workload type whose items are database chains and whose round state is the query with its rewards."""

    parts_of_worker = 0

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of about this size."""
        return structure_search.synthetic_workload.sample_structures(size, seed)

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        """Return the cells of the alignment matrix of the query with each chain, (chains,) float64."""
        return np.diff(work.sources["chains"]["offsets"]) * float(max(1, len(state["query"]["state"])))

    def operations(self, work: Workload, state: Any, card: CardShape | None) -> float:
        """Return the number of cells of all alignment matrices of a round, the same on CPU and GPU."""
        return float(self.costs(work, state).sum())

    @contextmanager
    def open(self, work: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Open the database on the device."""
        chains = StructureArrays(**work.sources["chains"])
        yield _Computation(backend_module(device, "structure_alignment").StructureSearch(device, chains), len(chains.offsets) - 1)

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        """Return an empty result."""
        return {"scores": np.full(n, -1, np.int32), "element_scores": np.full(n, -1, np.int32)}

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Merge results by chain."""
        by_item(into, first, end, rows)


class _Computation:
    """A database on a device."""

    def __init__(self, search: StructureSearch, n: int) -> None:
        self._search, self._state = search, dict[str, Any]()
        self._scores, self._element_scores = np.empty(n, np.int32), np.empty(n, np.int32)

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Begin a query."""
        if items is not None:
            raise ValueError("structures are scored against all chains of a run of them")
        self._state = {
            "query": StructureArrays(**state["query"]),
            "rewards": Rewards(**state["rewards"]),
            "least": state["least"],
            "scores": self._scores,
            "element_scores": self._element_scores,
        }

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Score the chains `first:last`."""
        with closing(self._search.score(**self._state, first=first, last=last)) as ends:
            begun = first
            for end in ends:
                rows = {"scores": self._scores[begun:end].copy(), "element_scores": self._element_scores[begun:end].copy()}
                yield PartialResult(end, rows)
                begun = end
