"""The public names of the package `proteoscope`, and the few modules that its import loads."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import proteoscope
from proteoscope.engine.api.results import RESULT_CLASSES
from proteoscope.engine.searches import SEARCHES
from tests.conftest import REPOSITORY

FUNCTIONS = sorted(name for name in proteoscope.__all__ if inspect.isfunction(getattr(proteoscope, name, None)))
HEAVY = ("numpy", "numba", "pydantic", "pyarrow", "duckdb", "scipy", "matplotlib", "PySide6")


def test_import_of_the_package_loads_no_computing_modules() -> None:
    code = f"import proteoscope, sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.strip() == "[]"


def test_every_search_has_a_function_that_returns_its_result() -> None:
    returned = {inspect.signature(getattr(proteoscope, name)).return_annotation for name in FUNCTIONS}
    assert {result.__name__ for result in RESULT_CLASSES.values()} <= returned
    assert set(RESULT_CLASSES) == {search.kind for search in SEARCHES}


def test_package_exports_the_parameters_of_every_search() -> None:
    assert {search.model.__name__ for search in SEARCHES} <= set(proteoscope.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_api_function_describes_each_argument_and_has_an_example(name: str) -> None:
    function = getattr(proteoscope, name)
    described = function.__doc__ or ""
    assert ">>> " in described
    head = described.partition("Returns\n")[0]
    for argument in inspect.signature(function).parameters:
        assert argument in head, argument
