"""Distribution of test files over the processes of pytest-xdist.

A process that crashes, or is ended because a test hangs (`installer/test.sh`), is replaced. pytest-xdist 3.8 then repeats that test
forever, or waits for tests that no process was ordered to start. With this scheduler, that test fails and the others are run.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


class FileScheduling(LoadFileScheduling):
    """Whole files for each process, in the order of collection; each test is run once even if processes crash."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Reassign the remaining tests of a process, and return the test that it was running if it crashed."""
        units = self.assigned_work[node]
        crashed = next((test for tests in units.values() for test, is_done in tests.items() if not is_done), None)
        if crashed is not None:
            units[self._split_scope(crashed)][crashed] = True
        super().remove_node(node)
        return crashed

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # a process that was just started gets files when it has collected them
        super()._reschedule(node)
        # A process starts a test only when the next test has been assigned to it, or when it knows that none is left.
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        with suppress(OSError):  # the process has just crashed; `remove_node` reassigns its tests
            super()._assign_work_unit(node)
