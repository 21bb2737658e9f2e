"""Partitions on several workers: each item is done once; speeds decide who does how much; what one leaves when it fails others do."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np
import pytest

from engine.execution import workers as module
from engine.execution.devices import Device
from engine.execution.resources import Resources
from engine.execution.workers import Worker, cards, run_on_workers, work_on_threads
from engine.jobs.progress import Cancelled, Progress, ProgressEvent
from kernels.device import DeviceError, DeviceMemoryError, StopFlag
from kernels.partitions import Partition, equal_partitions

N = 400
PARTS = equal_partitions(np.ones(N), 2, per_worker=10)


class Recorder:
    """Makes workers that note who did what, take time, and fail when told to."""

    def __init__(self) -> None:
        self.by: list[list[str]] = [[] for _ in range(N)]
        self.begun: dict[str, list[Partition]] = {}
        self.open, self.closed, self.lock = 0, 0, threading.Lock()

    def worker(
        self, name: str, *, piece: int = 5, seconds: float = 0.0, fails_after: int = -1, is_processor: bool = False, first: float = 0.0
    ) -> Worker:
        """`seconds` for each item, `first` more at the very first; the worker fails when it has done `fails_after` pieces."""
        count = 0

        def work(part: Partition) -> Generator[int, None, None]:
            nonlocal count
            self.begun.setdefault(name, []).append(part)
            with self.lock:
                self.open += 1
            try:
                for begin in range(part.first, part.last, piece):
                    end = min(part.last, begin + piece)
                    if count == fails_after:
                        raise DeviceError(f"{name} failed:\n  it is lost")
                    time.sleep((end - begin) * seconds + (first if count == 0 else 0.0))
                    count += 1
                    for item in range(begin, end):
                        self.by[item].append(name)
                    yield end
            finally:
                with self.lock:
                    self.open -= 1
                    self.closed += 1

        return Worker(name, work, is_processor)

    def share(self) -> Counter[str]:
        return Counter(name for names in self.by for name in names)

    @property
    def times(self) -> set[int]:
        return {len(names) for names in self.by}


def heard() -> tuple[Progress, list[ProgressEvent]]:
    events: list[ProgressEvent] = []
    progress = Progress(events.append, interval=0)
    progress.stage("Scoring", N)
    return progress, events


@pytest.mark.parametrize("n", [1, 2, 5])
def test_every_item_is_done_once(n: int) -> None:
    record, (progress, events) = Recorder(), heard()
    every = [record.worker(f"cuda:{number}") for number in range(n)]
    assert run_on_workers([*every, record.worker("cpu", piece=3, is_processor=True)], PARTS, progress) == []
    assert record.times == {1}
    assert max(event.done for event in events) == N
    assert not any(event.message for event in events)


def test_progress_counts_what_it_is_told_to_count() -> None:
    record, (progress, events) = Recorder(), heard()
    run_on_workers([record.worker("cuda:0")], PARTS, progress, step=lambda first, last: 10 * (last - first))
    assert events[-1].done == 10 * N


def test_no_partitions_or_no_workers_are_no_trouble() -> None:
    record, (progress, _) = Recorder(), heard()
    assert run_on_workers([record.worker("cuda:0"), record.worker("cpu", is_processor=True)], [], progress) == []
    assert run_on_workers([], PARTS, progress) == PARTS


def test_cards_begin_at_the_large_end_and_the_processor_at_the_small_one() -> None:
    record, (progress, _) = Recorder(), heard()
    parts = [Partition(0, 200, 200.0), Partition(200, 300, 100.0), Partition(300, 400, 100.0)]
    run_on_workers([record.worker("cuda:0", seconds=1e-3), record.worker("cpu", seconds=1e-3, is_processor=True)], parts, progress)
    assert record.begun["cuda:0"][0] == parts[0]
    first = record.begun["cpu"][0]
    assert first.first == 300
    assert first.cost == first.last - first.first < 10  # nothing is known of its speed yet


def test_one_large_partition_is_shared_between_all() -> None:
    record, (progress, _) = Recorder(), heard()
    every = [record.worker(f"cuda:{number}", piece=2, seconds=5e-4) for number in range(4)]
    assert run_on_workers(every, [Partition(0, N, 1.0)], progress) == []
    assert record.times == {1}
    assert min(record.share()[worker.name] for worker in every) > N // 16


def test_a_faster_worker_does_more_and_a_slow_one_gives_away_what_it_would_end_late() -> None:
    record, (progress, _) = Recorder(), heard()
    fast, slow = record.worker("cuda:0", piece=10, seconds=5e-4), record.worker("cpu", piece=2, seconds=3e-3, is_processor=True)
    parts = [Partition(0, 200, 200.0), Partition(200, N, 200.0)]
    assert run_on_workers([fast, slow], parts, progress) == []
    assert record.times == {1}
    share = record.share()
    # By its speed the slow one has 1 in 7; the partition that it began with is half.
    assert N // 20 < share["cpu"] < N // 4
    assert len(record.begun["cuda:0"]) > 1


def test_what_is_done_once_does_not_count_as_slowness() -> None:
    record, (progress, _) = Recorder(), heard()
    first, second = (record.worker(f"cuda:{i}", piece=4, seconds=1e-3, first=0.1 * i) for i in range(2))
    run_on_workers([first, second], [Partition(0, N, 1.0)], progress)
    assert record.share()["cuda:1"] > N // 5


def test_a_processor_whose_piece_takes_longer_than_the_cards_need_for_all_the_rest_takes_nothing_more() -> None:
    record, (progress, _) = Recorder(), heard()
    fast, slow = record.worker("cuda:0", piece=5, seconds=1e-4), record.worker("cpu", piece=5, seconds=2e-2, is_processor=True)
    parts = equal_partitions(np.ones(N), 1, per_worker=80)
    assert run_on_workers([fast, slow], parts, progress) == []
    assert record.share()["cpu"] <= 15


def test_a_given_speed_is_believed_before_one_is_measured() -> None:
    record, (progress, _) = Recorder(), heard()
    fast, slow = record.worker("cuda:0", seconds=1e-4), record.worker("cpu", seconds=1e-4, is_processor=True)
    started = Worker("cpu", slow.work, True, speed=1.0), Worker("cuda:0", fast.work, speed=1e9)
    assert run_on_workers(started, PARTS, progress) == []
    assert record.times == {1}


def test_another_card_takes_over_from_one_that_fails() -> None:
    record, (progress, events) = Recorder(), heard()
    workers = [record.worker("cuda:0", fails_after=3, seconds=1e-4), record.worker("cuda:1", seconds=1e-4)]
    assert run_on_workers(workers, PARTS, progress) == []
    assert record.times == {1}
    assert events[-1].done == N
    told = [event.message for event in events if event.message]
    assert told == ["cuda:0 failed: it is lost; what it had not finished is repeated elsewhere"]


def test_a_worker_that_idles_takes_over_when_the_last_one_fails() -> None:
    record, (progress, _) = Recorder(), heard()
    slow = record.worker("cpu", piece=1, seconds=1e-3, is_processor=True)
    workers = [record.worker("cuda:0", piece=100, seconds=1e-3, fails_after=0), slow]
    assert run_on_workers(workers, [Partition(0, N, 1.0)], progress) == []
    assert record.share() == {"cpu": N}


def test_what_no_card_can_do_is_returned_without_what_was_done() -> None:
    record, (progress, events) = Recorder(), heard()
    workers = [record.worker("cuda:0", fails_after=3), record.worker("cuda:1", fails_after=4)]
    left = run_on_workers(workers, PARTS, progress)
    undone = np.concatenate([np.arange(part.first, part.last) for part in left])
    np.testing.assert_array_equal(np.sort(undone), [item for item, names in enumerate(record.by) if not names])
    assert len(undone) == N - 35
    assert [part.cost for part in left] == sorted((part.cost for part in left), reverse=True)
    assert sum(part.cost for part in left) == pytest.approx(len(undone))
    assert len([event for event in events if event.message]) == 2


@pytest.mark.parametrize("n", [1, 3])
def test_a_cancel_closes_all_work(n: int) -> None:
    record, progress = Recorder(), Progress()
    workers = [record.worker(f"cuda:{number}", piece=1, seconds=1e-3) for number in range(n)]
    progress.stage("Scoring", N)
    timer = threading.Timer(0.05, progress.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        run_on_workers(workers, PARTS, progress)
    timer.join()
    assert record.open == 0
    assert 0 < sum(record.share().values()) < N


def test_a_fault_of_the_program_stops_all_and_is_raised() -> None:
    record, (progress, _) = Recorder(), heard()

    def broken(part: Partition) -> Generator[int, None, None]:
        yield part.first + 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_on_workers([Worker("cuda:0", broken), record.worker("cuda:1", piece=1, seconds=1e-3)], PARTS, progress)
    assert record.open == 0
    assert sum(record.share().values()) < N


def test_threads_do_each_piece_once_and_tell_what_is_done_in_order() -> None:
    done = np.zeros(N, int)
    random = np.random.default_rng(3)

    def work(part: Partition, stop: StopFlag) -> None:
        time.sleep(random.random() * 1e-3)
        done[part.first : part.last] += 1

    def cut(part: Partition) -> list[Partition]:
        return [Partition(first, min(part.last, first + 3), 3.0) for first in range(part.first, part.last, 3)][::-1]

    ends = []
    for end in work_on_threads(work, cut, 4, Progress())(Partition(10, 100, 1.0)):
        assert (done[10:end] == 1).all()
        ends.append(end)
    assert ends == sorted(set(ends))
    assert ends[-1] == 100
    assert done.sum() == 90
    stopped = work_on_threads(work, cut, 2, Progress())(Partition(100, N, 1.0))
    next(stopped)
    stopped.close()
    assert 0 < done[100:].sum() < 100


def _pieces_of_one(part: Partition) -> list[Partition]:
    return [Partition(item, item + 1, 1.0) for item in range(part.first, part.last)]


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_pieces_that_read_the_flag_leave_off_at_a_cancel_and_when_the_rest_is_given_up(is_cancelled: bool) -> None:
    progress, left_off = Progress(), []

    def work(piece: Partition, stop: StopFlag) -> None:
        while piece.first > 0 and not stop[0]:
            time.sleep(1e-3)
        left_off.append(piece.first)

    ends = work_on_threads(work, _pieces_of_one, 2, progress)(Partition(0, 5, 5.0))
    assert next(ends) == 1
    if is_cancelled:
        progress.cancel()
        with pytest.raises(Cancelled):
            next(ends)
    else:
        ends.close()
    assert left_off[0] == 0
    assert set(left_off[1:]) <= {1, 2}


def test_what_the_processor_gives_away_is_begun_when_its_threads_have_left_it() -> None:
    """Else both would write the same rows."""
    busy, done, lock, gave_away = Counter[int](), Counter[int](), threading.Lock(), threading.Event()

    def work(piece: Partition, stop: StopFlag) -> None:
        busy[piece.first] += 1
        time.sleep(0.01)
        if stop[0]:
            gave_away.set()
            time.sleep(0.02)
        busy[piece.first] -= 1

    def on_card(part: Partition) -> Generator[int, None, None]:
        for item in range(part.first, part.last):
            assert not busy[item]
            with lock:
                done[item] += 1
            yield item + 1

    parts = [Partition(0, 70, 70.0), Partition(70, 100, 30.0)]
    slow = Worker("cpu", work_on_threads(work, _pieces_of_one, 2, Progress()), is_processor=True, speed=1e9)
    assert run_on_workers([slow, Worker("cuda:0", on_card)], parts, Progress()) == []
    assert gave_away.is_set()
    assert 70 < sum(done.values()) < 100


def test_a_card_that_fails_after_its_last_piece_gives_nothing_back() -> None:
    done = Counter[int]()

    def on_card(part: Partition) -> Generator[int, None, None]:
        done.update(range(part.first, part.last))
        yield part.last
        raise DeviceError("late")

    def work(piece: Partition, stop: StopFlag) -> None:
        done.update(range(piece.first, piece.last))

    processor = Worker("cpu", work_on_threads(work, _pieces_of_one, 2, Progress()), is_processor=True)
    parts = [Partition(10, 20, 10.0), Partition(0, 10, 10.0)]
    assert run_on_workers([Worker("cuda:0", on_card), processor], parts, Progress()) == []
    assert done == Counter(range(20))


def test_the_processor_has_no_cards() -> None:
    assert cards(Device("cpu", "a processor", 1, True), Progress()) == []


def test_a_card_that_cannot_be_opened_is_told_in_one_line_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Opened:
        name, limit = "cuda:1", -1

        def limit_memory(self, n_bytes: int) -> None:
            self.limit = n_bytes

    def card(number: int) -> Any:
        if number == 0:
            raise DeviceError("cuda:0 failed: the driver\n  is too old")
        return Opened()

    monkeypatch.setattr(module, "card", card)
    progress, events = heard()
    opened = cards(Device("cuda:0+cuda:1", "two", 1, True, numbers=(0, 1)), progress, memory_bytes=2_000_000_000)
    assert [one.name for one in opened] == ["cuda:1"]
    assert opened[0].limit == 2_000_000_000  # type: ignore[attr-defined]
    assert events[-1].message == "cuda:0 failed: the driver is too old; it is not used"


# The search of spectra through cards that tests/shim stands in for.


@pytest.fixture(scope="module")
def shim() -> Any:
    from tests.shim import shim_card

    if shim_card.missing_compiler():
        pytest.skip(shim_card.missing_compiler())
    return shim_card


@pytest.fixture
def searched(shim: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, list[str]]]:
    """Searches on cards; what came of it, and what was told."""
    from engine.identification.parameters import IdentificationParameters
    from engine.matches import scoring
    from engine.spectra.spectrum_index import SpectrumIndex
    from kernels.cuda.scoring import SpectrumSearch
    from tests.shim.search_inputs import random_search

    spectra, queries, peptides, modifications, settings = random_search(7, 2, most=1, n_queries=40)
    monkeypatch.setattr(scoring, "scoring_settings", lambda *_: settings)
    monkeypatch.setattr(SpectrumSearch, "candidates_of_batch", 100)
    index = SpectrumIndex(spectra, queries, len(queries.mass))

    def search(used: list[Any], *, with_processor: bool = False) -> tuple[Any, list[str]]:
        for number, one in enumerate(used):
            one.name = f"shim:{number}"
        progress, events = heard()
        one = scoring.Search(index, peptides, modifications, IdentificationParameters(), Resources(2, list(used), with_processor, progress))
        one.plan()
        return one.run(), [event.message for event in events if event.message]

    return search


def assert_same(found: Any, expected: Any) -> None:
    assert len(expected) > 15
    for name in ("spectrum", "peptide", "site", "modification", "n_candidates"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.expectation, expected.expectation, rtol=1e-9)
    np.testing.assert_allclose(found.score, expected.score, rtol=1e-6)


@pytest.mark.parametrize(
    ("failing", "with_processor"),
    [
        ((-1,), False),
        ((-1,), True),
        ((-1, -1, -1), False),
        ((-1, -1), True),
        ((0,), False),  # lost while it counts
        ((8,), False),  # and while it searches
        ((8,), True),
        ((8, -1), False),
        ((6, 9), False),
        ((-1, 7, 9), True),
    ],
)
def test_any_cards_and_the_processor_give_the_hits_of_the_processor(
    failing: tuple[int, ...], with_processor: bool, shim: Any, searched: Callable[..., tuple[Any, list[str]]]
) -> None:
    expected, nothing = searched([])
    used = [shim.ShimCard(failing_launch=launch) for launch in failing]
    found, told = searched(used, with_processor=with_processor)
    assert_same(found, expected)
    assert not nothing
    lost = [one for one in used if one._lost]
    assert len(told) == len(lost), told
    assert all("the card is lost; what it had not finished is repeated elsewhere" in text for text in told)


@pytest.mark.parametrize(("failing", "memory"), [((-1,), 512), ((-1, -1), 8), ((3,), 512), ((8,), 8), ((5, -1), 512)])
def test_a_fragment_index_on_any_cards_gives_the_hits_of_the_processor(
    failing: tuple[int, ...], memory: int, shim: Any, searched: Callable[..., tuple[Any, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.matches import fragment_index, scoring

    monkeypatch.setattr(fragment_index.FragmentSearch, "is_worthwhile", lambda *_: True)
    expected, _ = searched([])
    monkeypatch.setattr(fragment_index, "SearchOnCard", partial(fragment_index.SearchOnCard, pairs_of_batch=8, forms_of_chunk=1024))
    monkeypatch.setattr(scoring, "_MB", memory * 1000)
    used = [shim.ShimCard(failing_launch=launch) for launch in failing]
    found, told = searched(used)
    assert_same(found, expected)
    lost = [one for one in used if one._lost]
    assert len(lost) == sum(launch >= 0 for launch in failing)
    assert len(told) == len(lost), told
    assert any("search_chunks" in kernel for one in used for kernel in one.launched) == (failing != (3,))


@pytest.mark.parametrize("with_processor", [False, True])
def test_spectra_with_more_peaks_than_a_card_takes_go_to_the_processor_and_no_others(
    shim: Any, searched: Callable[..., tuple[Any, list[str]]], monkeypatch: pytest.MonkeyPatch, with_processor: bool
) -> None:
    from engine.matches import scoring
    from kernels.cuda.scoring import SpectrumSearch

    expected, _ = searched([])
    peaks: list[int] = []

    class Noting(SpectrumSearch):
        def search_queries(self, spectra: Any, queries: Any, *others: Any) -> Generator[int, None, None]:
            peaks.extend(np.diff(spectra.offsets)[queries.spectrum].tolist())
            return super().search_queries(spectra, queries, *others)

    monkeypatch.setattr(scoring, "SpectrumSearch", Noting)
    monkeypatch.setattr(scoring, "MOST_PEAKS", {2: 80})
    found, told = searched([shim.ShimCard(), shim.ShimCard()], with_processor=with_processor)
    assert_same(found, expected)
    assert told == []
    assert len(peaks) > 5
    assert max(peaks) <= 80


def test_what_is_searched_again_leaves_nothing_twice(
    shim: Any, searched: Callable[..., tuple[Any, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.matches import scoring

    expected, _ = searched([])

    def all_by_each(workers: list[Worker], partitions: list[Partition], progress: Progress) -> list[Partition]:
        for part in partitions:
            for worker in workers:
                for _ in worker.work(part):
                    pass
        return partitions

    monkeypatch.setattr(scoring, "run_on_workers", all_by_each)
    found, _ = searched([shim.ShimCard()], with_processor=True)
    assert_same(found, expected)


def test_a_full_card_is_searched_in_small_batches_or_its_share_goes_elsewhere(
    shim: Any, searched: Callable[..., tuple[Any, list[str]]]
) -> None:
    expected, _ = searched([])
    full, fuller = shim.ShimCard(), shim.ShimCard()
    full.largest_buffer, fuller.largest_buffer = 210_000, 1000
    found, told = searched([full, fuller])
    assert_same(found, expected)
    assert len(told) == 1
    assert "no room" in told[0]


def test_cards_of_little_memory_are_searched_within_it(shim: Any, searched: Callable[..., tuple[Any, list[str]]]) -> None:
    class Small(shim.ShimCard):
        """A card that knows what is taken of its memory."""

        def __init__(self, n_bytes: int) -> None:
            super().__init__()
            self.n_bytes, self.taken, self.most, self.refused = n_bytes, 0, 0, 0

        def free_bytes(self) -> int:
            return self.n_bytes - self.taken

        def buffer(self, n_bytes: int) -> Any:
            if n_bytes > self.free_bytes():
                self.refused += 1
                raise DeviceMemoryError(f"{self.name} has not enough free memory")
            buffer = super().buffer(n_bytes)
            self.taken += n_bytes
            self.most = max(self.most, self.taken)
            weakref.finalize(buffer, self._freed, n_bytes)
            return buffer

        def _freed(self, n_bytes: int) -> None:
            self.taken -= n_bytes

    expected, _ = searched([])
    for n_bytes in (1_000_000, 400_000):
        used = [Small(n_bytes), Small(n_bytes)]
        found, told = searched(used)
        assert_same(found, expected)
        assert told == []
        assert all(0 < one.most <= n_bytes for one in used)
        gc.collect()
        assert all(one.taken == 0 for one in used)
    found, told = searched([Small(150_000)])  # less than the proteins take
    assert_same(found, expected)
    assert len(told) == 1
    assert "not enough" in told[0]


def test_a_kernel_that_does_not_compile_costs_no_hits(shim: Any, searched: Callable[..., tuple[Any, list[str]]]) -> None:
    expected, _ = searched([])

    class Old(shim.ShimCard):
        def launch(self, file: str, kernel: str, *arguments: Any, **options: Any) -> None:
            raise DeviceError(f"a kernel does not compile for {self.name}:\n{file}(3): error: " + "no such intrinsic\n" * 100)

    found, told = searched([Old(), shim.ShimCard()], with_processor=True)
    assert_same(found, expected)
    assert len(told) == 1
    assert told[0].startswith("a kernel does not compile for shim:0: scoring.cu(3): error: no such intrinsic")
    assert "\n" not in told[0]
    assert len(told[0]) < 400
