"""Superpositions on a GPU equal those on the CPU, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import backend_module
from proteoscope.kernels.structure_layouts import SEARCH_STEPS, FoundSuperpositions
from tests.shim.chain_inputs import random_pairs

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("lengths", [(1, 40), (20, 120), (100, 500), (700, 2600)], ids=str)
def test_gpu_superpositions_equal_cpu(device, lengths):
    pairs = random_pairs(np.random.default_rng(lengths[1]), 60 if lengths[1] < 600 else 6, *lengths)
    every = []
    for used in (Processor(8), device):
        actual = FoundSuperpositions.empty(pairs)
        ends = list(backend_module(used, "superposition").ChainSuperposition(used, SEARCH_STEPS).superpose(pairs, actual))
        assert ends[-1] == len(pairs.fixed)
        every.append(actual)
    for name, expected, actual in zip(FoundSuperpositions._fields, *every, strict=True):
        np.testing.assert_array_equal(actual, expected, err_msg=name)
