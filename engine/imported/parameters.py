"""Parameters of an import: settings that result files do not contain."""

from pydantic import field_validator

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.matches import parameters as shared
from proteoscope.engine.matches.engine_scores import ENGINE_SCORES, name_score_column
from proteoscope.engine.matches.parameters import DATABASE, MODIFICATIONS, STATISTICS, SpectrumSearchParameters
from proteoscope.engine.parameters import parameter

__all__ = ["ImportParameters"]

_PREFIXES = ("DECOY_", "rev_", "XXX_", "reverse_", "REV__", "decoy_", "##")


class ImportParameters(SpectrumSearchParameters):
    """Parameters that determine how files are imported."""

    decoy_prefixes: tuple[str, ...] = parameter(
        _PREFIXES,
        title="Decoy prefixes",
        group=DATABASE,
        help="Prefixes of decoy accessions in files that do not mark decoys otherwise. Upper and lower case are not distinguished.",
    )
    fixed_modifications: tuple[str, ...] = parameter(
        (),
        title="Unlisted fixed modifications",
        group=MODIFICATIONS,
        editor="modifications",
        help="Fixed modifications of the search that the result file does not list. MaxQuant, for example, lists only variable"
        " modifications.",
    )
    enzyme: str = shared.ENZYME
    fragment_tolerance: Tolerance = shared.FRAGMENT_TOLERANCE
    ion_series: str = shared.ION_SERIES
    maximum_fragment_charge: int = shared.MAXIMUM_FRAGMENT_CHARGE
    score: str = parameter(
        "",
        title="Ranking score",
        group=STATISTICS,
        help="Score in the file that ranks the matches, such as xcorr or e_value. Empty: the usual score of the search engine.",
    )
    fdr: float = shared.FDR
    plus_one: bool = shared.PLUS_ONE

    @field_validator("score")
    @classmethod
    def _ranking_score_name(cls, value: str) -> str:
        names = {engine_score.column: engine_score.name for engine_score in ENGINE_SCORES if engine_score.sense}
        name = names.get(value if value.startswith("score_") else name_score_column(value)) if value else ""
        name = names.get(f"score_{value}", "") if value and not name else name
        if value and not name:
            raise ValueError(f"no score that ranks matches is called '{value:.40}'; expected one of {', '.join(names.values())}")
        return name or ""

    @field_validator("decoy_prefixes")
    @classmethod
    def _check_decoy_prefixes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not prefix or len(prefix) > 40 for prefix in value):
            raise ValueError("a prefix has 1 to 40 characters")
        return value
