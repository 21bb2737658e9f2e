"""Spectral library searches on a GPU: references, similarities and peak counts equal those on the CPU, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import library_search as cuda
from proteoscope.kernels.library_layouts import Matching, Pools
from tests.kernels.test_library_search import TOLERANCE, random_peaks, random_task, searched
from tests.shim.tuning import tuned

pytestmark = pytest.mark.gpu

SIMILARITIES = pytest.mark.parametrize("is_entropy", [False, True], ids=["cosine", "entropy"])
SHIFTS = pytest.mark.parametrize("is_shifted", [False, True], ids=["in place", "shifted"])


def large_task(seed):
    """Queries that are compared with thousands of references, as in open searches."""
    rng = np.random.default_rng(seed)
    queries, references = random_peaks(rng, 500, most=90, span=9000), random_peaks(rng, 20_000, most=90, span=9000)
    low = np.sort(rng.integers(0, 15_000, (500, 1)), axis=0)
    pools = Pools(low, low + rng.integers(0, 5000, (500, 1)))
    return (
        queries,
        rng.integers(100_000, 101_000, 500).astype(np.int32),
        references,
        rng.integers(100_000, 101_000, 20_000).astype(np.int32),
        pools,
    )


@SIMILARITIES
@SHIFTS
def test_gpu_library_search_equals_cpu(is_entropy, is_shifted, device):
    matching = Matching(TOLERANCE, 0, 2, is_entropy, is_shifted, 2 if is_shifted else -1)
    for task in (*map(random_task, range(5)), large_task(1)):
        expected = searched(Processor(8), task, matching)
        for left, right in zip(searched(device, task, matching), expected, strict=True):
            np.testing.assert_array_equal(left, right)
    assert (expected[0] >= 0).sum() > 400


def test_gpu_library_search_equals_cpu_for_any_launch_size(device):
    task, matching = large_task(2), Matching(TOLERANCE, 0, 1, True, True, 2)
    expected = searched(Processor(8), task, matching)
    references = task[2]
    whole = 6 * int(references.offsets[-1]) + 20 * len(task[3])
    for changed in (
        {"queries_of_batch": 37, "pairs_of_launch": 50_000},
        {"share_of_free_memory": whole / 3.5 / device.free_bytes()},
    ):
        for left, right in zip(searched(device, task, matching, tuned(cuda.LibrarySearch, **changed)), expected, strict=True):
            np.testing.assert_array_equal(left, right)
