"""Divide the scoring of a database among GPUs and the processor, by how fast each is.

The split is calculated before the work begins, as in CUDASW++ 3.0 (Liu, Wirawan and Schmidt 2013, BMC Bioinformatics 14:117, whose R is the
share of the database that goes to the GPU), from cells per second that were measured: in earlier searches, or else on a slice of this one.
While the work runs, whoever is done early takes from what the others have still to do.

The database is counted in portions of equal cost, since sequences differ in length a thousandfold: a portion is a stretch of residues, and
the sequences that begin in it belong to it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.execution.workers import Worker, run_on_workers
from engine.jobs.progress import Progress
from engine.sequence_search.scoring import STEP_CELLS, score_all
from engine.sequences.scheme import ScoringScheme
from kernels.cpu.processor import Processor
from kernels.cuda.modules import Card
from kernels.device import DeviceError
from kernels.partitions import Partition

if TYPE_CHECKING:
    from kernels.cpu.alignment import AlignmentSearch as ThreadsSearch
    from kernels.cuda.alignment import AlignmentSearch

__all__ = ["PROCESSOR", "DividedScorer", "Share"]

PROCESSOR = "cpu"
"""What the processor is called beside the names of the cards."""
_MOST_PORTIONS = 1 << 16
_CELLS_WORTH_MEASURING = 20e9  # below them, the work takes no longer than finding out who is how fast
_LARGEST_SLICE = 1 / 16  # of the work, ...
_CELLS_OF_SLICE, _CELLS_OF_CARDS_SLICE = 4e9, 100e9  # ... and so many cells: some 50 ms of the processor, 20 ms of a card
_SECONDS_OF_PIECE, _CARDS_SPEED = 0.25, 400e9  # of a card between two looks at how the others do; cells a second where nothing is known
_PARTS_OF_CARD = 4  # of its share, so that a wrong plan can be corrected
_CELLS_OF_PIECE = 4_000_000_000  # of a thread of the processor between two looks at how the others do: 50 ms with AVX-512
_LEAST_CELLS_TO_TELL = 2e9  # a speed measured on fewer says little


@dataclass(frozen=True)
class Share:
    """What a device did of a search: its share of the cells, and thousand million cells in a second while it worked.

    `with_start`: too little was done to leave out what a device does once, such as compiling.
    """

    device: str
    share: float
    gcups: float
    with_start: bool = False


class _Account:
    """Cells that a device computed and the seconds that this took; apart, those without the first piece, which has what is done once."""

    def __init__(self) -> None:
        self.cells = self.seconds = self.warm_cells = self.warm_seconds = 0.0

    def add(self, cells: float, seconds: float, *, is_warm: bool) -> None:
        """Count a piece."""
        self.cells += cells
        self.seconds += seconds
        if is_warm:
            self.warm_cells += cells
            self.warm_seconds += seconds

    @property
    def speed(self) -> float | None:
        """Cells in a second; None where nothing was computed."""
        if self.warm_cells > 0:
            return self.warm_cells / max(self.warm_seconds, 1e-9)
        return self.cells / max(self.seconds, 1e-9) if self.cells > 0 else None


class DividedScorer:
    """Scores queries against a database on cards and on the processor, together.

    Parameters
    ----------
    residues, offsets : the database, its sequences shortest first, as `engine.sequence_search.scoring.score_all` takes it.
    threads : of the processor. cards : may be none. with_processor : whether it computes beside them; without, it does what no card can.
    speeds : cells in a second of devices, by name, as far as they are known.
    """

    def __init__(
        self,
        residues: NDArray[np.int8],
        offsets: NDArray[np.int64],
        scheme: ScoringScheme,
        threads: int,
        cards: Sequence[Card],
        *,
        with_processor: bool,
        speeds: Mapping[str, float],
    ) -> None:
        self.residues, self.offsets, self.scheme, self.threads = residues, offsets, scheme, threads
        self._cards, self._with_processor, self._known = list(cards), with_processor, dict(speeds)
        self.accounts = {name: _Account() for name in (*(card.name for card in cards), PROCESSOR)}
        self._searches: dict[str, AlignmentSearch] = {}
        self.lost: set[str] = set()
        """Cards that failed."""
        self._has_measured = self._has_told = False
        total = int(offsets[-1])
        self.portion_residues = max(1, -(-total // _MOST_PORTIONS))
        marks = np.arange(0, total + self.portion_residues, self.portion_residues)
        self.begins = np.searchsorted(offsets[:-1], marks, side="left").astype(np.int64)
        """(portions + 1,) the first sequence of each."""

    def score(self, queries: Sequence[NDArray[np.int8]], progress: Progress) -> NDArray[np.int32]:
        """Scores of every query and every subject; see `engine.sequence_search.scoring.score_all`.

        Raises
        ------
        ParameterError : a score could pass 32 bits. Cancelled : the user asked to stop.
        """
        began, cells = perf_counter(), float(sum(map(len, queries))) * int(self.offsets[-1])
        if not self._cards or cells == 0:
            scores = score_all(queries, self.residues, self.offsets, self.scheme, self.threads, progress)
            self.accounts[PROCESSOR].add(cells, perf_counter() - began, is_warm=True)
            return scores
        self.scheme.check(max(map(len, queries)), int(np.diff(self.offsets).max()))
        scores = np.zeros((len(queries), len(self.offsets) - 1), np.int32)
        self._divide(_Batch(self, queries, scores, progress))
        return scores

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of what computes, as long as nothing fails."""
        names = [card.name for card in self._cards]
        return (*names, PROCESSOR) if self._with_processor or not names else tuple(names)

    def shares(self) -> tuple[Share, ...]:
        """What each device did so far."""
        total = sum(account.cells for account in self.accounts.values())
        return tuple(
            Share(name, account.cells / total, account.speed / 1e9, account.warm_cells == 0)
            for name, account in self.accounts.items()
            if account.speed is not None
        )

    def speeds(self) -> dict[str, float]:
        """Cells in a second of each device that computed enough to tell."""
        accounts = {name: one for name, one in self.accounts.items() if one.warm_cells >= _LEAST_CELLS_TO_TELL}
        return {name: account.speed for name, account in accounts.items() if account.speed is not None}

    def speed(self, name: str) -> float | None:
        """Cells in a second of a device, or what is known from earlier searches."""
        return self.accounts[name].speed or self._known.get(name)

    @cached_property
    def on_threads(self) -> ThreadsSearch:
        """The database on the processor."""
        from kernels.cpu.alignment import AlignmentSearch

        return AlignmentSearch(Processor(self.threads), self.residues, self.offsets)

    def search_on(self, card: Card) -> AlignmentSearch:
        """The database on a card, brought there once.

        Raises
        ------
        DeviceError : the card failed.
        """
        if card.name not in self._searches:
            from kernels.cuda.alignment import AlignmentSearch

            self._searches[card.name] = AlignmentSearch(card, self.residues, self.offsets)
        return self._searches[card.name]

    def _divide(self, batch: _Batch) -> None:
        workers = [Worker(card.name, batch.on_card(card)) for card in self._cards if card.name not in self.lost]
        if self._with_processor:
            workers.append(Worker(PROCESSOR, batch.on_processor, is_processor=True))
        whole = Partition(0, len(self.begins) - 1, batch.cost(len(self.begins) - 1))
        rest, undone = self._calibrated(workers, whole, batch)
        workers = [replace(one, speed=self.speed(one.name)) for one in workers if one.name not in self.lost]
        undone = run_on_workers(workers, [*self._planned(workers, rest, batch), *undone], batch.progress, step=batch.steps)
        if undone:
            batch.progress.message("The processor scores what is left")
            run_on_workers([Worker(PROCESSOR, batch.on_processor)], undone, batch.progress, step=batch.steps)

    def _calibrated(self, workers: Sequence[Worker], whole: Partition, batch: _Batch) -> tuple[Partition, list[Partition]]:
        """Let each worker whose speed is not known score a slice of the whole; what is left of it, and slices that were not done."""
        first, last = whole.first, whole.last
        undone: list[Partition] = []
        if len(workers) < 2 or whole.cost < _CELLS_WORTH_MEASURING:
            return whole, undone
        for worker in workers:
            if self.speed(worker.name) is not None:
                continue
            most = _CELLS_OF_SLICE * self.threads if worker.is_processor else _CELLS_OF_CARDS_SLICE
            n = max(2, int(min(whole.cost * _LARGEST_SLICE, most) / batch.cost(1)))
            if last - first < 2 * n:
                break
            self._has_measured = True
            start = first if worker.is_processor else last - n
            first, last = (first + n, last) if worker.is_processor else (first, last - n)
            # The first part warms up: the device compiles, and is given the database.
            cuts = (start, start + max(1, n // 8), start + n)
            parts = [Partition(a, b, batch.cost(b - a)) for a, b in pairwise(cuts)]
            undone += run_on_workers([worker], parts, batch.progress, step=batch.steps)
        return Partition(first, last, batch.cost(last - first)), undone

    def _planned(self, workers: Sequence[Worker], rest: Partition, batch: _Batch) -> list[Partition]:
        """The rest cut in proportion to the speeds: the long sequences for the cards, the short ones for the processor."""
        if not workers:
            return [rest]
        known = [worker.speed for worker in workers if worker.speed is not None]
        speeds = np.array([worker.speed or (sum(known) / len(known) if known else 1.0) for worker in workers])
        shares = speeds / speeds.sum()
        if len(workers) > 1 and not self._has_told:
            self._has_told = True
            how = "speeds measured in this search" if self._has_measured else "speeds measured in earlier searches"
            if len(known) < len(workers):
                how = "equal speeds, until they are known"
            each = ", ".join(f"{worker.name} {share * 100:.1f} %" for worker, share in zip(workers, shares, strict=True))
            batch.progress.message(f"Planned shares of the scoring: {each} ({how})")
        parts, last = [], rest.last
        for worker, end in zip(workers, np.cumsum(shares), strict=True):
            first = rest.last - round(end * (rest.last - rest.first))
            n = 1 if worker.is_processor or len(workers) == 1 else _PARTS_OF_CARD
            cuts = np.linspace(last, first, n + 1).round().astype(np.int64).tolist()
            parts += [Partition(low, high, batch.cost(high - low)) for high, low in pairwise(cuts) if high > low]
            last = first
        return parts


class _Batch:
    """Queries that are scored together: the work of each device on a part of the database, in portions."""

    def __init__(self, scorer: DividedScorer, queries: Sequence[NDArray[np.int8]], scores: NDArray[np.int32], progress: Progress) -> None:
        self._scorer, self._queries, self._scores, self.progress = scorer, queries, scores, progress
        self._residues = sum(map(len, queries))

    def cost(self, portions: int) -> float:
        """Cells of so many portions, about."""
        return float(portions) * self._scorer.portion_residues * self._residues

    def steps(self, first: int, last: int) -> int:
        """Steps of the progress that these portions are."""
        return int(self.cost(last) // STEP_CELLS - self.cost(first) // STEP_CELLS)

    def on_card(self, card: Card) -> Callable[[Partition], Generator[int, None, None]]:
        """The work of a `Worker` for a card."""
        scorer, scheme = self._scorer, self._scorer.scheme

        def work(part: Partition) -> Generator[int, None, None]:
            try:
                search, done = scorer.search_on(card), part.first
                while done < part.last:
                    # Pieces of equal time, so that others can take over from a slow card.
                    cells = (scorer.speed(card.name) or _CARDS_SPEED) * _SECONDS_OF_PIECE
                    end = min(part.last, done + max(1, int(cells / self.cost(1))))
                    first, last = int(scorer.begins[done]), int(scorer.begins[end])
                    began = perf_counter()
                    if first < last:
                        arguments = (scheme.matrix.scores, scheme.gap_open, scheme.gap_extend, self._scores, first, last)
                        with closing(search.score(self._queries, *arguments)) as steps:
                            for _ in steps:
                                self.progress.check()
                    self._count(card.name, first, last, perf_counter() - began)
                    done = end
                    yield end
            except DeviceError:
                scorer.lost.add(card.name)
                raise

        return work

    def on_processor(self, part: Partition) -> Generator[int, None, None]:
        """The work of the `Worker` for the processor, on all its threads."""
        scorer = self._scorer
        search, scheme = scorer.on_threads, scorer.scheme
        step = max(1, int(_CELLS_OF_PIECE * scorer.threads / self.cost(1)))
        for portion in range(part.first, part.last, step):
            end = min(part.last, portion + step)
            first, last = int(scorer.begins[portion]), int(scorer.begins[end])
            began = perf_counter()
            arguments = (scheme.matrix.scores, scheme.gap_open, scheme.gap_extend, self._scores, first, last)
            with closing(search.score(self._queries, *arguments)) as steps:
                for _ in steps:
                    self.progress.check()
            self._count(PROCESSOR, first, last, perf_counter() - began)
            yield end

    def _count(self, name: str, first: int, last: int, seconds: float) -> None:
        account, offsets = self._scorer.accounts[name], self._scorer.offsets
        account.add(float(self._residues) * int(offsets[last] - offsets[first]), seconds, is_warm=name == PROCESSOR or account.cells > 0)
