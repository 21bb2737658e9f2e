"""Runs of different lengths in one array."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.arrays import batch_runs, run_offsets


@pytest.mark.parametrize("lengths", [[0, 0, 5, 0, 3], [0, 0], [4], [3_000_000, 0, 0, 2_000_000, 1, 0], [0, 0, 9_000_000, 0]])
def test_batches_of_array_runs_contain_every_run_once(lengths):
    result = batch_runs(run_offsets(np.array(lengths))[:-1])
    assert [row for part in result for row in range(len(lengths))[part]] == list(range(len(lengths)))
