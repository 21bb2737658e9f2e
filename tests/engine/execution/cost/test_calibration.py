"""A processor is measured; kinds of work are counted; what a device should do is guessed where nobody knows it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.execution.cost.calibration import calibrate_processor
from engine.execution.cost.first_guess import predicted_speed
from engine.execution.cost.kept import device_key, keep_parameters
from engine.execution.cost.kind_samples import calibrate_kind, run_sample, size_of
from engine.execution.devices import processor
from engine.execution.kinds import KINDS
from engine.execution.work import CardShape, PredictableKind, Work, kind_of, sample_of
from engine.jobs.progress import Progress
from engine.searches import SEARCHES
from kernels.analyses_layouts import OPERATIONS
from kernels.cpu.processor import Processor
from kernels.cuda.alignment import AlignmentSearch
from kernels.cuda.alignment_plan import predicted_cycles
from tests.shim.shim_card import ShimCard, missing_compiler

SHAPE = CardShape(132, 227 << 10, 90)
OF_SEARCHES = [name for search in SEARCHES for name, _ in search.work]


@pytest.mark.parametrize("name", sorted(set(OF_SEARCHES)))
def test_every_kind_of_work_is_counted_and_grows(name):
    kind = kind_of(Work(name, {}, {}))
    assert isinstance(kind, PredictableKind)
    sizes = []
    for scale in (2.0**-8, 2.0**-4):
        sample = sample_of(kind, scale, 1)
        for shape in (None, SHAPE):
            sizes.append(size_of(sample.work, sample.states, shape))
            assert min(sizes[-1].operations, sizes[-1].items, sizes[-1].bytes_in, sizes[-1].bytes_out) > 0
    assert sizes[2].operations > sizes[0].operations
    assert sizes[3].operations > sizes[1].operations


def test_a_processor_is_measured_and_kept_and_guessed_by(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))
    key = device_key(processor(), 1)
    sample = sample_of(kind_of(Work("structures", {}, {})), 2.0**-9, 5)
    assert predicted_speed(sample.work, sample.states[0], Processor(1), 1) is None
    found = calibrate_processor(1, key, ["structures"], Progress())
    assert set(found.rates) == set(OPERATIONS)
    assert found.is_processor
    assert found.card is None
    keep_parameters(found)
    speed = predicted_speed(sample.work, sample.states[0], Processor(1), 1)
    run = run_sample(sample, Processor(1))
    cost = size_of(sample.work, sample.states, None).operations
    assert speed is not None
    assert cost / run.seconds / 30 < speed < cost / run.seconds * 30
    assert predicted_speed(sample.work._replace(kind="points"), {}, Processor(2), 2) is None


def test_kinds_that_nobody_samples_are_not_predicted():
    KINDS.setdefault("toy points", "tests.engine.execution.toy_kinds:NearestCentroid")
    with pytest.raises(ValueError, match="not predicted"):
        calibrate_kind("toy points", Processor(1), None)


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
def test_cycles_of_a_plan_need_no_card():
    """They are those of the parts that a search on the card would take."""
    rng = np.random.default_rng(3)
    lengths = np.sort(rng.integers(30, 400, 300))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    card = ShimCard()
    search = AlignmentSearch(card, rng.integers(0, 20, offsets[-1], np.int8), offsets)
    cycles = [predicted_cycles(90, 1, card.maximum_shared_bytes(), own, lengths) for own in ([300], [300, 300], [300] * 8)]
    assert cycles == sorted(cycles)
    assert cycles[1] < 1.9 * cycles[0], "two queries go together"
    work = [search.work(own).operations for own in ([300], [300, 300], [300] * 8)]
    assert 0.5 < cycles[2] / cycles[1] / (work[2] / work[1]) < 2.0
    assert predicted_cycles(90, 1, card.maximum_shared_bytes(), [300], np.zeros(0, np.int64)) == 0.0
