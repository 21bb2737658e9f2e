"""The kinds of work that are known: the entries of searches add theirs. Light, so that an entry is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from proteoscope.engine.execution.workload import Workload, WorkloadType

__all__ = ["KINDS", "RegisteredWorkload", "register_kinds", "workload_type"]

RegisteredWorkload: TypeAlias = "tuple[str, Callable[[], type[WorkloadType]]]"
"""The name of a kind of work, and a callable that imports its `proteoscope.engine.execution.workload.WorkloadType` and returns it."""

KINDS: dict[str, Callable[[], type[WorkloadType]]] = {}
"""The callable of each kind, by its name."""


def register_kinds(kinds: Iterable[RegisteredWorkload]) -> None:
    """Register kinds of work; the same kind may be registered again.

    Searches that share a kind register the same callable: none is called here, since that would import what computes.

    Parameters
    ----------
    kinds : iterable of RegisteredWorkload
        Name and callable of each kind.

    Raises
    ------
    ValueError
        If a name is registered for another callable.
    """
    for name, load in kinds:
        if KINDS.setdefault(name, load) is not load:
            raise ValueError(f"the kind of work '{name}' is registered already, by {KINDS[name].__module__}")


def workload_type(workload: Workload) -> WorkloadType:
    """Return the type of a workload.

    Raises
    ------
    ValueError
        There is no such type.
    """
    load = KINDS.get(workload.kind)
    if load is None:
        raise ValueError(f"there is no kind of work '{workload.kind:.60}'")
    return load()()
