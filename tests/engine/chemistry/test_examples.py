"""The examples in the docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["masses", "modifications", "peptidoforms", "fragments"])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"engine.chemistry.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
