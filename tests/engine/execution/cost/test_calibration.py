"""A CPU is measured, operations of workload types are counted, and run times on unmeasured devices are estimated."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from proteoscope.engine.execution.cost import calibration
from proteoscope.engine.execution.cost.calibration import calibrate_processor
from proteoscope.engine.execution.cost.calibration_store import calibrated_at, store_calibration, stored_calibration
from proteoscope.engine.execution.cost.kind_samples import KindSamples, Run, measure_workload, minimum_run, run_sample, runs_in_turn
from proteoscope.engine.execution.cost.parameters import KindCosts
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.execution.kinds import KINDS, workload_type
from proteoscope.engine.execution.workload import GpuShape, PredictableWorkloadType, Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.searches import SEARCHES
from proteoscope.kernels.analyses_layouts import OPERATIONS
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.alignment import AlignmentSearch
from proteoscope.kernels.cuda.alignment_plan import predicted_cycles
from tests.engine.execution.toy_kinds import NearestCentroid
from tests.shim.shim_gpu import ShimGpu, missing_compiler

SHAPE = GpuShape(132, 227 << 10, 90)
OF_SEARCHES = [name for search in SEARCHES for name, _ in search.workload_types]


@pytest.mark.parametrize("name", sorted(set(OF_SEARCHES)))
def test_operations_of_every_workload_type_grow_with_sample_size(name):
    kind = workload_type(Workload(name, {}, {}))
    assert isinstance(kind, PredictableWorkloadType)
    sizes = []
    for scale in (2.0**-8, 2.0**-5):
        sample = kind.samples(scale, 1)
        for shape in (None, SHAPE):
            sizes.append(measure_workload(sample.workload, sample.states, shape))
            assert min(sizes[-1].operations, sizes[-1].items, sizes[-1].bytes_in, sizes[-1].bytes_out) > 0
    assert sizes[2].operations > sizes[0].operations
    assert sizes[3].operations > sizes[1].operations


def test_calibrated_cpu_predicts_run_time_of_a_sample(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))
    clock = SimpleNamespace(perf_counter=count(0.0, 0.25).__next__)  # every run takes a quarter of a second
    monkeypatch.setattr("proteoscope.engine.execution.cost.kind_samples.time", clock)
    sample = workload_type(Workload("structures", {}, {})).samples(2.0**-9, 5)
    measured = calibrate_processor(1, ["structures"], Progress())
    assert set(measured.rates) == set(OPERATIONS)
    assert measured.is_processor
    assert measured.gpu is None
    assert (stored_calibration(processor(), 1), calibrated_at(processor(), 1)) == (None, None)
    store_calibration(processor(), 1, measured)
    assert stored_calibration(processor(), 1) == measured
    assert stored_calibration(processor(), 2) is None
    seconds = run_sample(sample, Processor(1)).seconds
    predicted = measured.kinds["structures"].kernel_seconds(measure_workload(sample.workload, sample.states, None).operations)
    assert predicted == pytest.approx(seconds) == 0.25


@pytest.mark.parametrize(("seconds", "turns"), [(0.0, 2), (1e9, 5)])
def test_calibration_repeats_samples_while_time_remains(seconds, turns, monkeypatch):
    run = list[str]()
    monkeypatch.setattr(calibration, "_SECONDS", seconds)
    monkeypatch.setattr(KindSamples, "grow", lambda self, *_: run.append("first"))
    monkeypatch.setattr(KindSamples, "again", lambda self: run.append("again"))
    monkeypatch.setattr(KindSamples, "costs", lambda self: KindCosts(operations=(1.0,), kernel=(1.0,)))
    calibrate_processor(1, ["structures", "reads"], Progress())
    assert run == ["first"] * 2 + ["again"] * 2 * (turns - 1)


def test_workload_types_without_samples_are_not_predicted():
    KINDS.setdefault("toy points", lambda: NearestCentroid)
    with pytest.raises(ValueError, match="has no cost model"):
        KindSamples("toy points", Processor(1), None)


def test_minimum_run_returns_the_minimum_of_each_time():
    def parts(*runs, is_processor=False):
        combined = minimum_run(runs, is_processor=is_processor)
        return combined.seconds, combined.kernel, combined.transfer

    quick, slow = Run(0.008, 0.002, 0.002), Run(0.011, 0.001, 0.003)
    assert parts(quick, slow) == (0.008, 0.001, 0.002)
    assert parts(slow, is_processor=True) == (0.011, 0.011, 0.0)
    assert parts(Run(0.004, 0.001, 0.001), Run(0.003, 0.0, 0.0, False)) == (0.003, 0.001, 0.001), "recording takes extra time"
    assert sum(parts(Run(0.02, 0.015, 0.004), Run(0.015, 0.014, 0.001))[1:]) <= 0.015


def test_calibration_measures_one_run_of_a_sample_on_the_cpu():
    sample = workload_type(Workload("structures", {}, {})).samples(2.0**-9, 5)
    (run,) = runs_in_turn(sample, Processor(1))
    assert run.is_noted
    assert run.kernel == run.seconds > 0


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
def test_gpu_cycles_are_predicted_without_a_gpu():
    """The predicted cycles are summed over the parts that a search on the GPU would run."""
    rng = np.random.default_rng(3)
    lengths = np.sort(rng.integers(30, 400, 300))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    gpu = ShimGpu()
    search = AlignmentSearch(gpu, rng.integers(0, 20, offsets[-1], np.int8), offsets)
    cycles = [
        predicted_cycles(90, 1, gpu.maximum_shared_bytes(), query_lengths, lengths) for query_lengths in ([300], [300, 300], [300] * 8)
    ]
    assert cycles == sorted(cycles)
    assert cycles[1] < 1.9 * cycles[0], "two queries are aligned together"
    work = [search.work(query_lengths).operations for query_lengths in ([300], [300, 300], [300] * 8)]
    assert 0.5 < cycles[2] / cycles[1] / (work[2] / work[1]) < 2.0
    assert predicted_cycles(90, 1, gpu.maximum_shared_bytes(), [300], np.zeros(0, np.int64)) == 0.0
