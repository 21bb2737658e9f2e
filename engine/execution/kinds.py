"""Registry of workload types, filled by the entries of the searches; it imports only small modules, so that entries load fast."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from proteoscope.engine.execution.workload import Workload, WorkloadType

__all__ = ["KINDS", "RegisteredWorkload", "register_kinds", "workload_type"]

RegisteredWorkload: TypeAlias = "tuple[str, Callable[[], type[WorkloadType]]]"
"""Name of a workload type, and a function that imports and returns its `proteoscope.engine.execution.workload.WorkloadType`."""

KINDS: dict[str, Callable[[], type[WorkloadType]]] = {}
"""Function that imports and returns each workload type, by name."""


def register_kinds(kinds: Iterable[RegisteredWorkload]) -> None:
    """Register workload types; registering the same type again has no effect.

    Searches that use the same type register the same function. The functions are not called here, since they import the computing modules.

    Parameters
    ----------
    kinds : iterable of RegisteredWorkload
        Name and importing function of each workload type.

    Raises
    ------
    ValueError
        If a name is already registered with another function.
    """
    for name, load in kinds:
        if KINDS.setdefault(name, load) is not load:
            raise ValueError(f"workload type '{name}' is already registered by {KINDS[name].__module__}")


def workload_type(workload: Workload) -> WorkloadType:
    """Return the type of a workload.

    Raises
    ------
    ValueError
        If the type is not registered.
    """
    load = KINDS.get(workload.kind)
    if load is None:
        raise ValueError(f"workload type '{workload.kind:.60}' is not registered")
    return load()()
