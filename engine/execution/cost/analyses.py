"""Benchmark problems of the thesis on the ATGPU model (see `atgpu`), predicted by its cost function and measured."""

from typing import Any, NamedTuple

import numpy as np

from proteoscope.engine.execution.cost.atgpu import Cost, serial_cost
from proteoscope.engine.execution.cost.parameters import DeviceParameters
from proteoscope.kernels.analyses_layouts import PROBLEMS, Round, Spent
from proteoscope.kernels.device import Device, backend_module

__all__ = ["Comparison", "compared", "measured_problem", "predicted_problem"]

_SEED = 1
_LOADS_OF_STEP = 1.25  # number of loads from shared memory in a step of the matrix product
_SETS = 3  # data sets, used in turn


class Comparison(NamedTuple):
    """Predicted and measured times of a problem of size `n`."""

    problem: str
    n: int
    predicted: Cost
    measured: Spent


def predicted_problem(parameters: DeviceParameters, problem: str, n: int) -> Cost:
    """Return the cost of a problem by expression 4.2 of the thesis.

    Loads from shared memory limit the matrix product: a step loads a word of one tile, and every fourth step loads four words of the other
    tile at once.
    """
    name = "lookup" if problem == "matrix multiplication" else "integer"
    rounds: tuple[Round, ...] = PROBLEMS[problem][1](n)
    if problem == "matrix multiplication":
        rounds = tuple(round_._replace(operations=_LOADS_OF_STEP * round_.operations) for round_ in rounds)
    return serial_cost(parameters.machine(name), rounds, None if parameters.is_processor else parameters.transfers.seconds)


def measured_problem(device: Device | Any, problem: str, n: int, repeats: int) -> Spent:
    """Return the times of the shortest of `repeats` runs, after warm-up runs. Data sets alternate, so that their data are not in caches."""
    rng = np.random.default_rng(_SEED)
    is_matrix = problem == "matrix multiplication"
    count = 2 if problem in ("vector addition", "matrix multiplication") else 1
    given = [[rng.integers(0, 1 << 32, (n, n) if is_matrix else n, np.uint32) for _ in range(count)] for _ in range(_SETS)]
    work = getattr(backend_module(device, "analyses").Analyses(device), PROBLEMS[problem][0])
    runs: list[Spent] = [work(*given[number % _SETS])[1] for number in range(_SETS + repeats)]
    return min(runs[_SETS:], key=lambda spent: spent.seconds)


def compared(
    device: Device | Any, parameters: DeviceParameters, problem: str, sizes: tuple[int, ...], repeats: int = 3
) -> list[Comparison]:
    """Return the predicted and the measured seconds of a problem for each size; each size is measured `repeats` times."""
    return [Comparison(problem, n, predicted_problem(parameters, problem, n), measured_problem(device, problem, n, repeats)) for n in sizes]
