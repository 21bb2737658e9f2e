"""Substitution scores and gap costs in the form of the CPU kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cpu.vectors import aligned

__all__ = ["CODES", "Substitution"]

CODES = 32
"""Maximum number of codes of a matrix: 0 to 25 for A to Z, 26 for ``*``."""
_WIDTHS = (8, 16, 32)
_REPEATED = 64
_MAXIMUM_COST = 1 << 30  # per residue in a gap; with this cost, no 32-bit alignment score can include a gap


@dataclass(frozen=True)
class Substitution:
    """Substitution scores (27, 27), indexed by the codes of query and subject, and gap costs.

    A gap of k residues costs ``gap_open + k * gap_extend``.
    """

    scores: NDArray[np.integer]
    gap_open: int
    gap_extend: int

    @property
    def first_residue_cost(self) -> int:
        """Cost of the first residue of a gap."""
        return min(self.gap_open + self.gap_extend, _MAXIMUM_COST)

    @property
    def next_residue_cost(self) -> int:
        """Cost of each further residue of a gap."""
        return min(self.gap_extend, _MAXIMUM_COST)

    def widths(self) -> tuple[int, ...]:
        """Return the bit widths, ascending, that can hold all substitution scores and the cost of a gap of two residues."""
        least, greatest, gap = int(self.scores.min()), int(self.scores.max()), self.first_residue_cost + self.next_residue_cost
        return tuple(bits for bits in _WIDTHS if -(1 << (bits - 1)) <= least and greatest < 1 << (bits - 1) and gap <= 1 << (bits - 1))

    def most(self, bits: int) -> int:
        """Return the maximum reliable score of a bit width, to which any substitution score can be added without overflow.

        32-bit scores are reliable in their whole range.
        """
        greatest = (1 << (bits - 1)) - 1
        return greatest if bits == _WIDTHS[-1] else greatest - max(0, int(self.scores.max()))

    def table(self, bits: int) -> NDArray:
        """Return the scores in the form of `proteoscope.kernels.cpu.lanes.score_lanes` for a bit width."""
        table, n = aligned(CODES * _REPEATED, np.dtype(f"int{bits}")), len(self.scores)
        rows = table.reshape(CODES, 2, CODES)
        rows[:] = np.iinfo(table.dtype).min
        rows[:n, :, :n] = self.scores[:, None, :]
        return table
