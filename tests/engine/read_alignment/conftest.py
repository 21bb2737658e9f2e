"""Fixtures shared by the tests of read alignment."""

from __future__ import annotations

import pytest


@pytest.fixture
def genome(shared_data) -> str:
    path = shared_data / "dna" / "dna_lambda.fasta"
    if not path.exists():
        pytest.skip("the lambda genome is absent")
    return "".join(path.read_text().splitlines()[1:])
