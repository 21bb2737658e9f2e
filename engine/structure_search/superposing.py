"""Workload that superposes candidates on their queries, on any devices."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import structure_search
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.workload import PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.structure_layouts import SEARCH_STEPS, ChainPairs, FoundSuperpositions

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.superposition import ChainSuperposition

__all__ = ["KIND", "ChainsOnChains", "build_superposition_workload", "superpose_pairs"]

KIND = "superpositions"


def build_superposition_workload() -> Workload:
    """Return the workload that superposes chains; it has no data, since the pairs of chains are passed as the state of each round."""
    return Workload(KIND, {}, {})


def superpose_pairs(session: Session, pairs: ChainPairs) -> FoundSuperpositions:
    """Return the superpositions of pairs of chains; the progress advances by one step per pair.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    return FoundSuperpositions(**session.run(pairs._asdict()))


class ChainsOnChains(PredictableWorkloadType):
    """Workload type for superpositions: its items are pairs of chains, which are passed as the state of a round."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return structure_search.synthetic_workload.sample_pairs(size, seed)

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        """Return the number of matrix cells of one alignment, for each pair."""
        shorter, longer = ChainPairs(**state).lengths
        return (shorter * longer).astype(np.float64)

    @contextmanager
    def open(self, work: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Prepare the superposition of chains on the device."""
        yield _Computation(backend_module(device, "superposition").ChainSuperposition(device, SEARCH_STEPS))

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        """Return empty superpositions."""
        return FoundSuperpositions.empty(ChainPairs(**state))._asdict()

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Copy the results `rows` of the pairs of chains `first:end` to `into`; ``into["places"]`` bounds each pair's aligned residues."""
        for name in ("moves", "scores", "rmsd", "counts"):
            into[name][first:end] = rows[name]
        into["pairs"][into["places"][first] : into["places"][end]] = rows["pairs"]


class _Computation:
    """Superposition of pairs of chains on one device."""

    def __init__(self, superposition: ChainSuperposition) -> None:
        self._superposition, self._pairs = superposition, list[tuple[ChainPairs, FoundSuperpositions]]()

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Set the pairs of chains of a round."""
        if items is not None:
            raise ValueError("all pairs of a round are superposed")
        pairs = ChainPairs(**state)
        self._pairs = [(pairs, FoundSuperpositions.empty(pairs))]

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Superpose the pairs `first:last`; yield the results in groups."""
        ((pairs, result),) = self._pairs
        with closing(self._superposition.superpose(pairs, result, first, last)) as ends:
            begun = first
            for end in ends:
                places = slice(int(result.places[begun]), int(result.places[end]))
                rows = {name: getattr(result, name)[begun:end].copy() for name in ("moves", "scores", "rmsd", "counts")}
                yield PartialResult(end, {**rows, "pairs": result.pairs[places].copy()})
                begun = end
