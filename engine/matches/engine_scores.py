"""Scores of other search engines: columns of imported PSMs with one name each, and which of them ranks matches.

Names are those of the engines' files, accessions those of the PSI-MS vocabulary (https://www.ebi.ac.uk/ols4/ontologies/ms). Scores listed
here are shown, sorted, filtered and exported; other numbers of a file are stored under their own name after `OTHER_SCORE`, and exported.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from proteoscope.engine.results.columns import Column

__all__ = ["ENGINE_SCORES", "OTHER_SCORE", "SCORE_COLUMNS", "EngineScore", "score_called", "score_column_of"]

OTHER_SCORE = r"score_[a-z0-9_]{1,80}"
"""Names of the columns of engines' scores."""


class EngineScore(NamedTuple):
    """A score of another program.

    Attributes
    ----------
    name
        Column name after ``score_``.
    title, meaning
        Display texts.
    called
        Names in files, in lower case, and accessions.
    sense
        1 if higher is better, -1 if lower is, 0 if it does not rank.
    is_logarithmic
        True for values over many orders of magnitude, which are ranked by negative logarithm.
    has_learnt
        True if it may be trained on decoy labels, and is thus no feature for Percolator.
    """

    name: str
    title: str
    meaning: str
    called: tuple[str, ...]
    sense: int = 1
    is_logarithmic: bool = False
    has_learnt: bool = False

    @property
    def column(self) -> str:
        """The name of its column."""
        return f"score_{self.name}"


ENGINE_SCORES = (
    EngineScore(
        "percolator",
        "Percolator score",
        "Score of Percolator",
        ("percolator score", "ms:1001492", "svm-score", "svm score"),
        has_learnt=True,
    ),
    EngineScore("mokapot", "mokapot score", "Score of mokapot", ("mokapot score",), has_learnt=True),
    EngineScore(
        "sage_discriminant",
        "Sage score",
        "Sage's linear discriminant score",
        ("sage_discriminant_score", "sage discriminant score"),
        has_learnt=True,
    ),
    EngineScore("iprophet", "iProphet", "Probability by iProphet", ("interprophet probability",), has_learnt=True),
    EngineScore(
        "peptideprophet",
        "PeptideProphet",
        "Probability by PeptideProphet",
        ("peptideprophet probability", "probability", "ms:1002357", "peptideprophet.probability"),
        has_learnt=True,
    ),
    EngineScore(
        "peptideshaker_confidence", "Confidence", "PeptideShaker's confidence, %", ("confidence [%]", "ms:1002467"), has_learnt=True
    ),
    EngineScore(
        "peptideshaker", "PeptideShaker score", "PeptideShaker's score of PSMs", ("ms:1002466", "peptideshaker psm score"), has_learnt=True
    ),
    EngineScore(
        "spectrum_e_value",
        "Spectrum E-value",
        "Matches by chance in one spectrum: MS-GF+",
        ("ms:1002052", "ms-gf:specevalue", "specevalue", "ms-gf:specprob"),
        -1,
        is_logarithmic=True,
    ),
    EngineScore(
        "e_value",
        "Engine's E-value",
        "Matches that chance lets score as well, by the engine that searched",
        (
            "e-value",
            "evalue",
            "e_value",
            "expect",
            "expectation",
            "expectscore",
            "expectation value",
            "e-value score",
            "ms:1002257",
            "ms:1001330",
            "ms:1002053",
            "ms:1001328",
            "ms:1001172",
            "ms:1002353",
            "x!tandem:expect",
            "omssa:evalue",
            "comet:expectation value",
            "ms-gf:evalue",
            "mascot:expectation value",
            "msfragger:expect",
            "omssa",
            "spectrum_e_value",
            "ms:1003410",
        ),
        -1,
        is_logarithmic=True,
    ),
    EngineScore(
        "hyperscore",
        "Engine's hyperscore",
        "Hyperscore of X!Tandem, MSFragger or Sage",
        (
            "hyperscore",
            "ms:1001331",
            "x!tandem:hyperscore",
            "xtandem",
            "ms:1003409",
            "ln(hyperscore)",
        ),
    ),
    EngineScore(
        "xcorr",
        "Engine's XCorr",
        "Cross-correlation of Comet or SEQUEST",
        (
            "xcorr",
            "ms:1002252",
            "ms:1001155",
            "comet:xcorr",
            "sequest:xcorr",
            "xcorr score",
        ),
    ),
    EngineScore("msgf_raw", "MS-GF raw", "Raw score of MS-GF+", ("ms:1002049", "ms-gf:rawscore", "msgfscore")),
    EngineScore("mascot", "Mascot score", "Ion score of Mascot", ("ms:1001171", "mascot:score", "ionscore", "mascot")),
    EngineScore("andromeda", "Andromeda score", "Score of MaxQuant's Andromeda", ("ms:1002338", "andromeda:score", "andromeda")),
    EngineScore(
        "dia_nn_pep", "Engine's PEP", "Posterior error probability by the engine", ("engine pep",), -1, is_logarithmic=True, has_learnt=True
    ),
    EngineScore("main", "Engine's score", "What the file ranks its matches by", ("main score", "score")),
    EngineScore(
        "expectation_feature", "Expectation feature", "Proteoscope's -log10 of the E-value, as a feature", ("feature_expectation",)
    ),
    EngineScore(
        "delta_cn",
        "ΔCn",
        "Lead over the next candidate, as a part of XCorr",
        (
            "delta_cn",
            "deltacn",
            "ms:1002253",
            "ms:1001156",
            "comet:deltacn",
            "sequest:deltacn",
        ),
    ),
    EngineScore("sp", "Sp", "Preliminary score of Comet or SEQUEST", ("sp_score", "spscore", "sp", "ms:1002255", "comet:spscore")),
    EngineScore("next", "Next score", "Score of the next candidate", ("nextscore", "next score"), 0),
    EngineScore("delta", "Engine's delta", "Lead over the next candidate", ("delta score", "delta_score", "delta_next", "deltascore"), 0),
    EngineScore(
        "matched_ions",
        "Engine's matched",
        "Fragments that the engine found",
        (
            "ions_matched",
            "num_matched_ions",
            "matched_peaks",
            "number of matches",
            "ms:1001121",
            "matched ions",
            "number of matched peaks",
        ),
        0,
    ),
    EngineScore(
        "peptide_q_value",
        "Engine's peptide q",
        "q-value of the peptide, by the engine",
        (
            "peptide_q",
            "peptide q-value",
            "ms:1001868",
            "ms:1002055",
        ),
        0,
        has_learnt=True,
    ),
    EngineScore(
        "protein_q_value",
        "Engine's protein q",
        "q-value of the protein, by the engine",
        ("protein_q", "protein.q.value"),
        0,
        has_learnt=True,
    ),
    EngineScore(
        "protein_group_q_value", "Engine's group q", "q-value of the protein group, by the engine", ("pg.q.value",), 0, has_learnt=True
    ),
    EngineScore("global_q_value", "Global q", "q-value over all runs, by the engine", ("global.q.value",), 0, has_learnt=True),
)
"""Known scores; among those that rank, the first in a file is used."""

_BY_NAME = {called: engine_score for engine_score in ENGINE_SCORES for called in engine_score.called}
_BY_COLUMN = {engine_score.column: engine_score for engine_score in ENGINE_SCORES}
_NO_LETTERS = re.compile("[^a-z0-9]+")
_MAXIMUM_NAME = 80

SCORE_COLUMNS = tuple(
    Column(
        engine_score.column,
        engine_score.title,
        engine_score.meaning,
        "e_value" if engine_score.is_logarithmic else "number",
        9,
        3,
        is_nullable=True,
        is_optional=True,
        is_of_some=True,
        is_shown=engine_score.sense != 0,
    )
    for engine_score in ENGINE_SCORES
)
"""Columns of known scores; a run has those in its file."""


def score_called(name: str) -> EngineScore | None:
    """Return the score with a name or accession in files, or None.

    >>> score_called("Comet:expectation value").title
    "Engine's E-value"
    """
    return _BY_NAME.get(name.strip().lower())


def score_column_of(name: str) -> str:
    """Return the column of a score by its name in a file.

    >>> score_column_of("XCorr"), score_column_of("MS-GF:DeNovoScore")
    ('score_xcorr', 'score_ms_gf_denovoscore')
    """
    known = score_called(name) or _BY_COLUMN.get(name.strip().lower())
    if known is not None:
        return known.column
    name = name.strip().removeprefix("score_")  # as our own exports call it
    return f"score_{_NO_LETTERS.sub('_', name.strip().lower()).strip('_')[:_MAXIMUM_NAME] or 'unnamed'}"
