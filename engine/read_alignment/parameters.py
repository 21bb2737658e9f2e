"""Parameters of a read alignment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from proteoscope.engine import sequences
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.parameters import SearchParameters, parameter
from proteoscope.engine.sequences.matrices import matrix_name
from proteoscope.kernels.gapsmis_layouts import MAXIMUM_GAPS

__all__ = ["ReadAlignmentParameters"]

_ALIGNMENT, _PLACES, _SCORING = "Alignment", "Places", "Scoring"
_MAXIMUM_SCORE = 1_000_000


class ReadAlignmentParameters(SearchParameters):
    """Parameters that, with references and reads, determine the alignments."""

    maximum_gaps: int = parameter(
        2,
        ge=0,
        le=MAXIMUM_GAPS,
        title="Maximum number of gaps",
        group=_ALIGNMENT,
        help="Maximum number of gaps of an alignment; each may have any length.",
    )
    mode: Literal["prefix", "within", "local"] = parameter(
        "prefix",
        title="Mode",
        group=_ALIGNMENT,
        help="The whole read with a prefix of the reference; within: with any part of it; local: a part of the read with any part of it.",
    )
    strands: Literal["forward", "both"] = parameter(
        "forward",
        title="Strands",
        group=_ALIGNMENT,
        help="Of nucleotides: the read as it is, or the better of it and its reverse complement; the modes within and local bring both.",
    )
    seed_length: int = parameter(
        0,
        ge=0,
        le=10_000,
        title="Seed",
        unit="bases",
        group=_ALIGNMENT,
        advanced=True,
        help="Number of bases at the beginning of the read that are paired with the first bases of the reference, without gaps.",
    )
    places: Literal["auto", "every", "seeds"] = parameter(
        "auto",
        title="Places",
        group=_PLACES,
        help="every: align each read with every reference; seeds: map each read by shared seeds; auto: decided by the lengths of both.",
    )
    minimiser_length: int = parameter(
        15,
        ge=10,
        le=28,
        title="Minimiser length",
        unit="bases",
        group=_PLACES,
        advanced=True,
        help="Length of the words shared with a reference by which a read is mapped.",
    )
    minimiser_window: int = parameter(
        8,
        ge=1,
        le=64,
        title="Window of a minimiser",
        unit="words",
        group=_PLACES,
        advanced=True,
        help="Number of consecutive words from which one is looked up: larger windows are faster and less sensitive.",
    )
    place_tolerance: int = parameter(
        32,
        ge=0,
        le=1000,
        title="Tolerance of a place",
        unit="bases",
        group=_PLACES,
        advanced=True,
        help="Maximum disagreement, per gap, of the words of a place about where the read begins.",
    )
    minimum_insert: int = parameter(
        0,
        ge=0,
        le=1_000_000,
        title="Minimum fragment length",
        unit="bases",
        group=_PLACES,
        advanced=True,
        help="Mates lie at least so far apart, both counted; where the maximum is automatic, it is learnt from the reads.",
    )
    maximum_insert: int = parameter(
        0,
        ge=0,
        le=1_000_000,
        title="Maximum fragment length",
        zero="automatic",
        unit="bases",
        group=_PLACES,
        advanced=True,
        help="Mates lie at most so far apart, both counted; automatic (0): learnt from the reads.",
    )
    mate_pairing: Literal["order", "name"] = parameter(
        "order",
        title="Pairing of mates",
        group=_PLACES,
        advanced=True,
        help="order: the i-th reads of both files are mates; name: reads of one name, without /1 and /2 or the like, whatever their order.",
    )
    interleaved: Literal["auto", "yes", "no"] = parameter(
        "auto",
        title="Interleaved mates",
        group=_PLACES,
        advanced=True,
        help="Mates that follow each other in one file; auto: in FASTQ, where the names of all reads show it; yes: whatever the names;"
        " no: each read is aligned on its own.",
    )
    match: int = parameter(
        2, ge=-_MAXIMUM_SCORE, le=_MAXIMUM_SCORE, title="Match", group=_SCORING, help="Score of two equal bases or residues."
    )
    mismatch: int = parameter(
        -3, ge=-_MAXIMUM_SCORE, le=_MAXIMUM_SCORE, title="Mismatch", group=_SCORING, help="Score of two different bases or residues."
    )
    matrix: str = parameter(
        "",
        title="Matrix",
        group=_SCORING,
        help="Scores instead of match and mismatch: BLOSUM62 and others, or a file in NCBI's format; empty for none.",
    )
    gap_open: int = parameter(
        5,
        ge=0,
        le=_MAXIMUM_SCORE,
        title="Gap opening",
        group=_SCORING,
        help="A gap of k bases or residues costs gap_open + k * gap_extend.",
    )
    gap_extend: int = parameter(
        2,
        ge=0,
        le=_MAXIMUM_SCORE,
        title="Gap extension",
        group=_SCORING,
        help="Cost of each base or residue of a gap, including the first.",
    )
    recurrence: Literal["exact", "published"] = parameter(
        "exact",
        title="Recurrence",
        group=_ALIGNMENT,
        advanced=True,
        help="The best alignment; or Carroll's recurrence as printed, which misses gaps that lead back to the main diagonal.",
    )

    @field_validator("matrix")
    @classmethod
    def _known_matrix(cls, value: str) -> str:
        if not value.strip():
            return ""
        try:
            return matrix_name(value)
        except ParameterError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _published_is_of_prefixes(self) -> Self:
        if self.recurrence == "published" and (self.mode != "prefix" or self.strands != "forward"):
            raise ValueError("the published recurrence is of mode prefix and of the forward strand")
        return self

    @model_validator(mode="after")
    def _prefixes_have_no_place(self) -> Self:
        if self.places == "seeds" and self.mode == "prefix":
            raise ValueError("mode prefix aligns with the beginning of each reference; to map reads, use mode within or local")
        return self

    @classmethod
    def following(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Modes that map reads use both strands; a matrix brings the gap costs that NCBI recommends for it."""
        brought: dict[str, Any] = {}
        if "mode" in changes:
            brought["strands"] = "forward" if changes["mode"] == "prefix" else "both"
        if str(changes.get("matrix", "")).strip():
            brought["gap_open"], brought["gap_extend"] = sequences.statistics.default_gap_costs(matrix_name(str(changes["matrix"])))
        return brought
