"""Scores of other search engines: names, columns of imported PSMs, and suitability for ranking matches.

Names are taken from the engines' files, accessions from the PSI-MS vocabulary (https://www.ebi.ac.uk/ols4/ontologies/ms). The scores
listed here are shown, sorted, filtered and exported. Other numbers in a file are stored in columns named by `OTHER_SCORE`, and exported.
"""

import re
from typing import NamedTuple

from proteoscope.engine.results.columns import Column

__all__ = ["ENGINE_SCORES", "OTHER_SCORE", "SCORE_COLUMNS", "EngineScore", "name_score_column", "score_called"]

OTHER_SCORE = r"score_[a-z0-9_]{1,80}"
"""Regular expression of the column names of engines' scores."""


class EngineScore(NamedTuple):
    """Score of another search engine.

    Attributes
    ----------
    name : str
        Column name without ``score_``.
    title, meaning : str
        Column title and description in the window.
    called : tuple of str
        Names of the score in files, and its PSI-MS accessions, in lower case.
    sense : int
        1 if higher is better, -1 if lower is better, 0 if the score does not rank matches.
    is_logarithmic : bool
        True for scores that span many orders of magnitude; the negative logarithm then ranks matches.
    has_learnt : bool
        True if the score may have been trained on decoy labels and must not be a feature for Percolator.
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
        """Name of the score's column."""
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
        "Expected number of equally good matches by chance in the spectrum, by MS-GF+",
        ("ms:1002052", "ms-gf:specevalue", "specevalue", "ms-gf:specprob"),
        -1,
        is_logarithmic=True,
    ),
    EngineScore(
        "e_value",
        "Engine's E-value",
        "Expected number of equally good matches by chance, by the search engine",
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
    EngineScore("main", "Engine's score", "Score by which the file ranks its matches", ("main score", "score")),
    EngineScore(
        "expectation_feature", "Expectation feature", "-log10 of Proteoscope's E-value, a feature for rescoring", ("feature_expectation",)
    ),
    EngineScore(
        "delta_cn",
        "ΔCn",
        "XCorr minus the XCorr of the next candidate, as a fraction of XCorr",
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
    EngineScore("next", "Next score", "Search engine's score of the next candidate of the spectrum", ("nextscore", "next score"), 0),
    EngineScore(
        "delta",
        "Engine's delta",
        "Search engine's score minus the score of the next candidate",
        ("delta score", "delta_score", "delta_next", "deltascore"),
        0,
    ),
    EngineScore(
        "matched_ions",
        "Engine's matched",
        "Number of fragment ions matched by the search engine",
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
        "q-value of the peptide, by the search engine",
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
        "q-value of the protein, by the search engine",
        ("protein_q", "protein.q.value"),
        0,
        has_learnt=True,
    ),
    EngineScore(
        "protein_group_q_value",
        "Engine's group q",
        "q-value of the protein group, by the search engine",
        ("pg.q.value",),
        0,
        has_learnt=True,
    ),
    EngineScore("global_q_value", "Global q", "q-value over all runs, by the search engine", ("global.q.value",), 0, has_learnt=True),
)
"""Known scores in order of preference; the first score in a file that can rank matches is used."""

_BY_NAME = {called: engine_score for engine_score in ENGINE_SCORES for called in engine_score.called}
_BY_COLUMN = {engine_score.column: engine_score for engine_score in ENGINE_SCORES}
_SEPARATORS = re.compile("[^a-z0-9]+")
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
        is_hidden_if_absent=True,
        is_shown=engine_score.sense != 0,
    )
    for engine_score in ENGINE_SCORES
)
"""Columns of all known scores; a table of imported PSMs has the columns of the scores in the file."""


def score_called(name: str) -> EngineScore | None:
    """Return the known score with the given name or PSI-MS accession, or None.

    Examples
    --------
    >>> score_called("Comet:expectation value").title
    "Engine's E-value"
    """
    return _BY_NAME.get(name.strip().lower())


def name_score_column(name: str) -> str:
    """Return the column name of a score, given the name of the score in a file.

    Examples
    --------
    >>> name_score_column("XCorr"), name_score_column("MS-GF:DeNovoScore")
    ('score_xcorr', 'score_ms_gf_denovoscore')
    """
    engine_score = score_called(name) or _BY_COLUMN.get(name.strip().lower())
    if engine_score is not None:
        return engine_score.column
    name = name.strip().removeprefix("score_")  # prefix in exports of this program
    return f"score_{_SEPARATORS.sub('_', name.strip().lower()).strip('_')[:_MAXIMUM_NAME] or 'unnamed'}"
