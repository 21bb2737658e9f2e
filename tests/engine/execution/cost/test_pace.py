"""A thread goes to a core that is left alone, and may go anywhere afterwards."""

from __future__ import annotations

import os

import pytest

from proteoscope.engine.execution.cost import pace
from proteoscope.engine.execution.cost.pace import calm_pace


class Cores:
    """Those of a machine of which some are slow, as the system and the loop tell of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, paces: dict[int, float], at: int) -> None:
        self.paces, self.at, self.allowed, self.tried, self.is_refused = paces, at, set(paces), list[int](), False
        monkeypatch.setattr(pace, "host_pace", lambda: self.paces[self.at])
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(self.allowed), raising=False)
        monkeypatch.setattr(os, "sched_setaffinity", self.go, raising=False)
        pace._cores.cache_clear()

    def go(self, process: int, cores: set[int]) -> None:
        assert process == 0, "the thread that asks, and no other"
        if self.is_refused:
            raise PermissionError
        self.allowed = set(cores)
        if self.at not in cores:
            self.at = min(cores)
            self.tried.append(self.at)


@pytest.fixture(autouse=True)
def own_cores() -> object:
    yield
    pace._cores.cache_clear()


def test_a_core_that_is_left_alone_keeps_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, {0: 2e-4, 1: 1e-4, 2: 1e-4}, 1)
    assert calm_pace() == 1e-4
    assert cores.tried == []


def test_another_is_looked_for_and_the_thread_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, {0: 1.9e-4, 1: 2e-4, 2: 1e-4, 3: 1e-4}, 2)
    calm_pace()
    cores.at = 1
    assert calm_pace() == 1e-4 and cores.at == 2
    assert cores.allowed == {0, 1, 2, 3}
    cores.at = 1
    assert calm_pace() == 1e-4 and cores.at == 3, "those behind the last one come first"


def test_where_all_are_slow_the_fastest_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, {0: 1e-4, 1: 1.8e-4, 2: 1.7e-4, 3: 1.9e-4}, 0)
    calm_pace()
    cores.paces[0] = 2e-4
    assert calm_pace() == 1.7e-4 and cores.at == 2
    assert cores.allowed == {0, 1, 2, 3}


def test_a_system_that_refuses_leaves_the_thread_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, {0: 1e-4, 1: 2e-4}, 0)
    calm_pace()
    cores.at, cores.is_refused = 1, True
    assert calm_pace() == 2e-4
    monkeypatch.delattr(os, "sched_setaffinity")
    assert calm_pace() == 2e-4
