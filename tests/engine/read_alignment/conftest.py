"""What several tests of the read alignment share."""

from __future__ import annotations

import pytest


@pytest.fixture
def genome(shared_data) -> str:
    path = shared_data / "dna" / "dna_lambda.fasta"
    if not path.exists():
        pytest.skip("the genome of lambda is not there")
    return "".join(path.read_text().splitlines()[1:])
