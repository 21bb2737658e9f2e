"""Both phases of the structure search, on the CPU and on a GPU (through tests/shim), against the recurrences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.structure_alignment import LANES, StructureSearch
from proteoscope.kernels.cpu.structure_pairs import align_pair
from proteoscope.kernels.cuda.structure_alignment import analysis
from proteoscope.kernels.device import Device, DeviceError, DeviceMemoryError, backend_module
from proteoscope.kernels.structure_layouts import Rewards, StructureArrays
from tests.shim.read_only import read_only
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.structure_inputs import plain_element_score, plain_score, random_rewards, random_structures

needs_compiler = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
DEVICES = [
    pytest.param(lambda: Processor(2), id="cpu"),
    pytest.param(ShimGpu, id="gpu", marks=needs_compiler),
    pytest.param(lambda: ShimGpu(descending=True), id="GPU descending", marks=needs_compiler),
]
on_each = pytest.mark.parametrize("device", DEVICES)
LENGTHS = sorted([1, 2, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 40, 64, 65, 90, *range(20, 20 + 2 * LANES)])


class SmallGpu(ShimGpu):
    """A GPU with limited free memory."""

    def __init__(self, free: int) -> None:
        super().__init__()
        self._free = free

    def free_bytes(self) -> int:
        return self._free


def searched(
    device: Device,
    query: StructureArrays,
    chains: StructureArrays,
    rewards: Rewards,
    least: int,
    first: int = 0,
    last: int | None = None,
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    n = len(chains.offsets) - 1
    scores, element_scores = np.full(n, -7, np.int32), np.full(n, -7, np.int32)
    search = backend_module(device, "structure_alignment").StructureSearch(device, chains)
    return scores, element_scores, list(search.score(query, rewards, least, scores, element_scores, first, last))


def plain(query: StructureArrays, chains: StructureArrays, rewards: Rewards, least: int) -> tuple[list[int], list[int]]:
    every = [chains.chain(i) for i in range(len(chains.offsets) - 1)]
    elements = [plain_element_score(query, chain, rewards) if least else -1 for chain in every]
    scores = [
        plain_score(query, chain, rewards) if of_elements >= least or not least else -1
        for chain, of_elements in zip(every, elements, strict=True)
    ]
    return scores, elements


@on_each
@pytest.mark.parametrize("compares", [False, True], ids=["tables", "differences"])
@pytest.mark.parametrize("least", [0, 120_000])
def test_structure_alignment_scores_equal_plain_recurrences(device, compares, least):
    rng = np.random.default_rng(3)
    query, chains = random_structures(rng, [50]), random_structures(rng, LENGTHS)
    rewards = random_rewards(rng, 2 if compares else 5, compares)
    scores, elements, ends = searched(device(), query, chains, rewards, least)
    expected, expected_elements = plain(query, chains, rewards, least)
    assert scores.tolist() == expected and elements.tolist() == expected_elements
    assert ends[-1] == len(LENGTHS) and ends == sorted(ends)
    if least:
        assert 0 < sum(score >= 0 for score in expected) < len(expected)


@on_each
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    length=st.integers(1, 120),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    gaps=st.sampled_from([(300, 40), (0, 0), (10, 10), (50, 0), (1 << 30, 1 << 30)]),
)
def test_structure_alignment_scores_are_exact_for_random_inputs(device, seed, length, lengths, gaps):
    rng = np.random.default_rng(seed)
    query, chains, rewards = random_structures(rng, [length]), random_structures(rng, lengths), random_rewards(rng, 3, gaps=gaps)
    scores, elements, _ = searched(device(), query, chains, rewards, 100_000)
    expected, expected_elements = plain(query, chains, rewards, 100_000)
    assert scores.tolist() == expected and elements.tolist() == expected_elements


@needs_compiler
def test_structure_alignment_scores_on_gpu_equal_cpu_in_batches():
    rng = np.random.default_rng(5)
    query, chains, rewards = random_structures(rng, [900]), random_structures(rng, [3, 70, 200, 410]), random_rewards(rng, 2, True)
    mine, mine_elements, _ = searched(Processor(1), query, chains, rewards, 1)
    for memory in (1 << 30, 10_000):
        scores, elements, _ = searched(SmallGpu(memory), query, chains, rewards, 1)
        assert scores.tolist() == mine.tolist() and elements.tolist() == mine_elements.tolist()
    with pytest.raises(DeviceMemoryError, match="not enough for one chain"):
        searched(SmallGpu(1000), query, chains, rewards, 1)


@on_each
def test_structure_search_scores_only_requested_chains(device):
    rng = np.random.default_rng(6)
    query, chains, rewards = random_structures(rng, [30]), random_structures(rng, LENGTHS), random_rewards(rng)
    scores, elements, ends = searched(device(), query, chains, rewards, 1, 5, 9)
    assert (scores[:5] == -7).all() and (scores[9:] == -7).all() and (elements[9:] == -7).all()
    whole, _, _ = searched(device(), query, chains, rewards, 1)
    assert scores[5:9].tolist() == whole[5:9].tolist() and ends[-1] == 9


@on_each
def test_self_alignment_score_is_unaffected_by_longer_chains(device):
    rng = np.random.default_rng(7)
    chains, rewards = random_structures(rng, [10, 11, 200]), random_rewards(rng)
    single = chains.chain(0)
    read_only(single.offsets)  # like those of a database
    alone, _, _ = searched(device(), chains.chain(0), single, rewards, 0)
    together, _, _ = searched(device(), chains.chain(0), chains, rewards, 0)
    assert alone[0] == together[0] == plain_score(chains.chain(0), chains.chain(0), rewards)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), lengths=st.tuples(st.integers(1, 80), st.integers(1, 80)), compares=st.booleans())
def test_structure_alignment_score_equals_sum_over_pairs(seed, lengths, compares):
    rng = np.random.default_rng(seed)
    # Part of a database, the type that the kernel is compiled ahead for.
    query, chain = (random_structures(rng, [length]).chain(0) for length in lengths)
    rewards = random_rewards(rng, 2, compares)
    score, pairs = align_pair(query, chain, rewards)
    assert score == plain_score(query, chain, rewards)
    worth = sum(
        plain_score(query_residue(query, i), query_residue(chain, j), rewards) or lost(query, chain, rewards, i, j)
        for i, j in pairs.tolist()
    )
    for (i, j), (k, m) in zip(pairs.tolist(), pairs[1:].tolist(), strict=False):
        assert k > i and m > j
        for gap in (k - i - 1, m - j - 1):
            worth -= rewards.gap_first + (gap - 1) * rewards.gap_next if gap else 0
    assert worth == score


def query_residue(arrays: StructureArrays, i: int) -> StructureArrays:
    return arrays._replace(state=arrays.state[i : i + 1], length=arrays.length[i : i + 1], angle=arrays.angle[i : i + 1])


def lost(query: StructureArrays, chain: StructureArrays, rewards: Rewards, i: int, j: int) -> int:
    """Return the reward of a pair; to get negative rewards too, 1000 is added before alignment and subtracted afterwards."""
    raised = rewards._replace(tables=rewards.tables + np.array([1000] + [0] * (len(rewards.tables) - 1))[:, None, None])
    return plain_score(query_residue(query, i), query_residue(chain, j), raised) - 1000


@needs_compiler
def test_structure_search_analysis_predicts_the_work_of_the_gpu():
    rng = np.random.default_rng(8)
    query, chains = random_structures(rng, [500]), random_structures(rng, LENGTHS)
    for least, compares in ((1, True), (0, False)):
        gpu, rewards = ShimGpu(), random_rewards(rng, 2, compares)
        searched(gpu, query, chains, rewards, least)
        counted = analysis(query, chains, rewards, least)
        assert len(gpu.launched) == counted.launches
        assert gpu.bytes_in // 4 == counted.words_in and gpu.bytes_out == 4 * counted.words_out


@needs_compiler
def test_structure_search_reports_a_lost_gpu():
    rng = np.random.default_rng(9)
    with pytest.raises(DeviceError, match="lost"):
        searched(ShimGpu(failing_launch=1), random_structures(rng, [40]), random_structures(rng, LENGTHS), random_rewards(rng), 1)


def test_structure_search_stops_when_generator_is_closed():
    rng = np.random.default_rng(10)
    chains, n = random_structures(rng, [400] * 400), 400
    scores, elements = np.full(n, -7, np.int32), np.full(n, -7, np.int32)
    work = StructureSearch(Processor(1), chains).score(random_structures(rng, [12_000]), random_rewards(rng, 5), 0, scores, elements)
    next(work)
    work.close()
    assert (scores == -7).any()
