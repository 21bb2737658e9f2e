"""How fast a card is at what plans and batches are made by: as it was measured, or as the one on which their constants were fitted."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["USUAL_RATES", "CardRates", "between_looks"]


class CardRates(NamedTuple):
    """Of a whole card.

    Attributes
    ----------
    maxima : of sums of whole numbers, in a second. multiply_adds : fused, in a second. lookups : into shared memory, in a second.
    memory_bytes : that kernels read and write in a second. launch : seconds of a launch that nobody waits for.
    """

    maxima: float
    multiply_adds: float
    lookups: float
    memory_bytes: float
    launch: float


USUAL_RATES = CardRates(1.615e13, 3.081e13, 7.556e12, 3.187e12, 1.317e-5)
"""Of an H200, where the constants of plans were fitted, and batches take the time that is said of them; a card that nobody has measured is
taken for one."""


def between_looks(n: float, rate: float, usual: float) -> int:
    """What a card of this rate does in the time in which one of the usual rate does `n`, no more than that, and at least one: so that a
    cancel is heard as soon on a slower card."""
    return max(1, int(n * min(1.0, rate / usual)))
