"""Centre of log ratios: the ratio of the proteins that do not change, which a one-sided change of others does not move.

Differences of proteins are a mixture of those that only their own error moves away from the centre, and of others at any distance. The
mixture is fitted by expectation-maximisation (Dempster et al. 1977, J. R. Stat. Soc. B 39:1) from several starts, and the centre is that
with the largest share of proteins.

Changes that are small against the error of a protein cannot be separated from the centre, and move it if most are of one side. They leave
an excess of proteins near the centre on that side, without others farther off; balanced changes leave none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Centre", "unchanged_centre"]

_FEWEST = 20
"""Proteins; of fewer no mixture is fitted."""
_OFFSETS = np.array([2.2, 4.0, 6.0, 9.0, 13.0])
"""Of changed proteins from the centre, in errors: the nearest is as near as one protein can be distinguished from it; and `_WIDTH`, the
standard deviation of each. What is further off is in a uniform component."""
_WIDTH = 1.1
_STARTS = (0.1, 0.25, 0.5, 0.75, 0.9)
_MAXIMUM_ITERATIONS, _CONVERGED = 60, 1e-5
_LEAST_SHARE, _NEARLY = 0.5, 0.7
_EXCESS, _EXCESS_OF_FEW = 0.065, 2.0
"""Share of proteins of the nearest component on one side less that on the other, from which on small changes of one side move the centre:
chosen on ten simulated tables of 2,000 proteins; of fewer proteins, at least the second number over the square root of theirs."""


class Centre(NamedTuple):
    """Centre of the log ratios of a comparison.

    Attributes
    ----------
    shift : float, log2, 0 where too few proteins are measured. share : float, of proteins at the centre, NaN where too few.
    other : float, log2, of another centre that nearly as many proteins have, NaN without one.
    excess : float, share of proteins near the centre on one side less that on the other, negative if more lie below, where it suggests
    small changes of one side; 0 otherwise.
    """

    shift: float
    share: float
    other: float
    excess: float = 0.0

    @property
    def is_determined(self) -> bool:
        """True if most proteins lie at the centre, at no other, and as many on both sides of it."""
        return self.share >= _LEAST_SHARE and bool(np.isnan(self.other)) and not self.excess


def unchanged_centre(difference: NDArray[np.float64], error: NDArray[np.float64]) -> Centre:
    """Return the centre of differences.

    Parameters
    ----------
    difference : (p,) float64, log2, NaN where missing. error : (p,) float64, standard error of each, above 0.

    Examples
    --------
    >>> difference = np.concatenate([np.tile([0.4, 0.6], 30), np.tile([1.9, 2.1], 20)])
    >>> centre = unchanged_centre(difference, np.full(100, 0.1))
    >>> round(centre.shift, 2), round(centre.share, 1), centre.is_determined
    (0.5, 0.6, True)
    """
    used = np.isfinite(difference) & (error > 0) & np.isfinite(error)
    if used.sum() < _FEWEST:
        return Centre(0.0, float("nan"), float("nan"))
    d, e = difference[used], error[used]
    found = [_fitted(d, e, float(start)) for start in np.quantile(d, _STARTS)]
    shift, shares = max(found, key=lambda one: one[1][0])
    far = 2 * float(np.median(e))
    other = next((place for place, part in found if abs(place - shift) > far and part[0] > _NEARLY * shares[0]), float("nan"))
    return Centre(shift, float(shares[0]), other, _excess(shares, len(d)))


def _excess(shares: NDArray[np.float64], n_proteins: int) -> float:
    """Return the excess of proteins near the centre on one side, 0 where it is small, or less than what lies farther off."""
    below, above = shares[len(_OFFSETS)], shares[len(_OFFSETS) + 1]
    excess, n_far = float(above - below), float(shares[1:].sum() - above - below)
    return excess if abs(excess) > max(_EXCESS, _EXCESS_OF_FEW / np.sqrt(n_proteins), n_far) else 0.0


def _fitted(d: NDArray[np.float64], e: NDArray[np.float64], centre: float) -> tuple[float, NDArray[np.float64]]:
    """Return the centre and the shares of the components (centre, offsets from the lowest, uniform) that the mixture has from a start."""
    scale = float(np.median(e))
    offsets = np.concatenate([-_OFFSETS[::-1], _OFFSETS]) * scale
    spread = np.sqrt(e**2 + (_WIDTH * scale) ** 2)[:, None]
    uniform = np.full(len(d), 1 / (np.ptp(d) + scale))
    share = np.concatenate([[0.6], np.full(len(offsets), 0.38 / len(offsets)), [0.02]])
    for _ in range(_MAXIMUM_ITERATIONS):
        near = np.exp(-0.5 * ((d - centre) / e) ** 2) / e
        far = np.exp(-0.5 * ((d[:, None] - centre - offsets) / spread) ** 2) / spread
        part = np.column_stack([near, far, np.sqrt(2 * np.pi) * uniform]) * share
        part /= part.sum(axis=1, keepdims=True)
        share = part.mean(axis=0)
        weight = part[:, 0] / e**2
        if not weight.sum() > 0:
            break
        before, centre = centre, float((weight * d).sum() / weight.sum())
        if abs(centre - before) < _CONVERGED * scale:
            break
    return centre, share
