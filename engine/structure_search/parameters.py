"""Parameters of a structure search."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import field_validator

from proteoscope.engine.parameters import SearchParameters, parameter

__all__ = ["StructureSearchParameters"]

_SCORING, _REPORT, _INPUT = "Scoring", "Hits", "Structures"
_MAXIMUM_WEIGHT, _MAXIMUM_COST = 10.0, 1000.0
_GAPS = {"sensitive": {"gap_first": 6.7, "gap_next": 0.7}, "published": {"gap_first": 1.0, "gap_next": 0.5}}


class StructureSearchParameters(SearchParameters):
    """Parameters that, together with queries and database, determine the result of a structure search."""

    mode: Literal["sensitive", "published"] = parameter(
        "sensitive",
        title="Mode",
        group=_SCORING,
        help="sensitive: learned scores, and the best chains are ranked also by superposition; published: formulas and ranking of"
        " the paper (GPU-CASSERT).",
    )
    qualification_threshold: float = parameter(
        0.2,
        ge=0,
        le=1,
        title="Minimum secondary structure score",
        group=_SCORING,
        help="Chains whose secondary structure scores less are not aligned. The score is a fraction of the score of the query with"
        " itself. Higher values are faster and less sensitive; 0 aligns all chains.",
    )
    weights: tuple[float, ...] = parameter(
        (1.0, 1.0, 1.0, 1.0),
        title="Weights",
        group=_SCORING,
        editor="descriptor weights",
        help="Weights of lengths, angles, secondary structure and residues; 1 is the published or learned weight. In sensitive"
        " mode, the weight of angles applies to the local conformation, and secondary structure has no weight.",
    )
    gap_first: float = parameter(
        6.7,
        ge=0,
        le=_MAXIMUM_COST,
        title="Gap opening",
        group=_SCORING,
        advanced=True,
        help="Cost of the first residue of a gap, in units of the score (bits in sensitive mode). The default depends on the mode.",
    )
    gap_next: float = parameter(
        0.7,
        ge=0,
        le=_MAXIMUM_COST,
        title="Gap extension",
        group=_SCORING,
        advanced=True,
        help="Cost of each further residue of a gap, in units of the score (bits in sensitive mode). The default depends on the mode.",
    )
    element_gap_first: float = parameter(
        0.5,
        ge=0,
        le=_MAXIMUM_COST,
        title="Secondary structure gap opening",
        group=_SCORING,
        advanced=True,
        help="Cost of the first secondary structure element of a gap. Two equal elements score 1.",
    )
    element_gap_next: float = parameter(
        0.25,
        ge=0,
        le=_MAXIMUM_COST,
        title="Secondary structure gap extension",
        group=_SCORING,
        advanced=True,
        help="Cost of each further secondary structure element of a gap.",
    )
    hits_per_query: int = parameter(
        100,
        ge=1,
        le=100_000,
        title="Maximum hits per query",
        unit="hits",
        group=_REPORT,
        help="Maximum number of reported chains per query, the best first.",
    )
    minimum_plddt: float = parameter(
        0.0,
        ge=0,
        le=100,
        title="Minimum pLDDT",
        group=_INPUT,
        advanced=True,
        help="Residues of predicted query structures with a lower pLDDT (confidence, 0 to 100) are not used. 0 uses all residues.",
    )

    models: Literal["first", "all"] = parameter(
        "first",
        title="Models",
        group=_INPUT,
        advanced=True,
        help="Models to read from files with several models. first: only the first; all: the chains of every model (chain A of the second"
        " model is called A_2), as in biological assemblies. Databases use the models that they were built with.",
    )

    @field_validator("weights")
    @classmethod
    def _check_weights(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if len(value) != 4 or not all(0 <= weight <= _MAXIMUM_WEIGHT for weight in value):
            raise ValueError(f"expected four weights from 0 to {_MAXIMUM_WEIGHT:g}, of lengths, angles, secondary structure and residues")
        if not any(value):
            raise ValueError("one of the weights must be above 0")
        return value

    @property
    def has_idle_weight(self) -> bool:
        """True if the weight of secondary structure was changed, but has no effect in the selected mode."""
        return self.mode == "sensitive" and self.weights[2] != 1

    @property
    def has_learned_scores(self) -> bool:
        """True if the search uses the learned scores of the sensitive mode unchanged; E-values can be computed only for these."""
        gaps = {"gap_first": self.gap_first, "gap_next": self.gap_next}
        length, angle, _, residue = self.weights
        return self.mode == "sensitive" and gaps == _GAPS[self.mode] and length == angle == residue == 1

    @classmethod
    def following(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the default gap costs of a changed mode."""
        return dict(_GAPS.get(str(changes.get("mode")), {}))
