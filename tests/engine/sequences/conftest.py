"""Packed databases of tests stay apart: each begins with an empty cache."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def empty_cache(own_cache):
    return own_cache
