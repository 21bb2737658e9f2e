"""Structure alignment scores on a GPU equal those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import backend_module
from tests.shim.structure_inputs import random_rewards, random_structures

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("compares", [False, True], ids=["tables", "differences"])
@pytest.mark.parametrize("length", [4, 33, 150, 300, 383, 385, 900, 2500])
@pytest.mark.parametrize("least", [0, 150_000])
def test_gpu_structure_alignment_scores_equal_cpu(device, length, compares, least):
    rng = np.random.default_rng(length)
    query = random_structures(rng, [length])
    chains = random_structures(rng, sorted([*rng.integers(4, 700, 3000).tolist(), 3000]))
    rewards = random_rewards(rng, 2 if compares else 5, compares)
    actual = []
    for used in (Processor(8), device):
        scores, element_scores = np.full(3001, -7, np.int32), np.full(3001, -7, np.int32)
        list(backend_module(used, "structure_alignment").StructureSearch(used, chains).score(query, rewards, least, scores, element_scores))
        actual.append((scores, element_scores))
    np.testing.assert_array_equal(actual[0], actual[1])
