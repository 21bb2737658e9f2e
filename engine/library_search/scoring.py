"""Score: spectra against the references of their pools, on any devices, as a kind of work."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import library_search
from proteoscope.engine.execution.work import CardShape, Piece, Rows, Sample, Work, by_item
from proteoscope.engine.library_search.references import References
from proteoscope.kernels.cpu.library_search import search_costs
from proteoscope.kernels.device import Device, twin
from proteoscope.kernels.library_layouts import UNITS, Matching, PeakLists, Pools

__all__ = ["KIND", "SpectraAgainstReferences", "work_of"]

KIND = "library-spectra"


def work_of(peaks: PeakLists, mass: NDArray[np.float64], references: References, pools: Pools, matching: Matching) -> Work:
    """What is to be computed. `mass` : (q,) of the queries, dalton."""
    return Work(
        KIND,
        {
            "queries": {**peaks._asdict(), "mass": np.rint(mass * UNITS).astype(np.int32)},
            "references": {**references.peaks._asdict(), "mass": references.mass},
            "pools": pools._asdict(),
        },
        matching._asdict(),
    )


class SpectraAgainstReferences:
    """Items are the queries."""

    parts_of_worker = 0

    def samples(self, size: float, seed: int) -> Sample:
        """Return a made-up work of about this size."""
        return library_search.sample_work.sample_spectra(size, seed)

    def costs(self, work: Work, state: Any) -> NDArray[np.float64]:
        """References that each is compared with."""
        return search_costs(Pools(**work.sources["pools"]))

    def operations(self, work: Work, state: Any, card: CardShape | None) -> float:
        """See `PredictableKind`: peaks of the references of all pairs."""
        references = work.sources["references"]
        each = len(references["mz"]) / max(1, len(references["mass"]))
        return float(self.costs(work, state).sum()) * each * (2.0 if work.settings["is_shifted"] else 1.0)

    @contextmanager
    def open(self, work: Work, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """The references on the device."""
        yield _Computation(work, device)

    def empty(self, work: Work, state: Any, n: int) -> Rows:
        """Nothing found."""
        return {"found": np.full(n, -1, np.int64), "similarity": np.zeros(n), "matched": np.zeros(n, np.int32)}

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """By query."""
        by_item(into, first, end, rows)


class _Computation:
    """References on a device."""

    def __init__(self, work: Work, device: Device) -> None:
        names = PeakLists._fields
        queries, references = work.sources["queries"], work.sources["references"]
        self._queries, self._mass = PeakLists(*(queries[name] for name in names)), queries["mass"]
        self._pools, self._matching = Pools(**work.sources["pools"]), Matching(**work.settings)
        lists = PeakLists(*(references[name] for name in names))
        self._search = twin(device, "library_search").LibrarySearch(device, lists, references["mass"])
        n = len(self._mass)
        self._found, self._similarity, self._matched = np.full(n, -1, np.int64), np.zeros(n), np.zeros(n, np.int32)

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """All queries are searched."""
        if items is not None:
            raise ValueError("all spectra are searched in a library")

    def search(self, first: int, last: int) -> Generator[Piece, None, None]:
        """The best references of the queries `first:last`."""
        rows: dict[str, NDArray] = {"found": self._found, "similarity": self._similarity, "matched": self._matched}
        done = first
        answer = self._found, self._similarity, self._matched
        with closing(self._search.search(self._queries, self._mass, self._pools, self._matching, *answer, first, last)) as ends:
            for end in ends:
                yield Piece(end, {name: column[done:end].copy() for name, column in rows.items()})
                done = end
