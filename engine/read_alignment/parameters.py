"""Parameters of a read alignment."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from proteoscope.engine import sequences
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.parameters import SearchParameters, parameter
from proteoscope.engine.sequences.matrices import matrix_name
from proteoscope.kernels.gapsmis_layouts import MAXIMUM_GAPS

__all__ = ["ReadAlignmentParameters"]

_ALIGNMENT, _MAPPING, _SCORING = "Alignment", "Mapping", "Scoring"
_MAXIMUM_SCORE = 1_000_000


class ReadAlignmentParameters(SearchParameters):
    """Parameters that determine the alignments, together with references and reads."""

    maximum_gaps: int = parameter(
        2,
        ge=0,
        le=MAXIMUM_GAPS,
        title="Maximum number of gaps",
        group=_ALIGNMENT,
        help="Maximum number of gaps in an alignment. The length of a gap is not limited. More gaps take longer.",
    )
    mode: Literal["prefix", "within", "local"] = parameter(
        "prefix",
        title="Mode",
        group=_ALIGNMENT,
        help="prefix: align the whole read with the start of the reference; within: the whole read with any section of the"
        " reference; local: any section of the read with any section of the reference.",
    )
    strands: Literal["forward", "both"] = parameter(
        "forward",
        title="Strands",
        group=_ALIGNMENT,
        help="Strands of nucleotide reads. forward: the read as it is; both: also its reverse complement, and the better"
        " alignment is reported. With mode 'within' or 'local', both strands are always used.",
    )
    seed_length: int = parameter(
        0,
        ge=0,
        le=10_000,
        title="Seed length",
        unit="bases",
        group=_ALIGNMENT,
        advanced=True,
        help="Number of bases at the start of the read that are aligned with the start of the reference without gaps. 0: gaps are"
        " allowed everywhere.",
    )
    mapping: Literal["auto", "every", "seeds"] = parameter(
        "auto",
        title="Mapping",
        group=_MAPPING,
        help="every: align each read with every reference; seeds: align each read only at its most probable positions, found by"
        " shared minimisers; auto: choose by the lengths of reads and references.",
    )
    minimiser_length: int = parameter(
        15,
        ge=10,
        le=28,
        title="Minimiser length",
        unit="bases",
        group=_MAPPING,
        advanced=True,
        help="Length of the words (k-mers) that map reads to references. Longer words are faster and less sensitive.",
    )
    minimiser_window: int = parameter(
        8,
        ge=1,
        le=64,
        title="Minimiser window",
        unit="words",
        group=_MAPPING,
        advanced=True,
        help="Number of consecutive words; the smallest word of each window is indexed. Larger windows are faster and less sensitive.",
    )
    mapping_tolerance: int = parameter(
        32,
        ge=0,
        le=1000,
        title="Mapping tolerance",
        unit="bases",
        group=_MAPPING,
        advanced=True,
        help="Each shared minimiser predicts where a read starts. Minimisers support the same position if their predictions differ"
        " by at most this number of bases per allowed gap.",
    )
    minimum_insert: int = parameter(
        0,
        ge=0,
        le=1_000_000,
        title="Minimum fragment length",
        unit="bases",
        group=_MAPPING,
        advanced=True,
        help="Minimum distance between the outer ends of two mates. If the maximum fragment length is automatic, this minimum is"
        " estimated from the reads too.",
    )
    maximum_insert: int = parameter(
        0,
        ge=0,
        le=1_000_000,
        title="Maximum fragment length",
        zero="automatic",
        unit="bases",
        group=_MAPPING,
        advanced=True,
        help="Maximum distance between the outer ends of two mates. 0 (automatic) estimates it from the reads.",
    )
    mate_pairing: Literal["order", "name"] = parameter(
        "order",
        title="Mate pairing",
        group=_MAPPING,
        advanced=True,
        help="order: the i-th reads of both files are mates; name: reads with the same name, apart from endings such as /1 and /2, are"
        " mates, in any order.",
    )
    interleaved: Literal["auto", "yes", "no"] = parameter(
        "auto",
        title="Interleaved mates",
        group=_MAPPING,
        advanced=True,
        help="Treat consecutive reads of one file as mates. auto: yes if the file is FASTQ and all its read names are those of mates;"
        " yes: always; no: never.",
    )
    match: int = parameter(
        2,
        ge=-_MAXIMUM_SCORE,
        le=_MAXIMUM_SCORE,
        title="Match score",
        group=_SCORING,
        help="Score of two aligned bases or residues that are equal.",
    )
    mismatch: int = parameter(
        -3,
        ge=-_MAXIMUM_SCORE,
        le=_MAXIMUM_SCORE,
        title="Mismatch score",
        group=_SCORING,
        help="Score of two aligned bases or residues that differ.",
    )
    matrix: str = parameter(
        "",
        title="Matrix",
        group=_SCORING,
        help="Substitution matrix that replaces the match and mismatch scores, such as BLOSUM62 or a file in NCBI's format."
        " Empty: no matrix.",
    )
    gap_open: int = parameter(
        5,
        ge=0,
        le=_MAXIMUM_SCORE,
        title="Gap opening",
        group=_SCORING,
        help="Cost of opening a gap: a gap of k bases or residues costs gap_open + k * gap_extend.",
    )
    gap_extend: int = parameter(
        2,
        ge=0,
        le=_MAXIMUM_SCORE,
        title="Gap extension",
        group=_SCORING,
        help="Cost of each base or residue in a gap, including the first.",
    )
    recurrence: Literal["exact", "published"] = parameter(
        "exact",
        title="Alignment recurrence",
        group=_ALIGNMENT,
        advanced=True,
        help="exact: find the optimal alignment; published: use the recurrence printed in Carroll's thesis, which misses"
        " alignments with a gap back to the main diagonal.",
    )

    @field_validator("matrix")
    @classmethod
    def _matrix_name(cls, value: str) -> str:
        if not value.strip():
            return ""
        try:
            return matrix_name(value)
        except ParameterError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _check_published_recurrence(self) -> Self:
        if self.recurrence == "published" and (self.mode != "prefix" or self.strands != "forward"):
            raise ValueError("the published recurrence works only with mode prefix and the forward strand")
        return self

    @model_validator(mode="after")
    def _check_mapping_mode(self) -> Self:
        if self.mapping == "seeds" and self.mode == "prefix":
            raise ValueError("mode prefix aligns with the beginning of each reference; to map reads, use mode within or local")
        return self

    @classmethod
    def following(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters that `changes` imply: both strands for mapping, and NCBI's recommended gap costs for a matrix."""
        implied: dict[str, Any] = {}
        if "mode" in changes:
            implied["strands"] = "forward" if changes["mode"] == "prefix" else "both"
        if str(changes.get("matrix", "")).strip():
            implied["gap_open"], implied["gap_extend"] = sequences.statistics.default_gap_costs(matrix_name(str(changes["matrix"])))
        return implied
