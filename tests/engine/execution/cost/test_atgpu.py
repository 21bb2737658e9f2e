"""The cost function equals the thesis's examples, worked out by hand."""

from __future__ import annotations

import pytest

from proteoscope.engine.execution.cost.atgpu import Machine, occupancy, serial_cost
from proteoscope.kernels.analyses_layouts import Round, addition_rounds, multiplication_rounds, reduction_rounds, scan_rounds

MACHINE = Machine(
    cores=32,
    multiprocessors=4,
    shared_words=12_288,
    global_words=1 << 20,
    resident_blocks=16,
    alpha_in=10.0,
    beta_in=0.5,
    alpha_out=20.0,
    beta_out=0.25,
    sigma=3.0,
    launch=1.0,
    gamma=2.0,
    lambda_=400.0,
)


def thesis_addition(n):
    """Algorithm 2: one round, 13 operations, three coalesced accesses of each of k = n / b multiprocessors, 3 n words in 3 transfers."""
    k = n // MACHINE.cores
    return (Round(k, 13, 3 * k, MACHINE.cores, 2 * n, n, 2, 1),)


def test_serial_cost_equals_examples_of_the_thesis():
    cost = serial_cost(MACHINE, thesis_addition(3200))
    # alpha and beta of 2 n words in 2 transfers and n words in one; (2 * 13 + lambda 3 k) / gamma with k = 100; sigma.
    assert cost == pytest.approx((2 * 10 + 6400 * 0.5, (2 * 13 + 400 * 300) / 2, 20 + 3200 * 0.25, 3.0))
    assert cost.seconds == pytest.approx(3220 + 60_013 + 820 + 3)
    assert cost.transfer_share == pytest.approx(4040 / cost.seconds)


def test_serial_cost_counts_waves_of_blocks_beyond_occupancy():
    # l = min(floor(12288 / 32), 16) = 16, k' l = 64, ceil(100 / 64) = 2.
    assert occupancy(MACHINE, 32) == 16
    assert serial_cost(MACHINE, thesis_addition(3200)).kernel == pytest.approx((2 * 13 + 400 * 300) / 2)
    # Shared memory holds twelve blocks of 1,000 words: ceil(100 / 48) = 3.
    crowded = (thesis_addition(3200)[0]._replace(shared_words=1000),)
    assert serial_cost(MACHINE, crowded).kernel == pytest.approx((3 * 13 + 400 * 300) / 2)


def test_serial_cost_uses_cache_latency_for_cached_blocks():
    again = (thesis_addition(3200)[0]._replace(cached_blocks=200),)
    assert serial_cost(MACHINE, again).kernel == serial_cost(MACHINE, thesis_addition(3200)).kernel, "a cache that was not measured"
    assert serial_cost(MACHINE._replace(cached_lambda=100.0), again).kernel == pytest.approx((2 * 13 + 400 * 100 + 100 * 200) / 2)


def test_matrix_multiplication_rounds_count_cached_tiles():
    (first,) = multiplication_rounds(160)
    assert first.memory_blocks - first.cached_blocks == pytest.approx(3 * 160 * 160 / 32), "both matrices once, and the product"
    assert multiplication_rounds(16)[0].cached_blocks == 0


def test_serial_cost_rejects_rounds_larger_than_memory():
    with pytest.raises(ValueError, match=r"needs 12,289 words of shared memory; a multiprocessor has 12,288"):
        serial_cost(MACHINE, [Round(1, 1, 1, 12_289)])
    with pytest.raises(ValueError, match="global memory"):
        serial_cost(MACHINE, addition_rounds(1 << 20))


def test_serial_cost_of_round_without_transfer_is_a_launch():
    rounds = reduction_rounds(512 * 512 * 2)
    assert len(rounds) == 3
    assert serial_cost(MACHINE, rounds).synchronisation == pytest.approx(3.0 + 2 * 1.0)


def test_serial_cost_uses_the_measured_transfer_curve():
    cost = serial_cost(MACHINE, thesis_addition(3200), lambda n_bytes, is_inward: n_bytes / (1000 if is_inward else 100))
    assert (cost.transfer_in, cost.transfer_out) == pytest.approx((2 * 12.8, 128))


@pytest.mark.parametrize(
    ("rounds", "n", "into", "out"),
    [
        (addition_rounds, 10_000, 20_000, 10_000),
        (multiplication_rounds, 64, 2 * 64 * 64, 64 * 64),
        (reduction_rounds, 10**6, 10**6, 1),
        (scan_rounds, 10**6, 10**6, 10**6),
    ],
)
def test_words_transferred_by_rounds_equal_the_thesis(rounds, n, into, out):
    """O(n) words for all: 3 n for an addition, 3 n n for a product, n + 1 for a reduction, 2 n for a scan, as in the thesis."""
    assert sum(step.words_in for step in rounds(n)) == into
    assert sum(step.words_out for step in rounds(n)) == out


def test_number_of_reduction_rounds_is_logarithmic():
    assert [len(reduction_rounds(512**power)) for power in (1, 2, 3)] == [1, 2, 3]
    assert len(scan_rounds(512**3)) == 5
