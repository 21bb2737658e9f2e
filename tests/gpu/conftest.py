"""The card that the tests of this folder run on; without one they are skipped, with the reason."""

from __future__ import annotations

import pytest

from engine.execution.devices import gpus
from kernels.cuda.modules import CudaCard, card


@pytest.fixture(scope="session")
def number() -> int:
    """The first usable CUDA device."""
    every = gpus()
    usable = [gpu for gpu in every if gpu.usable]
    if not usable:
        pytest.skip(f"no usable GPU: {every[0].reason}")
    return usable[0].numbers[0]


@pytest.fixture(scope="session")
def device(number: int) -> CudaCard:
    """Its card."""
    return card(number)
