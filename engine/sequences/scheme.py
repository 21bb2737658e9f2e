"""Scoring scheme of alignments."""

from dataclasses import dataclass

import numpy as np

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.sequences.matrices import Matrix

__all__ = ["ScoringScheme"]

_MAXIMUM_SCORE = np.iinfo(np.int32).max


@dataclass(frozen=True)
class ScoringScheme:
    """Matrix and gap costs; a gap of k residues costs ``gap_open + k * gap_extend``.

    Attributes
    ----------
    matrix : Matrix
        Scores of pairs of residues.
    gap_open, gap_extend : int
        Costs of a gap and of each of its residues, in units of the matrix.
    """

    matrix: Matrix
    gap_open: int
    gap_extend: int

    @property
    def first_residue_cost(self) -> int:
        """Cost of the first residue of a gap."""
        return self.gap_open + self.gap_extend

    def check(self, longest_query: int, longest_subject: int) -> None:
        """Raise an error unless all scores fit 32 bits.

        Parameters
        ----------
        longest_query, longest_subject : int
            Maximum number of residues of queries and of subjects.

        Raises
        ------
        ParameterError
            If a score could exceed 32 bits.
        """
        best = max(0, self.matrix.greatest) * min(longest_query, longest_subject)
        if best + self.first_residue_cost > _MAXIMUM_SCORE:
            raise ParameterError(
                f"matrix = '{self.matrix.name}': a score could reach {best:,} and a gap cost {self.first_residue_cost:,}, together more "
                f"than {_MAXIMUM_SCORE:,}; scale the matrix and the gap costs down"
            )
