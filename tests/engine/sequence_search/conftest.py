"""Begin each test with an empty cache of packed databases."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def empty_cache(own_cache):
    return own_cache
