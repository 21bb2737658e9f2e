"""Workload that scores a query against every chain of a database, in two phases, on any devices.

Phase 1 aligns secondary structure elements and rejects dissimilar chains; phase 2 aligns residues.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import structure_search
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.workload import PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.structure_layouts import Rewards, StructureArrays

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.structure_alignment import StructureSearch

__all__ = ["KIND", "STEP_CELLS", "Scores", "StructureAgainstStructures", "build_workload", "score_query"]

KIND = "structures"
STEP_CELLS = 1_000_000
"""Number of cells of alignment matrices per step of the progress."""


class Scores(NamedTuple):
    """Scores of each database chain with a query.

    Attributes
    ----------
    residues : ndarray of int32, shape (n,)
        Phase 2 scores, -1 for chains that phase 1 rejected.
    elements : ndarray of int32, shape (n,)
        Phase 1 scores, -1 if phase 1 was skipped.
    """

    residues: NDArray[np.int32]
    elements: NDArray[np.int32]


def build_workload(chains: StructureArrays) -> Workload:
    """Return the workload of scoring queries against a database, whose chains are sorted by length."""
    return Workload(KIND, {"chains": chains._asdict()}, {})


def score_query(session: Session, query: StructureArrays, rewards: Rewards, least: int) -> Scores:
    """Score a query against every database chain.

    Parameters
    ----------
    session : Session
        Session of a workload from `build_workload`.
    query : StructureArrays
        Descriptors of the query.
    rewards : Rewards
        Rewards of the query.
    least : int
        Minimum phase 1 score of chains that enter phase 2; 0 skips phase 1.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    state = {"query": query._asdict(), "rewards": rewards._asdict(), "least": least}
    rows = session.run(state, step_cost=STEP_CELLS)
    return Scores(rows["scores"], rows["element_scores"])


class StructureAgainstStructures(PredictableWorkloadType):
    """Workload type for scoring: its items are the database chains, and the state of a round is one query with its rewards."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return structure_search.synthetic_workload.sample_structures(size, seed)

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        """Return the number of matrix cells of each chain with the query."""
        cells: NDArray[np.float64] = np.diff(work.sources["chains"]["offsets"]) * float(max(1, len(state["query"]["state"])))
        return cells

    @contextmanager
    def open(self, work: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Load the database to the device."""
        chains = StructureArrays(**work.sources["chains"])
        yield _Computation(backend_module(device, "structure_alignment").StructureSearch(device, chains), len(chains.offsets) - 1)

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        """Return missing scores for `n` chains."""
        return {"scores": np.full(n, -1, np.int32), "element_scores": np.full(n, -1, np.int32)}


class _Computation:
    """Scoring of a query against a database on one device."""

    def __init__(self, search: StructureSearch, n: int) -> None:
        self._search, self._state = search, dict[str, Any]()
        self._scores, self._element_scores = np.empty(n, np.int32), np.empty(n, np.int32)

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Set the query of a round."""
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
        """Score the chains `first:last` in groups, and yield the scores of each group when it is complete."""
        with closing(self._search.score(**self._state, first=first, last=last)) as ends:
            begun = first
            for end in ends:
                rows = {"scores": self._scores[begun:end].copy(), "element_scores": self._element_scores[begun:end].copy()}
                yield PartialResult(end, rows)
                begun = end
