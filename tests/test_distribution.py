"""Processes of tests that crash: each test runs once, and the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace

import pytest

pytest.importorskip("xdist")

from tests.distribution import FileScheduling

TESTS = [f"tests/test_{name}.py::test_{i}" for name, n in (("a", 3), ("b", 1), ("c", 1), ("d", 4), ("e", 1)) for i in range(n)]


class Process:
    """Process of pytest-xdist, which starts a test if it knows the next one, or after `shutdown`."""

    def __init__(self) -> None:
        self.tests: list[int] = []
        self.has_crashed = False
        self.shutting_down, self.gateway = False, SimpleNamespace(id="gw")

    def send_runtest_some(self, tests: list[int]) -> None:
        assert not self.shutting_down
        if self.has_crashed:
            raise OSError
        self.tests += tests

    def shutdown(self) -> None:
        self.shutting_down = True

    def startable(self) -> int | None:
        return self.tests[0] if len(self.tests) > 1 or (self.tests and self.shutting_down) else None


def run(crashing: set[str]) -> Iterator[str]:
    """Run the tests in two processes as `xdist.dsession` does, and yield each test that was started."""
    config = SimpleNamespace(getvalue=lambda _: ["2*popen"], option=SimpleNamespace(loadscopereorder=False))
    log = SimpleNamespace(loadscopesched=lambda *_: None, loadfilesched=lambda *_: None)
    scheduler = FileScheduling(config, log)
    starting, collecting, is_ending = [Process(), Process()], list[Process](), False
    while starting or collecting or scheduler.nodes:
        for process in collecting:
            scheduler.add_node_collection(process, TESTS)
            if scheduler.collection_is_completed:
                scheduler.schedule()
        for process in starting:
            scheduler.add_node(process)
        collecting, starting = starting, []
        is_idle = True
        for process in scheduler.nodes:
            if process.has_crashed:
                is_idle = False
                assert scheduler.remove_node(process) in crashing
                starting.append(Process())
                is_ending = False
            elif (test := process.startable()) is not None:
                is_idle = False
                yield TESTS[test]
                process.has_crashed = TESTS[test] in crashing
                if not process.has_crashed:
                    process.tests.pop(0)
                    scheduler.mark_test_complete(process, test)
            elif process.shutting_down and not process.tests:
                is_idle = False
                assert scheduler.remove_node(process) is None
            if scheduler.tests_finished and not is_ending:
                is_ending, is_idle = True, False
                for other in scheduler.nodes:
                    other.shutdown()
        assert not is_idle or starting or collecting, "it would wait for ever"


@pytest.mark.parametrize("crashing", [set(), {TESTS[1]}, {TESTS[-1]}, {TESTS[3], TESTS[4]}, set(TESTS[5:9]), set(TESTS)])
def test_each_test_runs_once_when_test_processes_crash(crashing: set[str]) -> None:
    assert sorted(islice(run(crashing), len(TESTS) + 1)) == sorted(TESTS)
