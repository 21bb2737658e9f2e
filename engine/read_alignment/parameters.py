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
        help="Maximum number of gaps per alignment; a gap may have any length.",
    )
    mode: Literal["prefix", "within", "local"] = parameter(
        "prefix",
        title="Mode",
        group=_ALIGNMENT,
        help="prefix: the whole read with a prefix of the reference; within: the whole read with any part of the reference;"
        " local: any part of each.",
    )
    strands: Literal["forward", "both"] = parameter(
        "forward",
        title="Strands",
        group=_ALIGNMENT,
        help="For nucleotides: the read as it is, or the better of the read and its reverse complement; the modes within and"
        " local use both.",
    )
    seed_length: int = parameter(
        0,
        ge=0,
        le=10_000,
        title="Seed length",
        unit="bases",
        group=_ALIGNMENT,
        advanced=True,
        help="Number of first bases of the read that are paired with the first bases of the reference without gaps.",
    )
    mapping: Literal["auto", "every", "seeds"] = parameter(
        "auto",
        title="Mapping",
        group=_PLACES,
        help="every: align each read with every reference; seeds: map each read by shared seeds; auto: chosen by the lengths of"
        " reads and references.",
    )
    minimiser_length: int = parameter(
        15,
        ge=10,
        le=28,
        title="Minimiser length",
        unit="bases",
        group=_PLACES,
        advanced=True,
        help="Length of the words by which reads are mapped to references.",
    )
    minimiser_window: int = parameter(
        8,
        ge=1,
        le=64,
        title="Minimiser window",
        unit="words",
        group=_PLACES,
        advanced=True,
        help="Number of consecutive words from which one is indexed: larger windows are faster and less sensitive.",
    )
    mapping_tolerance: int = parameter(
        32,
        ge=0,
        le=1000,
        title="Mapping tolerance",
        unit="bases",
        group=_PLACES,
        advanced=True,
        help="Maximum disagreement, per gap, between the words of a candidate position about the start of the read.",
    )
    minimum_insert: int = parameter(
        0,
        ge=0,
        le=1_000_000,
        title="Minimum fragment length",
        unit="bases",
        group=_PLACES,
        advanced=True,
        help="Minimum distance between the outer ends of mates; estimated from the reads if the maximum is automatic.",
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
        help="Maximum distance between the outer ends of mates; automatic (0) estimates it from the reads.",
    )
    mate_pairing: Literal["order", "name"] = parameter(
        "order",
        title="Mate pairing",
        group=_PLACES,
        advanced=True,
        help="order: the i-th reads of both files are mates; name: reads with the same name, ignoring /1 and /2 and similar"
        " endings, are mates in any order.",
    )
    interleaved: Literal["auto", "yes", "no"] = parameter(
        "auto",
        title="Interleaved mates",
        group=_PLACES,
        advanced=True,
        help="Mates that follow each other in one file. auto: in FASTQ, if all read names show it; yes: always; no: each read is"
        " aligned on its own.",
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
        help="Substitution matrix used instead of match and mismatch: BLOSUM62 and others, or a file in NCBI's format; empty for none.",
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
        help="The optimal alignment, or Carroll's recurrence as printed, which misses gaps that return to the main diagonal.",
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
        if self.mapping == "seeds" and self.mode == "prefix":
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
