"""A processor is measured; kinds of work are counted; what a device should do is guessed where nobody knows it."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.execution.cost import calibration
from proteoscope.engine.execution.cost.calibration import calibrate_processor
from proteoscope.engine.execution.cost.first_guess import predicted_speed
from proteoscope.engine.execution.cost.kept import device_key, keep_parameters
from proteoscope.engine.execution.cost.kind_samples import KindSamples, Run, least_run, run_sample, runs_in_turn, size_of
from proteoscope.engine.execution.cost.pace import host_pace, times_slower
from proteoscope.engine.execution.cost.parameters import KindCosts
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.execution.kinds import KINDS, kind_of
from proteoscope.engine.execution.work import CardShape, PredictableKind, Work
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.searches import SEARCHES
from proteoscope.kernels.analyses_layouts import OPERATIONS
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.alignment import AlignmentSearch
from proteoscope.kernels.cuda.alignment_plan import predicted_cycles
from tests.engine.execution.toy_kinds import NearestCentroid
from tests.shim.shim_card import ShimCard, missing_compiler

SHAPE = CardShape(132, 227 << 10, 90)
OF_SEARCHES = [name for search in SEARCHES for name, _ in search.work]


@pytest.mark.parametrize("name", sorted(set(OF_SEARCHES)))
def test_every_kind_of_work_is_counted_and_grows(name):
    kind = kind_of(Work(name, {}, {}))
    assert isinstance(kind, PredictableKind)
    sizes = []
    for scale in (2.0**-8, 2.0**-5):
        sample = kind.samples(scale, 1)
        for shape in (None, SHAPE):
            sizes.append(size_of(sample.work, sample.states, shape))
            assert min(sizes[-1].operations, sizes[-1].items, sizes[-1].bytes_in, sizes[-1].bytes_out) > 0
    assert sizes[2].operations > sizes[0].operations
    assert sizes[3].operations > sizes[1].operations


def test_a_processor_is_measured_and_kept_and_guessed_by(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))
    key = device_key(processor(), 1)
    sample = kind_of(Work("structures", {}, {})).samples(2.0**-9, 5)
    assert predicted_speed(sample.work, sample.states[0], Processor(1), 1) is None
    found = calibrate_processor(1, key, ["structures"], Progress())
    assert set(found.rates) == set(OPERATIONS)
    assert found.is_processor
    assert found.card is None
    assert found.pace > 0
    keep_parameters(found)
    speed = predicted_speed(sample.work, sample.states[0], Processor(1), 1)
    run = run_sample(sample, Processor(1))
    cost = size_of(sample.work, sample.states, None).operations
    assert speed is not None
    assert cost / run.seconds / 30 < speed < cost / run.seconds * 30
    assert predicted_speed(sample.work._replace(kind="points"), {}, Processor(2), 2) is None


@pytest.mark.parametrize(("seconds", "turns"), [(0.0, 2), (1e9, 5)])
def test_samples_are_run_in_as_many_turns_as_there_is_time_for(seconds, turns, monkeypatch):
    run = list[str]()
    monkeypatch.setattr(calibration, "_SECONDS", seconds)
    monkeypatch.setattr(KindSamples, "grow", lambda self, *_: run.append("first"))
    monkeypatch.setattr(KindSamples, "again", lambda self: run.append("again"))
    monkeypatch.setattr(KindSamples, "costs", lambda self, pace: KindCosts(operations=(1.0,), kernel=(1.0,)))
    calibrate_processor(1, "key", ["structures", "reads"], Progress())
    assert run == ["first"] * 2 + ["again"] * 2 * (turns - 1)


def test_kinds_that_nobody_samples_are_not_predicted():
    KINDS.setdefault("toy points", lambda: NearestCentroid)
    with pytest.raises(ValueError, match="not predicted"):
        KindSamples("toy points", Processor(1), None)


def test_what_disturbs_the_host_is_taken_out_and_kernels_keep_their_seconds():
    quick, slow = Run(0.008, 0.002, 0.002, True, 1e-4), Run(0.011, 0.002, 0.003, True, 1.5e-4)
    times = times_slower(1.5e-4, 1e-4)

    def parts(*runs, pace=1e-4):
        found = least_run(runs, pace, is_processor=False)
        return found.seconds, found.kernel, found.transfer

    assert parts(quick, slow) == pytest.approx((0.008, 0.002, 0.002))
    assert parts(quick, Run(0.008, 0.002, 0.002, True, 1.5e-4)) == pytest.approx((0.002 + 0.006 / times, 0.002, 0.002)), (
        "the quickest tells of transfers"
    )
    assert parts(slow) == pytest.approx((0.002 + 0.009 / times, 0.002, 0.003 / times))
    assert parts(Run(0.006, 0.0006, 0.0, True, 1.5e-4))[1] == pytest.approx(0.0006 / times), "kernels that wait for the host"
    assert least_run([slow], 1e-4, is_processor=True).kernel == pytest.approx(0.011 / times)
    assert parts(slow, pace=0.0) == pytest.approx((0.011, 0.002, 0.003)), "nobody knows the pace"
    short, plain = Run(0.004, 0.001, 0.001, True, 1e-4), Run(0.003, 0.0, 0.0, False, 1e-4)
    assert parts(short, plain) == pytest.approx((0.003, 0.001, 0.001)), "notes take time of their own"


def test_a_host_at_half_the_pace_takes_longer_but_not_without_bounds():
    assert times_slower(1e-4, 1e-4) == times_slower(0.0, 1e-4) == times_slower(1e-4, 0.0) == 1.0
    assert 1.5 < times_slower(2e-4, 1e-4) <= 2.0 == times_slower(1.0, 1e-4)
    assert times_slower(1e-4, 2e-4) == pytest.approx(1 / times_slower(2e-4, 1e-4))


def test_a_run_tells_the_pace_of_the_host():
    sample = kind_of(Work("structures", {}, {})).samples(2.0**-9, 5)
    (run,) = runs_in_turn(sample, Processor(1))
    assert run.is_noted
    assert run.kernel == run.seconds > 0
    assert 0 < run.pace < 10 * host_pace() + 1.0


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
