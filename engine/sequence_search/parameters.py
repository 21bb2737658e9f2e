"""Parameters of a protein sequence search."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import field_validator

from proteoscope.engine import sequences
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.translation_parameters import GENETIC_CODE, MINIMUM_FRAME, TRANSLATION
from proteoscope.engine.parameters import SearchParameters, parameter
from proteoscope.engine.sequences.matrices import matrix_name

__all__ = ["SequenceSearchParameters"]

_SCORING, _REPORT, _STATISTICS = "Scoring", "Hits", "Statistics"
_MAXIMUM_COST = 1_000_000_000


class SequenceSearchParameters(SearchParameters):
    """Parameters that, together with queries and database, determine the result of a sequence search."""

    matrix: str = parameter(
        "BLOSUM62",
        title="Matrix",
        group=_SCORING,
        editor="matrix",
        help="Substitution matrix: BLOSUM30 to BLOSUM100, BLOSUMN, PAM10 to PAM500, DAYHOFF, GONNET, IDENTITY, or a file in NCBI's format.",
    )
    gap_open: int = parameter(
        11,
        ge=0,
        le=_MAXIMUM_COST,
        title="Gap opening",
        group=_SCORING,
        help="Cost of opening a gap: a gap of k residues costs gap_open + k * gap_extend, as in BLAST.",
    )
    gap_extend: int = parameter(
        1, ge=0, le=_MAXIMUM_COST, title="Gap extension", group=_SCORING, help="Cost of each residue in a gap, including the first."
    )
    translation: Literal["none", "six-frame", "forward", "reverse"] = TRANSLATION
    genetic_code: int = GENETIC_CODE
    minimum_frame: int = MINIMUM_FRAME
    maximum_e_value: float = parameter(
        10.0,
        gt=0,
        le=1e9,
        title="Maximum E-value",
        group=_REPORT,
        help="Hits with a larger E-value are not reported.",
    )
    hits_per_query: int = parameter(
        500,
        ge=1,
        le=10_000_000,
        title="Maximum hits per query",
        unit="hits",
        group=_REPORT,
        help="Maximum number of reported hits per query, the best first.",
    )
    statistics: Literal["automatic", "fitted"] = parameter(
        "automatic",
        title="Statistics",
        group=_STATISTICS,
        advanced=True,
        help="Source of the parameters lambda and K of E-values. automatic: NCBI's tables, or a fit to the scores if the tables"
        " lack the matrix and gap costs; fitted: always a fit.",
    )
    composition: bool = parameter(
        True,
        title="Adjust for composition",
        group=_STATISTICS,
        advanced=True,
        help="Adjust E-values and bit scores for unusual residue composition and for low-complexity segments. This removes chance hits.",
    )

    @field_validator("matrix")
    @classmethod
    def _matrix_name(cls, value: str) -> str:
        try:
            return matrix_name(value)
        except ParameterError as error:
            raise ValueError(str(error)) from None

    @classmethod
    def following(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the gap costs that NCBI recommends for a changed matrix."""
        if "matrix" not in changes:
            return {}

        gap_open, gap_extend = sequences.statistics.default_gap_costs(matrix_name(str(changes["matrix"])))
        return {"gap_open": gap_open, "gap_extend": gap_extend}
