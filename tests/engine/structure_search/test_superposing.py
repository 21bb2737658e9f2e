"""Candidates are superposed equally on GPUs and CPUs, individually and together with those of other queries."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from proteoscope.engine import structure_search
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structure_search.candidates import Comparison, query_batches
from proteoscope.engine.structure_search.hits import query_hits
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.scoring import build_workload
from proteoscope.engine.structure_search.structures import described
from proteoscope.engine.structure_search.superposing import build_superposition_workload, superpose_pairs
from proteoscope.engine.structures.chains import Chains
from proteoscope.kernels.structure_layouts import FoundSuperpositions
from tests.shim.chain_inputs import random_chain, random_pairs
from tests.shim.shim_gpu import ShimGpu, missing_compiler

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")


def made_of(resources: Resources, pairs) -> FoundSuperpositions:
    with Executor(resources).session(build_superposition_workload()) as session:
        return superpose_pairs(session, pairs)


@pytest.mark.parametrize("failing_launch", [-1, 0])
def test_superpositions_are_equal_on_cpu_gpu_and_after_gpu_loss(failing_launch):
    pairs = random_pairs(np.random.default_rng(1), 4, 10, 30)
    expected = made_of(Resources(2), pairs)
    for with_processor in (False, True):
        superpositions = made_of(Resources(2, [ShimGpu(failing_launch=failing_launch)], with_processor), pairs)
        for name, column, expected_column in zip(FoundSuperpositions._fields, superpositions, expected, strict=True):
            np.testing.assert_array_equal(column, expected_column, err_msg=name)


def test_structure_hits_do_not_depend_on_query_batches(monkeypatch):
    rng, n, length = np.random.default_rng(2), 4, 24
    residue = rng.integers(0, 20, n * length).astype(np.int8)
    position = np.concatenate([random_chain(rng, length) for _ in range(n)]).astype(np.float32)
    whole = np.zeros(n * length, np.int32)
    chains = described(
        Chains(
            tuple(f"chain_{i}" for i in range(n)),
            ("",) * n,
            np.arange(n + 1) * length,
            position,
            residue,
            np.ones(n * length, np.uint8),
            np.full(n * length, np.nan, np.float32),
            whole,
            np.zeros(n * length, np.uint8),
            whole,
        )
    )
    tables = []
    for gpus, n_rows, n_hits in (([], 1, 100), ([ShimGpu()], 1 << 16, 100), ([ShimGpu()], 2 * n, 100), ([ShimGpu()], 1 << 16, 2)):
        monkeypatch.setattr(structure_search.hits, "_ROWS", n_rows)
        resources = Resources(2, list(gpus), progress=Progress())
        with ExitStack() as stack:
            session, superposing = (
                stack.enter_context(Executor(resources).session(work))
                for work in (build_workload(chains.arrays), build_superposition_workload())
            )
            parameters = StructureSearchParameters(hits_per_query=n_hits)
            comparison = Comparison(chains, chains, parameters, session, resources, superposing)
            batches = query_batches(chains, parameters, resources)
            tables.append([hits.hits.to_pylist() for batch in batches for hits in query_hits(comparison, batch)])
    assert sum(map(len, tables[0])) > n
    assert repr(tables[0]) == repr(tables[1]) == repr(tables[2]), "NaN equals NaN here"
    assert repr([hits[:2] for hits in tables[0]]) == repr(tables[3])
