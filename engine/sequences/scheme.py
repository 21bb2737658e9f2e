"""What an alignment is scored by: a matrix and gap costs, and both as the kernels take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import ParameterError
from engine.sequences.matrices import LETTERS, N_CODES, Matrix

__all__ = ["ScoringScheme"]

_WIDTHS = (8, 16, 32)
_GREATEST_SCORE = np.iinfo(np.int32).max
_ROW = 64  # elements of a row of the kernel's table


@dataclass(frozen=True)
class ScoringScheme:
    """A matrix and gap costs: a gap of k residues costs ``gap_open + k * gap_extend``."""

    matrix: Matrix
    gap_open: int
    gap_extend: int

    @property
    def first_residue_cost(self) -> int:
        """What the first residue of a gap costs."""
        return self.gap_open + self.gap_extend

    def check(self, longest_query: int, longest_subject: int) -> None:
        """Refuse what could give a score beyond 32 bits.

        Raises
        ------
        ParameterError : it could.
        """
        best = max(0, self.matrix.greatest) * min(longest_query, longest_subject)
        if best + self.first_residue_cost > _GREATEST_SCORE:
            raise ParameterError(
                f"matrix = '{self.matrix.name}': a score could reach {best:,} and a gap cost {self.first_residue_cost:,}, together more "
                f"than {_GREATEST_SCORE:,}; scale the matrix and the gap costs down"
            )

    def widths(self) -> tuple[int, ...]:
        """Bits of the numbers to try, one after the other: those that hold the matrix and the gap costs."""
        least, greatest = int(self.matrix.scores.min()), max(self.matrix.greatest, self.first_residue_cost)
        return tuple(bits for bits in _WIDTHS if -(1 << (bits - 1)) <= least and greatest < 1 << (bits - 1))

    def table(self, bits: int) -> NDArray:
        """The matrix as the kernel of so many bits takes it."""
        from kernels.cpu.vectors import aligned

        table = aligned(N_CODES * _ROW, np.dtype(f"int{bits}"))
        rows = table.reshape(N_CODES, 2, N_CODES)
        rows[:] = np.iinfo(table.dtype).min
        rows[: len(LETTERS), :, : len(LETTERS)] = self.matrix.scores[:, None, :]
        return table

    def row_arrays(self, subject: NDArray[np.int8], bits: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """What `kernels.cpu.alignment.score_rows` takes of a subject before the first row: `profile`, `decay`, `h_rows` and `f_row`."""
        from kernels.cpu.alignment import lane_count
        from kernels.cpu.vectors import aligned

        number, lanes = np.dtype(f"int{bits}"), lane_count(bits)
        width = -(-len(subject) // lanes) * lanes
        profile, decay, f_row = aligned(len(LETTERS) * width, number), aligned(lanes, number), aligned(width, number)
        profile[:], f_row[:] = -1, -1
        profile.reshape(len(LETTERS), width)[:, : len(subject)] = self.matrix.scores[:, subject]
        decay[:] = np.minimum(np.arange(1, lanes + 1) * self.gap_extend, np.iinfo(number).max)
        return profile, decay, np.zeros((2, 1 + width), number), f_row
