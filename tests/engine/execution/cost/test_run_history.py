"""Recent runs correct predictions; a past load is forgotten as soon as runs are fast again."""

from __future__ import annotations

import json

import numpy as np
import pytest

from proteoscope.engine.execution.cost.prediction import StepHistory


@pytest.fixture(autouse=True)
def own_cache(own_cache):
    return own_cache


def history() -> StepHistory:
    return StepHistory("align", "cpu", 2)


def estimate(predicted: dict[str, float]) -> float:
    return sum(history().corrected(predicted)[0].values())


class Machine:
    """Simulated machine: a step takes a constant plus a multiple of its prediction, times the load, with noise."""

    def __init__(self, seed: int = 1, noise: float = 0.03) -> None:
        self.rng, self.noise = np.random.default_rng(seed), noise

    def run(self, size: float, load: float, cpu_share: float = 1.0) -> tuple[float, float]:
        """Store a run and return the relative error of the estimate and the measured total."""
        predicted = {"start": 0.4, "read": 0.2 * size, "score": size}
        plain = {"start": 0.7, "read": 0.3 * size, "score": 0.1 + 1.3 * size}
        measured = {step: load * seconds * (1.0 + self.noise * self.rng.random()) for step, seconds in plain.items()}
        total = sum(measured.values())
        error = abs(estimate(predicted) - total) / total
        history().add(predicted, measured, cpu_share)
        return error, total


def test_corrected_prediction_follows_previous_run_of_same_size():
    predicted = {"start": 0.4, "read": 2.0}
    assert history().corrected(predicted) == (predicted, 0)
    history().add(predicted, {"start": 1.1, "read": 6.0})
    corrected, n = history().corrected(predicted)
    assert corrected == pytest.approx({"start": 1.1, "read": 6.0}) and n == 1
    assert StepHistory("align", "cpu", 4).corrected(predicted) == (predicted, 0), "runs with other threads"


def test_correction_multiplies_long_steps_and_adds_to_short_ones():
    # A step of 20 s that took 40 s: about twice as long for 40 s. A step of 0.01 s that took 0.3 s: about 0.3 s more.
    history().add({"long": 20.0, "short": 0.01}, {"long": 40.0, "short": 0.3})
    corrected, _ = history().corrected({"long": 40.0, "short": 0.05})
    assert corrected["long"] == pytest.approx(80.0, rel=0.03)
    assert corrected["short"] == pytest.approx(0.34, rel=0.1)


def test_corrected_prediction_prefers_runs_of_similar_size():
    for _ in range(3):
        history().add({"score": 10.0}, {"score": 30.0})
    for _ in range(3):
        history().add({"score": 0.1}, {"score": 0.2})
    assert history().corrected({"score": 10.0})[0]["score"] == pytest.approx(30.0)
    assert history().corrected({"score": 0.1})[0]["score"] == pytest.approx(0.2)


@pytest.mark.parametrize("size", [0.3, 3.0, 60.0])
def test_corrected_prediction_ignores_earlier_machine_load(size):
    machine = Machine()
    for _ in range(20):
        machine.run(size, load=4.0)
    errors = [machine.run(size, load=1.0)[0] for _ in range(6)]
    assert errors[0] > 1.0, "the first run cannot be predicted"
    assert max(errors[1:]) < 0.25
    loaded = [machine.run(size, load=4.0)[0] for _ in range(6)]
    assert max(loaded[3:]) < 0.25, "three loaded runs show a loaded machine"
    idle = [machine.run(size, load=1.0)[0] for _ in range(4)]
    assert max(idle[1:]) < 0.25


def test_corrected_prediction_prefers_runs_without_cpu_waiting():
    machine = Machine()
    for load in (1.0, 1.0, *[4.0] * 8):
        machine.run(3.0, load, cpu_share=1.0 / load)
    assert machine.run(3.0, load=1.0)[0] < 0.25, "the first run after the load"


def test_corrected_prediction_removes_load_when_all_runs_had_it():
    machine = Machine()
    StepHistory("cluster", "cpu", 2).add({"read": 1.0}, {"read": 1.0}, 0.9)
    for _ in range(4):
        machine.run(3.0, load=4.0, cpu_share=0.225)
    assert machine.run(3.0, load=1.0, cpu_share=0.9)[0] < 0.25


def test_corrected_prediction_ignores_usual_cpu_waiting():
    machine = Machine()
    for _ in range(3):
        machine.run(3.0, load=1.0, cpu_share=0.4)
    assert machine.run(3.0, load=1.0, cpu_share=0.4)[0] < 0.25


def test_index_build_and_open_times_are_corrected_separately():
    building, opening = {"read": 1.0, "index": 2.0}, {"read": 1.0, "index": 0.1}
    first = StepHistory("library", "cpu", 2, "a")
    assert not first.finds_index
    first.add(building, {"read": 2.0, "index": 6.0})
    second = StepHistory("library", "cpu", 2, "a")
    assert second.finds_index and not StepHistory("library", "cpu", 2, "b").finds_index and not history().finds_index
    corrected, n = second.corrected(opening)
    assert corrected == pytest.approx({"read": 2.0, "index": 0.1}) and n == 1, "no run has found an index yet"
    second.add(opening, {"read": 2.0, "index": 0.4})
    assert StepHistory("library", "cpu", 2, "a").corrected(opening)[0] == pytest.approx({"read": 2.0, "index": 0.4})
    assert StepHistory("library", "cpu", 2, "b").corrected(building)[0] == pytest.approx({"read": 2.0, "index": 6.0})
    assert StepHistory("modified", "cpu", 2, "a").finds_index, "searches share their indexes"


def test_corrected_prediction_median_error_is_below_25_percent():
    machine, rng, errors = Machine(noise=0.1), np.random.default_rng(2), []
    for number in range(60):
        error, _ = machine.run(float(np.exp(rng.uniform(np.log(0.5), np.log(50.0)))), load=4.0 if number < 20 else 1.0)
        if number >= 30:
            errors.append(error)
    assert np.median(errors) < 0.25 and max(errors) < 1.0


def test_typical_error_is_the_error_of_recent_predictions():
    machine = Machine()
    predicted = {"start": 0.4, "read": 0.6, "score": 3.0}
    for _ in range(2):
        machine.run(3.0, load=1.0)
        assert history().typical_error(predicted) is None
    for _ in range(3):
        machine.run(3.0, load=1.0)
    assert history().typical_error(predicted) < 0.05
    for _ in range(2):
        machine.run(3.0, load=4.0)
    assert history().typical_error(predicted) == pytest.approx(0.75, abs=0.05)


def test_run_history_stores_at_most_16_runs_per_key(own_cache):
    for _ in range(20):
        history().add({"read": 1.0}, {"read": 1.0})
    (entry,) = json.loads((own_cache / "devices.json").read_text())["runs"].values()
    assert len(entry[1]) == 16


@pytest.mark.parametrize("value", [7, [1], [{"predicted": {"read": "x"}, "measured": {}}], [{"predicted": {"read": -1}, "measured": {}}]])
def test_corrected_prediction_ignores_damaged_runs(own_cache, value):
    history().add({"read": 1.0}, {"read": 2.0})
    path = own_cache / "devices.json"
    content = json.loads(path.read_text())
    (entry,) = content["runs"].values()
    entry[1] = value
    path.write_text(json.dumps(content))
    assert history().corrected({"read": 1.0}) == ({"read": 1.0}, 0)
    history().add({"read": 1.0}, {"read": 2.0})
    assert estimate({"read": 1.0}) == pytest.approx(2.0)
