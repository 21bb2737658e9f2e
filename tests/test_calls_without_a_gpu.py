"""Code that needs a GPU, in tests and benchmarks, calls the program's functions with their actual parameters."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
FILES = sorted([*(TESTS / "gpu").glob("*.py"), *(TESTS.parent / "benchmarks").glob("*.py")])
OURS = ("proteoscope", "benchmarks", "tests")


def imported(tree: ast.Module) -> dict[str, Any]:
    """Return the objects of the names that are imported from the program."""
    functions = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            module = importlib.import_module(node.module)
            for name in node.names:
                if not hasattr(module, name.name):
                    importlib.import_module(f"{node.module}.{name.name}")
                functions[name.asname or name.name] = getattr(module, name.name)
    return functions


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, Any]]:
    """Return calls of functions and classes of the program by an imported name, or by a name of an imported module."""
    names = imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in names:
            yield node, names[called.id]
        elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and inspect.ismodule(names.get(called.value.id)):
            yield node, getattr(names[called.value.id], called.attr)


def error_of_call(node: ast.Call, function: Any) -> str:
    """Return why a call cannot be made, or '' if it can or if arguments are unpacked."""
    function = getattr(function, "py_func", function)
    if (
        not callable(function)
        or any(isinstance(argument, ast.Starred) for argument in node.args)
        or any(argument.arg is None for argument in node.keywords)
    ):
        return ""
    try:
        inspect.signature(function).bind(*node.args, **{str(keyword.arg): keyword.value for keyword in node.keywords})
    except (TypeError, ValueError) as error:
        return f"line {node.lineno}, {getattr(function, '__qualname__', function)}: {error}"
    return ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_gpu_tests_and_benchmarks_pass_valid_arguments(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert not [text for node, function in calls(tree) if (text := error_of_call(node, function))]


def test_check_of_calls_reports_a_missing_argument():
    tree = ast.parse("from proteoscope.kernels.cpu import candidates as cpu\ncpu.search_queries(1, 2, 3)\ncpu.search_queries(*range(9))\n")
    assert ["search_queries" in text for node, function in calls(tree) if (text := error_of_call(node, function))] == [True]
