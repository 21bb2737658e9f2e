"""Round numbers at which an axis is marked."""

from __future__ import annotations

import math

__all__ = ["nice_ticks"]


def nice_ticks(low: float, high: float, n_wanted: int, *, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`, about `n_wanted` of them: steps of 1, 2 or 5 times a power of ten.

    `whole`: of things that are counted, hence no parts.
    """
    if not high > low or n_wanted < 1:
        return [low]
    rough = max((high - low) / n_wanted, 1.0 if whole else 0.0)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [tick * step for tick in range(first, last + 1)]
