"""Kernels of each search with their argument types, and a record of the kernels that are compiled on this machine.

`resources/kernels.json`, which `installer/kernel_signatures.py` writes, lists them by group: one group for each kind of search, and others
for kernels that few searches need. Types are JSON: the name of a scalar; ``["array", scalar, dimensions, layout]``, with ``"readonly"`` if
it must not be written; ``["tuple", ...]``; or ``["kernels.MODULE.NAME", ...]`` for a named tuple.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import numba
from numba.core import types
from numba.core.types.containers import BaseNamedTuple, BaseTuple, Tuple

from proteoscope import resources
from proteoscope.kernels.cpu.elementary import power

__all__ = [
    "ListedKernel",
    "compile_kernel",
    "compiled_groups",
    "describe_type",
    "is_compiled",
    "kernel_groups",
    "listed_kernels",
    "load_kernels",
    "mark_compiled",
    "needed_kernels",
    "parse_type",
    "run_compiler",
]

_PACKAGE = "proteoscope."
_MODULE = re.compile(r"(kernels(?:\.[a-z_]+)+)\.(\w+)")
_SCALARS = {
    str(scalar): scalar
    for scalar in (
        *(types.boolean, types.int8, types.int16, types.int32, types.int64, types.uint8, types.uint16, types.uint32, types.uint64),
        *(types.float32, types.float64, types.none),
    )
}
_LAYOUTS = {"C", "F", "A"}
_MAXIMUM_DIMENSIONS = 8
_OBJECTS_BETWEEN_COLLECTIONS = 300_000  # compiling creates many objects but little garbage, so collect rarely


class ListedKernel(NamedTuple):
    """Kernel with its argument types, and the numbers of the kernels that it calls, which precede it in the list."""

    name: str
    types: list[Any]
    calls: list[int]


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(resources.path("kernels.json").read_text(encoding="utf-8"))
    return content


@cache
def listed_kernels() -> tuple[ListedKernel, ...]:
    """Return all listed kernels; the number of a kernel is its index."""
    return tuple(ListedKernel(*entry) for entry in _content()["kernels"])


def kernel_groups() -> dict[str, list[int]]:
    """Return the numbers of the top-level kernels of each group, without the kernels that these call."""
    groups: dict[str, list[int]] = _content()["groups"]
    return groups


def parse_type(description: Any) -> types.Type:
    """Return the Numba type of a description.

    Raises
    ------
    ValueError
        If the description does not describe a type of kernel arguments.
    """
    if isinstance(description, str) and description in _SCALARS:
        return _SCALARS[description]
    if not isinstance(description, list) or not description:
        raise ValueError(f"not a type of an argument: {description!r:.80}")
    kind, *content = description
    if kind == "array":
        scalar, dimensions, layout, *access = content
        if (
            scalar not in _SCALARS
            or dimensions not in range(_MAXIMUM_DIMENSIONS)
            or layout not in _LAYOUTS
            or access not in ([], ["readonly"])
        ):
            raise ValueError(f"not a type of an array: {description!r:.80}")
        return types.Array(_SCALARS[scalar], dimensions, layout, readonly=bool(access))
    fields = [parse_type(field) for field in content]
    return Tuple(fields) if kind == "tuple" else BaseTuple.from_types(fields, _named_tuple(kind))


def _named_tuple(name: str) -> type[tuple[Any, ...]]:
    """Return a class of named tuples in the package `kernels`, given its name."""
    matched = _MODULE.fullmatch(name)
    result = getattr(importlib.import_module(_PACKAGE + matched[1]), matched[2], None) if matched else None
    if not (isinstance(result, type) and issubclass(result, tuple) and hasattr(result, "_fields")):
        raise ValueError(f"not a named tuple of kernels: {name:.80}")
    return result


def describe_type(argument: types.Type) -> Any:
    """Return the description of a Numba type.

    Raises
    ------
    ValueError
        If `parse_type` would return another type.
    """
    if isinstance(argument, types.Array):
        description: Any = ["array", str(argument.dtype), argument.ndim, argument.layout, *([] if argument.mutable else ["readonly"])]
    elif isinstance(argument, BaseTuple):
        name = "tuple"
        if isinstance(argument, BaseNamedTuple):
            name = f"{argument.instance_class.__module__}.{argument.instance_class.__qualname__}".removeprefix(_PACKAGE)
        description = [name, *map(describe_type, argument.types)]
    else:
        description = str(argument)
    if parse_type(description) != argument:
        raise ValueError(f"kernels cannot be compiled in advance for arguments of type {argument!r:.200}")
    return description


def compile_kernel(listed: ListedKernel) -> None:
    """Compile a listed kernel, or load it from Numba's cache."""
    module, _, name = listed.name.rpartition(".")
    kernel = getattr(importlib.import_module(_PACKAGE + module), name)
    kernel.compile(tuple(parse_type(argument) for argument in listed.types))


def needed_kernels(groups: Iterable[str]) -> set[int]:
    """Return the numbers of the kernels in the groups and of all kernels that these call."""
    listed = listed_kernels()
    needed = {number for group in groups for number in kernel_groups()[group]}
    for number in range(len(listed) - 1, -1, -1):  # callees come before their callers
        if number in needed:
            needed.update(listed[number].calls)
    return needed


def run_compiler() -> None:
    """Compile the kernels whose numbers are in standard input; after each, write '' or the reason of the failure, as JSON."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    for line in sys.stdin:
        try:
            compile_kernel(listed_kernels()[int(line)])
            reason = ""
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        sys.stdout.write(json.dumps(reason) + "\n")
        sys.stdout.flush()


def load_kernels(group: str, module: str) -> None:
    """Load the kernels of a module that a group needs, before they are first called."""
    for number in kernel_groups()[group]:
        listed = listed_kernels()[number]
        if listed.name.startswith(f"kernels.cpu.{module}."):
            compile_kernel(listed)


def is_compiled(group: str) -> bool:
    """Return True if a group is marked as compiled for this CPU and these sources."""
    try:
        return _mark(group).read_text(encoding="ascii") == _sources()
    except (OSError, ValueError):
        return False


def compiled_groups() -> set[str]:
    """Return the groups that are marked as compiled for this CPU and these sources."""
    return set(filter(is_compiled, kernel_groups()))


def mark_compiled(groups: Iterable[str]) -> None:
    """Mark groups, and all groups whose kernels are thus compiled too, with files next to Numba's cache; raise OSError on failure."""
    compiled = needed_kernels([*groups, *compiled_groups()])
    for group in kernel_groups():
        if needed_kernels([group]) <= compiled:
            _mark(group).parent.mkdir(parents=True, exist_ok=True)
            _mark(group).write_text(_sources(), encoding="ascii")


def _mark(group: str) -> Path:
    """Return the path of the file that marks a group; it contains the CPU, since several CPUs may use the folder."""
    return Path(power.stats.cache_path, f"{group}.{_cpu_digest()}.compiled")


@cache
def _cpu_digest() -> str:
    cpu = llvmlite.binding.get_host_cpu_name() + llvmlite.binding.get_host_cpu_features().flatten()
    return sha256(cpu.encode()).hexdigest()[:16]


@cache
def _sources() -> str:
    """Return a digest of everything that determines the compiled code.

    These are the list of kernels, the names and modification times of the source files, and the version of Numba.
    """
    folders = Path(__file__).parent, Path(__file__).parents[1]
    files = sorted(
        (entry.name, entry.stat().st_mtime_ns) for folder in folders for entry in os.scandir(folder) if entry.name.endswith(".py")
    )
    return sha256(json.dumps([files, numba.__version__, _content()]).encode()).hexdigest()
