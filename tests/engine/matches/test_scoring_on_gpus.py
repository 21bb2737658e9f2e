"""Scoring on simulated GPUs (tests/shim) and the CPU: the same hits whatever fails."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.kernels.device import DeviceError, DeviceMemoryError


@pytest.fixture(scope="module")
def shim() -> Any:
    from tests.shim import shim_gpu

    if shim_gpu.missing_compiler():
        pytest.skip(shim_gpu.missing_compiler())
    return shim_gpu


@pytest.fixture
def searched(shim: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, list[str]]]:
    """Return a function that searches on GPUs and returns the matches and messages."""
    from proteoscope.engine.identification.parameters import IdentificationParameters
    from proteoscope.engine.matches import scoring
    from proteoscope.engine.spectra.columns import SpectrumSeries
    from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
    from proteoscope.kernels.cuda.scoring import SpectrumSearch
    from tests.shim.search_inputs import random_search

    monkeypatch.setattr(SpectrumSearch, "candidates_of_batch", 100)
    spectra, queries, peptides, modifications, settings = random_search(7, 2, most=1, n_queries=40)
    monkeypatch.setattr(scoring, "scoring_settings", lambda *_: settings)
    index = SpectrumIndex(
        spectra, queries, len(queries.mass), SpectrumSeries.for_spectra("by", np.zeros(len(spectra.offsets) - 1, np.uint8))
    )

    def search(used: list[Any], *, with_cpu: bool = False) -> tuple[Any, list[str]]:
        for number, gpu in enumerate(used):
            gpu.name = f"shim:{number}"
        progress = RecordingProgress(Progress())
        scoring_pass = scoring.plan_scoring(
            index, peptides, modifications, IdentificationParameters(), Resources(2, list(used), with_cpu, progress)
        )
        return scoring_pass.run(), [text for text in progress.messages if not text.startswith(("Planned shares", "The CPU computes"))]

    return search


def assert_same(actual: Any, expected: Any) -> None:
    assert len(expected) > 15
    for name in ("spectrum", "peptide", "site", "modification", "n_candidates"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))
    np.testing.assert_allclose(actual.expectation, expected.expectation, rtol=1e-9)
    np.testing.assert_allclose(actual.score, expected.score, rtol=1e-6)


@pytest.mark.parametrize(
    ("failing", "with_cpu"),
    [
        ((-1,), False),
        ((-1,), True),
        ((-1, -1, -1), False),
        ((-1, -1), True),
        ((0,), False),  # lost while counting
        ((8,), False),  # lost while searching
        ((8,), True),
        ((8, -1), False),
        ((6, 9), False),
        ((-1, 7, 9), True),
    ],
)
def test_scoring_on_gpus_and_cpu_equals_scoring_on_cpu(
    failing: tuple[int, ...], with_cpu: bool, shim: Any, searched: Callable[..., tuple[Any, list[str]]]
) -> None:
    expected, no_messages = searched([])
    used = [shim.ShimGpu(failing_launch=launch) for launch in failing]
    matches, messages = searched(used, with_cpu=with_cpu)
    assert_same(matches, expected)
    assert not no_messages
    lost = [gpu for gpu in used if gpu._lost]
    assert len(messages) == len(lost), messages
    assert all("the GPU is lost; its unfinished items are repeated elsewhere" in text for text in messages)


@pytest.mark.parametrize(("failing", "memory"), [((-1,), 512), ((-1, -1), 8), ((3,), 512), ((8,), 8), ((5, -1), 512)])
def test_fragment_index_on_gpu_finds_the_hits_of_the_cpu(
    failing: tuple[int, ...], memory: int, shim: Any, searched: Callable[..., tuple[Any, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from proteoscope.engine.matches import fragment_index, scoring
    from proteoscope.kernels.cuda.fragment_index import FragmentSearch as FragmentSearchOnGpu

    monkeypatch.setattr(fragment_index.FragmentIndexSearch, "is_worthwhile", lambda *_: True)
    expected, _ = searched([])
    monkeypatch.setattr(FragmentSearchOnGpu, "pairs_of_batch", 8)
    monkeypatch.setattr(FragmentSearchOnGpu, "forms_of_chunk", 1024)
    monkeypatch.setattr(scoring, "_MB", memory * 1000)
    used = [shim.ShimGpu(failing_launch=launch) for launch in failing]
    matches, messages = searched(used)
    assert_same(matches, expected)
    lost = [gpu for gpu in used if gpu._lost]
    assert len(lost) == sum(launch >= 0 for launch in failing)
    assert len(messages) == len(lost), messages
    assert any("search_chunks" in kernel for gpu in used for kernel in gpu.launched) == (failing != (3,))


@pytest.mark.parametrize("with_cpu", [False, True])
def test_spectra_with_many_peaks_are_scored_on_the_cpu(
    shim: Any, searched: Callable[..., tuple[Any, list[str]]], monkeypatch: pytest.MonkeyPatch, with_cpu: bool
) -> None:
    from proteoscope.engine.matches import scoring
    from proteoscope.kernels.cuda.scoring import SpectrumSearch

    expected, _ = searched([])
    peaks: list[int] = []
    search_queries = SpectrumSearch.search_queries

    def recording(self: SpectrumSearch, spectra: Any, queries: Any, *others: Any) -> Generator[int, None, None]:
        peaks.extend(np.diff(spectra.offsets)[queries.spectrum].tolist())
        return search_queries(self, spectra, queries, *others)

    monkeypatch.setattr(SpectrumSearch, "search_queries", recording)
    monkeypatch.setattr(scoring, "MAXIMUM_PEAKS", {2: 80})
    matches, messages = searched([shim.ShimGpu(), shim.ShimGpu()], with_cpu=with_cpu)
    assert_same(matches, expected)
    assert messages == []
    assert len(peaks) > 5
    assert max(peaks) <= 80


def test_gpu_with_little_memory_uses_small_batches_or_is_skipped(shim: Any, searched: Callable[..., tuple[Any, list[str]]]) -> None:
    expected, _ = searched([])
    limited, full = shim.ShimGpu(), shim.ShimGpu()
    limited.largest_buffer, full.largest_buffer = 210_000, 1000
    matches, messages = searched([limited, full])
    assert_same(matches, expected)
    assert len(messages) == 1
    assert "not enough memory for" in messages[0]


def test_scoring_respects_the_gpu_memory_limit(shim: Any, searched: Callable[..., tuple[Any, list[str]]]) -> None:
    class LimitedGpu(shim.ShimGpu):
        """A GPU that accounts for its allocated memory."""

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
        used = [LimitedGpu(n_bytes), LimitedGpu(n_bytes)]
        matches, messages = searched(used)
        assert_same(matches, expected)
        assert messages == []
        assert all(0 < gpu.most <= n_bytes for gpu in used)
        gc.collect()
        assert all(gpu.taken == 0 for gpu in used)
    matches, messages = searched([LimitedGpu(150_000)])  # less memory than the proteins need
    assert_same(matches, expected)
    assert len(messages) == 1
    assert "not enough" in messages[0]


def test_scoring_loses_no_hits_when_a_kernel_cannot_compile(shim: Any, searched: Callable[..., tuple[Any, list[str]]]) -> None:
    expected, _ = searched([])

    class OldGpu(shim.ShimGpu):
        def launch(self, file: str, kernel: str, *arguments: Any, **options: Any) -> None:
            raise DeviceError(f"a kernel does not compile for {self.name}:\n{file}(3): error: " + "no such intrinsic\n" * 100)

    matches, messages = searched([OldGpu(), shim.ShimGpu()], with_cpu=True)
    assert_same(matches, expected)
    assert len(messages) == 1
    assert messages[0].startswith("a kernel does not compile for shim:0: candidate_counts.cu(3): error: no such intrinsic")
    assert "\n" not in messages[0]
    assert len(messages[0]) < 400


def test_scoring_on_gpu_accepts_an_index_without_peptides(shim: Any) -> None:
    from proteoscope.kernels.cuda.scoring import SpectrumSearch
    from tests.shim.search_inputs import random_search

    _, _, peptides, modifications, settings = random_search(7, 2, most=1, n_queries=40)
    empty = peptides._replace(**{name: getattr(peptides, name)[:0] for name in ("mass", "position", "length", "flags", "letters", "known")})
    SpectrumSearch(shim.ShimGpu(), empty, modifications, settings)
