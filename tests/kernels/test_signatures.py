"""The list of kernels with the types that searches call them with, and the marks of groups that are compiled."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace

import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.types import BaseTuple, NamedTuple, NamedUniTuple, Type

from proteoscope.engine.searches import SEARCHES
from proteoscope.kernels.cpu import signatures
from proteoscope.kernels.cpu.signatures import ListedKernel

FLOATS = ["array", "float64", 1, "C"]


@pytest.fixture
def own_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return three kernels in two groups that share a requirement, and a folder for marks."""
    listed = ListedKernel("a", [], []), ListedKernel("b", [], [0]), ListedKernel("c", [], [])
    monkeypatch.setattr(signatures, "listed_kernels", lambda: listed)
    monkeypatch.setattr(signatures, "kernel_groups", lambda: {"all": [1, 2], "few": [1], "other": [2]})
    monkeypatch.setattr(signatures, "power", SimpleNamespace(stats=SimpleNamespace(cache_path=str(tmp_path / "marks"))))


def named_tuples(argument: Type) -> Iterator[NamedTuple | NamedUniTuple]:
    """Yield the named tuples in a type, which may be nested."""
    if isinstance(argument, (NamedTuple, NamedUniTuple)):
        yield argument
    if isinstance(argument, BaseTuple):
        for field in argument.types:
            yield from named_tuples(field)


def test_listed_kernels_have_as_many_types_as_parameters() -> None:
    """If the list is older than a kernel's parameters or the fields of a named tuple, it compiles kernels that no search calls."""
    n_tuples = 0
    for kernel in signatures.listed_kernels():
        module, _, name = kernel.name.rpartition(".")
        parameters = inspect.signature(resolve_name(f"proteoscope.{module}:{name}").py_func).parameters
        assert len(kernel.types) == len(parameters), f"{kernel.name}: run python -m installer.kernel_signatures"
        for argument in map(signatures.parse_type, kernel.types):
            for tuples in named_tuples(argument):
                assert len(tuples.types) == len(tuples.fields), f"{kernel.name}: run python -m installer.kernel_signatures"
                n_tuples += 1
    assert n_tuples > 100


def test_listed_kernels_exist_and_have_valid_types() -> None:
    listed = signatures.listed_kernels()
    assert len(listed) > 100
    for number, kernel in enumerate(listed):
        module, _, name = kernel.name.rpartition(".")
        assert module.startswith("kernels.cpu.")
        assert isinstance(resolve_name(f"proteoscope.{module}:{name}"), Dispatcher), kernel.name
        assert [signatures.describe_type(signatures.parse_type(argument)) for argument in kernel.types] == kernel.types
        assert all(callee < number for callee in kernel.calls)
    assert len({repr(kernel[:2]) for kernel in listed}) == len(listed)


def test_kernel_groups_contain_every_search() -> None:
    assert {search.kind for search in SEARCHES} <= set(signatures.kernel_groups())
    assert signatures.needed_kernels(signatures.kernel_groups()) == set(range(len(signatures.listed_kernels())))


def test_searches_load_kernels_of_their_groups_ahead() -> None:
    listed, n_modules = signatures.listed_kernels(), 0
    for path in Path(signatures.__file__).parents[2].glob("engine/*/search.py"):
        text = path.read_text(encoding="utf-8")
        for call in re.findall(r"run\.load_kernels\((.*?)\)", text):
            groups = set(re.findall(r'kernels="(\w+)"', text)) or set(re.findall(r'RunSpec\(\s*"(\w+)"', text))
            for module in re.findall(r'"(\w+)"', call):
                for group in groups:
                    names = [listed[number].name for number in signatures.kernel_groups()[group]]
                    assert any(name.startswith(f"kernels.cpu.{module}.") for name in names), f"{path}: {module}"
                    n_modules += 1
    assert n_modules


@pytest.mark.parametrize(
    "description",
    [
        "object",
        "__import__('os')",
        [],
        None,
        ["array", "float64", 99, "C"],
        ["array", "float64", 1, "X"],
        ["array", "float64", 1, "C", "writable"],
        ["os.system", "int64"],
        ["kernels.cpu.caching.settle_cache", "int64"],
        ["kernels.layouts.numpy", "int64"],
    ],
)
def test_parse_type_rejects_invalid_descriptions(description: object) -> None:
    with pytest.raises(ValueError):
        signatures.parse_type(description)


def test_parse_type_returns_the_types_of_arguments() -> None:
    assert str(signatures.parse_type(FLOATS)) == "array(float64, 1d, C)"
    assert not signatures.parse_type([*FLOATS, "readonly"]).mutable
    assert str(signatures.parse_type(["tuple", "int64", FLOATS])) == "Tuple(int64, array(float64, 1d, C))"


def test_needed_kernels_include_called_kernels(own_marks: None) -> None:
    assert signatures.needed_kernels(["few"]) == {0, 1}
    assert signatures.needed_kernels(["few", "other"]) == {0, 1, 2}


def test_mark_compiled_also_marks_fully_compiled_groups(own_marks: None) -> None:
    signatures.mark_compiled(["few"])
    assert signatures.compiled_groups() == {"few"}
    signatures.mark_compiled(["other"])
    assert signatures.compiled_groups() == {"all", "few", "other"}, "both together need what all needs"


def test_is_compiled_is_false_for_another_cpu_or_source(own_marks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    signatures.mark_compiled(["few"])
    with monkeypatch.context() as patch:
        patch.setattr(signatures.llvmlite.binding, "get_host_cpu_name", lambda: "another")
        patch.setattr(signatures, "_cpu_digest", signatures._cpu_digest.__wrapped__)
        assert not signatures.is_compiled("few")
    with monkeypatch.context() as patch:
        patch.setattr(signatures, "_sources", lambda: "changed")
        assert not signatures.is_compiled("few")
    assert signatures.is_compiled("few")
