"""Round numbers for the ticks of axes."""

import math

__all__ = ["nice_ticks", "powers_of_ten", "round_step", "square_ticks"]


def round_step(least: float) -> float:
    """Return the smallest number that is at least `least` (less 0.1 %) and is 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)


def nice_ticks(low: float, high: float, n_wanted: int, *, whole: bool = False) -> list[float]:
    """Return about `n_wanted` round numbers from `low` to `high`, in steps of 1, 2 or 5 times a power of ten.

    `whole` is True for counts, whose ticks are integers.
    """
    if not high > low or n_wanted < 1:
        return [low]
    step = round_step(max((high - low) / n_wanted, 1.0 if whole else 0.0))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [tick * step for tick in range(first, last + 1)]


def powers_of_ten(low: float, high: float, n_at_most: int) -> list[float]:
    """Return powers of ten (from 1) between `low` and `high`: all, or every second, third …, so that there are at most `n_at_most`."""
    powers = range(max(0, math.ceil(math.log10(low) - 1e-9)), math.floor(math.log10(high) + 1e-9) + 1)
    return [10.0**power for power in powers[:: max(1, -(-len(powers) // n_at_most))]]


def square_ticks(high: float, n_wanted: int) -> list[float]:
    """Return 0 and at most `n_wanted` round integers up to `high` with about evenly spaced square roots.

    >>> square_ticks(120, 4)
    [0.0, 5.0, 20.0, 50.0, 100.0]
    """
    ticks = {0.0}
    for part in range(1, n_wanted + 1):
        value = high * (part / n_wanted) ** 2
        if value >= 1:
            power = 10.0 ** math.floor(math.log10(value) + 1e-9)
            ticks.add(max(factor * power for factor in (1, 2, 5) if factor * power <= value * (1 + 1e-9)))
    return sorted(ticks)
