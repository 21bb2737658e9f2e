"""Partitions contain every item once, are balanced, and none exceeds the maximum cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proteoscope.kernels.device import Partition, equal_partitions, even_partitions, falling_partitions

COSTS = st.lists(st.integers(0, 1000), max_size=200)


def items(partitions: list[Partition]) -> list[int]:
    return sorted(item for partition in partitions for item in range(partition.first, partition.last))


@given(COSTS, st.integers(1, 9), st.integers(1, 9), st.one_of(st.just(float("inf")), st.floats(0.5, 5000)))
@example([2, 2, 2], 1, 1, 3.0)
@example([0, 0, 0], 2, 2, 1.0)
@example([5], 3, 8, 1.0)
def test_equal_partitions_have_each_item_once_within_cost_limit(
    costs: list[int], workers: int, per_worker: int, maximum_cost: float
) -> None:
    partitions = equal_partitions(np.array(costs), workers, maximum_cost=maximum_cost, per_worker=per_worker)
    assert items(partitions) == list(range(len(costs)))
    shown = [partition.cost for partition in partitions]
    assert shown == sorted(shown, reverse=True)
    for partition in partitions:
        assert partition.last > partition.first
        cost = sum(costs[partition.first : partition.last])
        assert abs(partition.cost - cost) < 1e-5
        assert cost <= maximum_cost * (1 + 1e-9) or partition.last - partition.first == 1


@given(COSTS.filter(any), st.integers(1, 9), st.integers(1, 9))
def test_equal_partitions_exceed_equal_share_by_up_to_one_item(costs: list[int], workers: int, per_worker: int) -> None:
    partitions = equal_partitions(np.array(costs), workers, per_worker=per_worker)
    assert len(partitions) <= workers * per_worker
    assert max(partition.cost for partition in partitions) <= sum(costs) / (workers * per_worker) + max(costs) + 1e-5


def test_equal_costs_give_equal_partitions() -> None:
    partitions = equal_partitions(np.ones(800), 4)
    assert [partition.last - partition.first for partition in partitions] == [25] * 32


@pytest.mark.parametrize(("n", "workers"), [(0, 3), (1, 3), (7, 1), (100, 3), (1001, 16)])
def test_even_partitions_contain_each_item_once_in_order(n: int, workers: int) -> None:
    partitions = even_partitions(n, workers)
    assert [item for partition in partitions for item in range(partition.first, partition.last)] == list(range(n))
    sizes = [partition.last - partition.first for partition in partitions]
    assert len(sizes) == min(n, 8 * workers) and max(sizes, default=0) - min(sizes, default=0) <= 1


def test_no_items_give_no_partitions() -> None:
    assert equal_partitions(np.zeros(0), 4) == []
    assert equal_partitions(np.zeros(0), 4, maximum_cost=10) == []


def test_equal_partitions_with_a_cost_limit_are_few() -> None:
    partitions = equal_partitions(np.ones(10_000), 2, maximum_cost=100)
    assert max(partition.cost for partition in partitions) <= 100
    assert len(partitions) <= 201


@given(COSTS, st.integers(1, 9))
@example([0, 0, 0], 2)
@example([1000, 1], 2)
def test_partitions_of_falling_cost_contain_every_item_once(costs: list[int], workers: int) -> None:
    partitions = falling_partitions(np.array(costs), workers)
    assert items(partitions) == list(range(len(costs)))
    shown = [partition.cost for partition in partitions]
    assert shown == sorted(shown, reverse=True)
    for partition in partitions:
        assert abs(partition.cost - sum(costs[partition.first : partition.last])) < 1e-5


def test_partitions_of_falling_cost_start_large_and_end_small() -> None:
    cost = np.full(100_000, 2.0)
    partitions = falling_partitions(cost, 4)
    shares = np.array([partition.cost for partition in partitions]) / (cost.sum() / 4)
    assert len(partitions) <= 4 * 3
    assert 0.7 < shares[0] < 0.8
    np.testing.assert_allclose(shares[:4], shares[0], rtol=1e-3)
    assert shares[-1] < 0.1
    assert falling_partitions(cost, 1) == [Partition(0, 100_000, cost.sum())]
