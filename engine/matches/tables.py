"""Statistics of the matches of an identification, and tables of PSMs, peptides and protein groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, segment_offsets, take_segments
from proteoscope.engine.chemistry.modifications import SearchModification
from proteoscope.engine.chemistry.peptidoforms import write_many
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.protein_names import name_columns
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.class_counts import ClassCounts
from proteoscope.engine.matches.class_rates import class_methods, class_rates
from proteoscope.engine.matches.columns import KNOWN_PLACES, MATCH_CLASS, PEPTIDES, PROTEINS, PSMS
from proteoscope.engine.matches.fragment_intensities import (
    IntensityModel,
    IntensitySettings,
    MatchColumns,
    learn_intensities,
    unpredicted_reason,
)
from proteoscope.engine.matches.match_classes import SECOND_PASS, classify_second_pass
from proteoscope.engine.matches.protein_groups import ProteinGroups, coverage, infer_protein_groups
from proteoscope.engine.matches.psms import SEARCH_SCORE_SCALE, Psms, SystematicErrors, joined_psms, rescoring_features, search_score
from proteoscope.engine.matches.rescoring import RescoringModels, RescoringSettings, rescore
from proteoscope.engine.peptides.known_modifications import KnownModifications
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.results.arrow import finite_or_null, or_null
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import spectrum_columns
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import ScoreScale, best_by_group, expected_decoys, false_share_interval, q_values
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = [
    "FEWEST_FOR_EXPECTATION",
    "AcceptanceCounts",
    "PeptidePositions",
    "PeptideRows",
    "ReportSettings",
    "ScoredMatches",
    "Tables",
    "TrainedScorer",
    "count_classes",
    "error_rates",
    "identified_proteins",
    "modification_columns",
    "numbered",
    "protein_table",
    "score_statistics",
    "with_second_pass",
    "write_tables",
]

FEWEST_FOR_EXPECTATION = 20
"""Minimum number of candidates for an E-value; the distribution of chance scores cannot be fitted to fewer candidates."""
_SAME_MASS = 1e-4  # Da


class ReportSettings(Protocol):
    """Settings of error rates and tables; attributes are named like the parameters of searches."""

    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]
    plus_one: bool
    fdr: float


class StatisticsSettings(ReportSettings, IntensitySettings, Protocol):
    """Settings of rescoring, error rates and tables of an identification."""

    rescoring: Literal["automatic", "off"]
    fragment_tolerance: Tolerance


@dataclass(frozen=True)
class ScoredMatches:
    """Matches (n) with scores and error rates.

    Attributes
    ----------
    psms : Psms
        The matches.
    score : ndarray of float64, shape (n,)
        Score that ranks all matches: the trained score, or `search_score`.
    q_value, posterior_error : ndarray of float64, shape (n,)
        Error rates of each match; NaN for ranks above 1, since only the best match of a spectrum is used to estimate error rates.
    features : mapping of str to ndarray, shape (n,)
        Features used by rescoring.
    message : str
        Sentence on the outcome of rescoring.
    match_class : ndarray of int64, shape (n,), or None
        Class of each match, which has its own error rate (`proteoscope.engine.matches.class_rates`); None without decoys.
    class_names : tuple of str
        Name of each class; empty if the tables name the classes in a separate column.
    advantages : ndarray of float64, shape (classes,), or None
        Score advantage of each class in a modification search (see `proteoscope.engine.matches.class_rates.class_advantages`); None in
        other searches.
    scale : ScoreScale or None
        Prior parameters of the score's decoy tail (see `ScoreScale`); None for a trained score.
    learnt : TrainedScorer or None
        Trained models; None without decoys.
    """

    psms: Psms
    score: NDArray[np.float64]
    q_value: NDArray[np.float64]
    posterior_error: NDArray[np.float64]
    features: Mapping[str, NDArray[np.floating]]
    message: str
    match_class: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    advantages: NDArray[np.float64] | None = None
    scale: ScoreScale | None = None
    learnt: TrainedScorer | None = None

    def sorted(self) -> ScoredMatches:
        """Return the matches sorted by rank, then by descending score."""
        order = self.order
        return self if (order[1:] > order[:-1]).all() else self.take(order)

    @property
    def is_second(self) -> NDArray[np.bool_] | None:
        """True for matches of a second pass, (n,); None without the classes of an identification."""
        return None if self.match_class is None or not self.class_names else self.match_class == SECOND_PASS

    @property
    def order(self) -> NDArray[np.int64]:
        """Row indices that sort the matches by rank, then by descending score, (n,)."""
        return np.lexsort((-self.score, self.psms.rank))

    def take(self, order: NDArray[np.int64]) -> ScoredMatches:
        """Return the matches with the given row indices, in this order."""
        features = {name: column[order] for name, column in self.features.items()}
        return replace(
            self,
            psms=self.psms.take(order),
            score=self.score[order],
            q_value=self.q_value[order],
            posterior_error=self.posterior_error[order],
            features=features,
            match_class=None if self.match_class is None else self.match_class[order],
        )


class AcceptanceCounts(NamedTuple):
    """Numbers of targets and decoys accepted at the false discovery rate of a search.

    `decoy_ratio` is the number of decoy candidates per target candidate; `targets_at_5_percent` are targets accepted at 5 %.
    """

    targets: int
    decoys: int
    decoy_ratio: float = 1.0
    targets_at_5_percent: int = 0

    @classmethod
    def from_q_values(
        cls, q_value: NDArray[np.float64], is_decoy: NDArray[np.bool_], fdr: float, decoy_ratio: float = 1.0
    ) -> AcceptanceCounts:
        """Count the rows that are accepted at a false discovery rate; rows with a q-value of NaN are not accepted."""
        decoys = int(np.count_nonzero((q_value <= fdr) & is_decoy))
        at_5_percent = int(np.count_nonzero((q_value <= 0.05) & ~is_decoy))
        return cls(int(np.count_nonzero(q_value <= fdr)) - decoys, decoys, decoy_ratio, at_5_percent)

    def certainty(self) -> dict[str, float]:
        """Return the counts, and the 95 % confidence interval of the false fraction of the targets."""
        low, high = false_share_interval(self.targets, self.decoys, self.decoy_ratio)
        interval = {"false_share_low": round(low, 6), "false_share_high": round(high, 6)}
        return {"targets": self.targets, "decoys": self.decoys, **interval, "targets_at_5_percent": self.targets_at_5_percent}


@dataclass(frozen=True)
class Tables:
    """Tables of an identification, and the numbers of rows accepted at the false discovery rate.

    `counted` has the keys ``psms``, ``peptides`` (peptidoforms) and ``proteins`` (groups); `n_sequences` is the number of distinct
    sequences of the accepted peptides.
    """

    psms: pa.Table
    peptides: pa.Table
    proteins: pa.Table
    counted: dict[str, AcceptanceCounts]
    n_sequences: int

    LEVELS: ClassVar = ("psms", "peptides", "proteins")


class TrainedScorer(NamedTuple):
    """Models trained on the matches of a search, which can score further matches of the same spectra.

    Attributes
    ----------
    systematic : SystematicErrors
        Systematic mass errors of the instrument.
    intensities : IntensityModel or None
        Model of fragment intensities; None if intensities are not predicted.
    rescoring : RescoringModels or None
        Models of rescoring; None if matches retain the search score.
    usual : mapping of str to float
        Mean of each feature from predicted intensities, used for matches without predictions.
    """

    systematic: SystematicErrors
    intensities: IntensityModel | None
    rescoring: RescoringModels | None
    usual: Mapping[str, float] = {}

    def features(self, psms: Psms, resources: Resources) -> tuple[dict[str, NDArray[np.float64]], TrainedScorer]:
        """Return the features of n matches by name, each (n,) float64, and this scorer.

        If `usual` is empty, the returned scorer is a copy with means of the features from predicted intensities.
        """
        features, learnt = rescoring_features(psms, self.systematic), self
        if self.intensities is not None and psms.bonds is not None:
            result, is_known = self.intensities.features(psms.bonds, psms.charge, psms.peptide_family, resources), psms.bonds.is_known
            if not self.usual:
                learnt = self._replace(usual={name: float(column[is_known].mean()) for name, column in result.items() if is_known.any()})
            if not is_known.all():
                result = {name: np.where(is_known, column, learnt.usual.get(name, 0.0)) for name, column in result.items()}
            features |= result
        return features, learnt


def score_statistics(
    psms: Psms,
    match_class: NDArray[np.int64],
    class_names: tuple[str, ...],
    settings: StatisticsSettings,
    resources: Resources,
    series: Sequence[str] = ("by",),
) -> ScoredMatches:
    """Rescore the matches if there are enough for training, and estimate error rates from the best match of each spectrum.

    Parameters
    ----------
    psms : Psms
        All matches.
    match_class : ndarray of int64, shape (n,)
        Class of each match, which has its own error rate.
    class_names : tuple of str
        Name of each class.
    settings : StatisticsSettings
        Settings of rescoring and error rates.
    resources : Resources
        Devices, threads and progress of the run.
    series : sequence of str
        Each set of ion series in the search, as symbols.

    Returns
    -------
    ScoredMatches
    """
    initial, unknown = search_score(psms), np.full(len(psms), np.nan)
    if settings.decoys == "none":
        return ScoredMatches(psms, initial, unknown, unknown, {}, "no decoys: no false discovery rate can be estimated")
    first = psms.rank == 1
    confident = np.zeros(len(psms), bool)
    rates = q_values(initial[first], psms.is_decoy[first], plus_one=settings.plus_one, decoy_ratio=psms.decoy_ratio)
    confident[first] = (rates <= 0.01) & ~psms.is_decoy[first]
    model, intensities = _intensities(psms, MatchColumns(psms.charge, psms.peptide_family, initial, confident), settings, series, resources)
    learnt = TrainedScorer(SystematicErrors.from_matches(psms, confident), model, None)
    features, learnt = learnt.features(psms, resources)
    score, message = initial, "rescoring is off"
    if settings.rescoring == "automatic":
        learning = RescoringSettings(decoy_ratio=psms.decoy_ratio)
        outcome = rescore(features, psms.is_decoy, psms.peptide_family, initial, first, learning, resources)
        score, message, learnt = outcome.score, outcome.message, learnt._replace(rescoring=outcome.learnt)
    message = "; ".join(text for text in (message, intensities) if text)
    psms = replace(psms, bonds=None)  # no longer needed
    scale = None if learnt.rescoring is not None else SEARCH_SCORE_SCALE
    return _with_error_rates(
        ScoredMatches(psms, score, unknown, unknown, _compact(features), message, match_class, class_names, scale=scale, learnt=learnt),
        settings,
    )


def with_second_pass(first: ScoredMatches, second: Psms, settings: StatisticsSettings, resources: Resources) -> ScoredMatches:
    """Return the matches of both passes with scores and error rates.

    Models of the first pass score the matches of the second pass. Each spectrum retains the matches of the pass whose best match is better.
    The matches of the second pass are a class with a separate error rate, because few spectra without a match in the first pass can be
    identified.
    """
    score, features = search_score(second), dict[str, NDArray[np.float64]]()
    if first.learnt is not None:
        features, _ = first.learnt.features(second, resources)
        if first.learnt.rescoring is not None:
            score = first.learnt.rescoring.score(features, score, second.peptide_family)
    n, psms = len(first.psms), joined_psms(first.psms, replace(second, bonds=None))
    score, new = np.concatenate((first.score, score)), _compact(features)
    retained = _rows_of_better_pass(psms, score, n)
    joined = replace(
        first,
        psms=psms.take(retained),
        score=score[retained],
        q_value=np.full(len(retained), np.nan),
        posterior_error=np.full(len(retained), np.nan),
        features={name: np.concatenate((column, new[name]))[retained] for name, column in first.features.items()},
        match_class=None if first.match_class is None else classify_second_pass(first.match_class, len(second))[retained],
    )
    return _with_error_rates(joined, settings)


def _compact(features: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.floating]]:
    """Return the features as float32, the precision of result files. Call this after training, which needs float64."""
    return {name: column.astype(np.float32) for name, column in features.items()}


def _with_error_rates(scored: ScoredMatches, settings: ReportSettings) -> ScoredMatches:
    """Return `scored` with q-values and posterior error probabilities of the best match of each spectrum."""
    psms, first = scored.psms, scored.psms.rank == 1
    if scored.learnt is None or not first.any():
        return scored
    q_value, posterior_error = np.full((2, len(psms)), np.nan)
    q_value[first], posterior_error[first] = error_rates(
        scored.score[first],
        psms.is_decoy[first],
        settings,
        decoy_ratio=psms.decoy_ratio,
        scale=scored.scale,
        peptide=psms.peptide_family[first],
        match_class=None if scored.match_class is None else scored.match_class[first],
    )
    return replace(scored, q_value=q_value, posterior_error=posterior_error)


def error_rates(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    settings: ReportSettings,
    *,
    decoy_ratio: float = 1.0,
    scale: ScoreScale | None = None,
    peptide: NDArray[np.int64] | None = None,
    match_class: NDArray[np.int64] | None = None,
    advantages: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return q-values and posterior error probabilities of n rows, estimated for each class separately or for all rows together.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Higher is better.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    settings : ReportSettings
        Settings of error rates.
    decoy_ratio, scale, peptide, advantages
        See `proteoscope.engine.matches.class_rates.class_rates`.
    match_class : ndarray of int64, shape (n,), optional
        Class of each row; None to rate all rows together.

    Returns
    -------
    q_value : ndarray of float64, shape (n,)
    posterior_error : ndarray of float64, shape (n,)
    """
    classes = np.zeros(len(score), np.int64) if match_class is None else match_class
    return class_rates(
        score, is_decoy, classes, plus_one=settings.plus_one, decoy_ratio=decoy_ratio, scale=scale, peptide=peptide, advantages=advantages
    )


def count_classes(scored: ScoredMatches, settings: ReportSettings) -> tuple[ClassCounts, ...]:
    """Return the counts of rank 1 matches in each class; empty without decoys, or if all matches are in one class."""
    if scored.match_class is None or not scored.class_names:
        return ()
    first = scored.psms.rank == 1
    match_class, is_decoy, q_value = scored.match_class[first], scored.psms.is_decoy[first], scored.q_value[first]
    methods = class_methods(is_decoy, match_class)
    if len(methods) < 2:
        return ()
    result = []
    for number, method in methods.items():
        rows = match_class == number
        accepted = AcceptanceCounts.from_q_values(q_value[rows], is_decoy[rows], settings.fdr, scored.psms.decoy_ratio)
        certainty = {} if method == "none" else accepted.certainty()
        result.append(ClassCounts(scored.class_names[number], method, int(np.count_nonzero(~is_decoy[rows])), certainty))
    return tuple(result)


def _intensities(
    psms: Psms, matches: MatchColumns, settings: StatisticsSettings, series: Sequence[str], resources: Resources
) -> tuple[IntensityModel | None, str]:
    """Return the intensity model, and a sentence about the fit.

    Without predictions, return None, and a sentence with the reason, or '' if predictions are not requested.
    """
    if not settings.predicted_intensities:
        return None, ""
    why = unpredicted_reason(settings, series, psms.modifications)
    if why or psms.bonds is None:
        return None, f"fragment intensities are not predicted: {why or 'a label of the second pass changes them'}"
    model, message = learn_intensities(psms.bonds, matches, settings.fragment_tolerance, resources.progress)
    n_unknown = len(np.unique(psms.spectrum[~psms.bonds.is_known]))
    if model is not None and n_unknown:
        message += f", none predicted for {n_unknown:,} spectra without b and y ions"
    return model, message


def _rows_of_better_pass(psms: Psms, score: NDArray[np.float64], n_first: int) -> NDArray[np.int64]:
    """Return the rows of the better pass of each spectrum; the first `n_first` rows are matches of the first pass.

    The second pass is better if its best match has both a higher ranking score and a higher search score (`Psms.score`). A higher ranking
    score is not enough: since the second pass has fewer candidates, its ranking score can be higher for a match that explains the same
    peaks with more modifications.
    """
    best = np.full((2, 2, int(psms.spectrum.max(initial=-1)) + 1), -np.inf)
    is_second = (np.arange(len(psms)) >= n_first).astype(np.int64)
    ranked = psms.rank == 1
    best[:, is_second[ranked], psms.spectrum[ranked]] = score[ranked], psms.score[ranked]
    is_better = (best[0, 1] > best[0, 0]) & (best[1, 1] > best[1, 0])
    return np.flatnonzero(is_better[psms.spectrum] == (is_second == 1))


def identified_proteins(scored: ScoredMatches, proteins: ProteinIndex, fdr: float) -> NDArray[np.int64]:
    """Return the ascending indices of target proteins with a peptide accepted at the false discovery rate, (p,) int64."""
    rows = np.flatnonzero((scored.q_value <= fdr) & ~scored.psms.is_decoy)
    return np.unique(proteins.protein_of(scored.psms.take(rows).occurrences))


def write_tables(scored: ScoredMatches, spectra: Spectra, proteins: ProteinIndex, settings: ReportSettings) -> Tables:
    """Return the tables of PSMs, peptides and protein groups, after estimating error rates of peptides and groups."""
    scored = scored.sorted()
    psms = scored.psms
    sequences = _sequences(psms, proteins)
    names = [modification.name for modification in psms.modifications]
    masses = [modification.mass for modification in psms.modifications]
    texts = write_many(sequences, psms.modification_offsets, psms.modification_site, psms.modification, names, masses)
    peptide_of_row = numbered(texts, psms.is_decoy)
    peptides = _peptides(scored, sequences, peptide_of_row, settings)
    holder = proteins.protein_of(psms.occurrences)
    positions = PeptidePositions(
        psms.occurrence_offsets, holder, psms.occurrences - np.asarray(proteins.proteins.offsets)[holder], psms.length
    )
    psm_table = _psm_table(scored, spectra, proteins, positions, sequences, texts, peptides.q_value[peptide_of_row])
    groups, protein_table = _protein_table(scored, peptides, positions, proteins, settings)
    counts = ((scored.q_value, psms.is_decoy), (peptides.q_value, peptides.is_decoy), (groups.q_value, groups.is_decoy))
    return Tables(
        psm_table,
        peptides.table(psm_table.take(pa.array(peptides.best_row))),
        protein_table,
        {
            name: AcceptanceCounts.from_q_values(*level, settings.fdr, psms.decoy_ratio)
            for name, level in zip(Tables.LEVELS, counts, strict=True)
        },
        peptides.count_sequences(settings.fdr),
    )


class PeptidePositions(NamedTuple):
    """Positions of the peptides of n matches in proteins, m positions in total.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Start of each match in `protein`, followed by m.
    protein : ndarray of int64, shape (m,)
        Index of the protein.
    start : ndarray of int64, shape (m,)
        First residue of the peptide in the protein, from 0; -1 if unknown.
    length : ndarray of int64, shape (n,)
        Number of residues of each peptide.
    """

    offsets: NDArray[np.int64]
    protein: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> PeptidePositions:
        """Return the matches with the given indices, in this order."""
        protein, offsets = take_segments(self.protein, self.offsets, rows)
        return PeptidePositions(offsets, protein, take_segments(self.start, self.offsets, rows)[0], self.length[rows])

    @property
    def stop(self) -> NDArray[np.int64]:
        """Index of the residue after the peptide in the protein, (m,) int64; invalid if `start` is -1."""
        return self.start + np.repeat(self.length, np.diff(self.offsets))

    def columns(self, accession: pa.Array, proteins: Proteins | None, row: NDArray[np.int64], first: NDArray[np.int64]) -> dict[str, Any]:
        """Return the protein columns of PSMs, including the residues next to the peptides (``-`` at protein termini).

        Parameters
        ----------
        accession : pyarrow.Array, length m
            Accession of each entry of `protein`.
        proteins : Proteins or None
            Sequences.
        row : ndarray of int64, shape (m,)
            Index in `proteins` of each entry of `protein`; any value if `start` is -1.
        first : ndarray of int64, shape (m,)
            Index of the first residue of each sequence in `proteins` within its complete protein, from 0. It is not 0 for variants, whose
            sequences are sections of proteins.

        Returns
        -------
        dict of str to pyarrow.ListArray
        """
        is_unknown = self.start < 0
        items = {"proteins": accession, "protein_starts": pa.array(self.start + first + 1, mask=is_unknown).cast(pa.int32())}
        if proteins is None:
            items |= dict.fromkeys(("residues_before", "residues_after"), pa.nulls(len(self.protein), pa.string()))
        else:
            offsets, residues = np.asarray(proteins.offsets), np.asarray(proteins.residues)
            characters = pa.array([chr(code) for code in range(128)], pa.string())
            for name, position in (("residues_before", self.start - 1), ("residues_after", self.stop)):
                position = position + offsets[row]
                is_outside = (position < offsets[row]) | (position >= offsets[row + 1])
                residue = np.where(is_outside, ord("-"), residues[position.clip(0, max(0, len(residues) - 1))])
                items[name] = characters.take(pa.array(residue, mask=is_unknown))
        return {name: pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), values) for name, values in items.items()}


@dataclass(frozen=True)
class PeptideRows:
    """Distinct peptidoforms (p) with scores and error rates of their best matches.

    Attributes
    ----------
    best_row : ndarray of int64, shape (p,)
        Row of the best match of each peptidoform.
    sequence : list of str, length p
        Sequence of each peptide.
    n_psms : ndarray of int64, shape (p,)
        Number of accepted matches of each peptidoform.
    score : ndarray of float64, shape (p,)
        Score of the best match, NaN if unknown.
    is_decoy : ndarray of bool, shape (p,)
        True for decoy peptides.
    competes : ndarray of bool, shape (p,)
        True if the best match is used to estimate error rates.
    q_value, posterior_error : ndarray of float64, shape (p,)
        q-value and posterior error probability; NaN if unknown.
    source : str
        Source of the q-values; with ``none``, all peptides are accepted.
    """

    best_row: NDArray[np.int64]
    sequence: list[str]
    n_psms: NDArray[np.int64]
    score: NDArray[np.float64]
    is_decoy: NDArray[np.bool_]
    competes: NDArray[np.bool_]
    q_value: NDArray[np.float64]
    posterior_error: NDArray[np.float64]
    source: str = "decoys"

    def count_sequences(self, fdr: float) -> int:
        """Return the number of distinct sequences of the accepted target peptides."""
        return len({self.sequence[i] for i in np.flatnonzero((self.q_value <= fdr) & ~self.is_decoy).tolist()})

    def table(self, best: pa.Table) -> pa.Table:
        """Return the peptide table; `best` are the rows of the best matches in the PSM table."""
        optional = [column.name for column in (KNOWN_PLACES, MATCH_CLASS) if column.name in best.column_names]
        copied = ("peptide", "sequence", "proteins", "is_decoy", "calculated_mass", *optional)
        columns = {
            **{name: best[name] for name in copied},
            "n_psms": self.n_psms,
            "best_score": finite_or_null(self.score),
            "q_value": finite_or_null(self.q_value),
            "posterior_error_probability": finite_or_null(self.posterior_error),
            "best_psm": best["psm_id"],
        }
        return PEPTIDES.arrow(columns, without=[column.name for column in (KNOWN_PLACES, MATCH_CLASS) if column.name not in optional])

    def group_proteins(
        self,
        positions: PeptidePositions,
        is_decoy: NDArray[np.bool_],
        partner: NDArray[np.int64],
        settings: ReportSettings,
        decoy_ratio: float = 1.0,
        scale: ScoreScale | None = None,
    ) -> tuple[ProteinGroups, NDArray[np.int64]]:
        """Return the protein groups that explain the accepted peptides.

        All peptidoforms of a sequence are counted as one peptide, with the best score and the sum of the PSMs.

        Parameters
        ----------
        positions : PeptidePositions
            Positions of the peptides of all matches.
        is_decoy : ndarray of bool, shape (proteins,)
            True for decoy proteins.
        partner : ndarray of int64, shape (proteins,)
            Index of the decoy of each target and of the target of each decoy, or -1.
        settings : ReportSettings
            Settings of error rates.
        decoy_ratio : float
            Decoy candidates per target candidate.
        scale : ScoreScale or None
            Prior parameters of the decoy tail.

        Returns
        -------
        ProteinGroups
        ndarray of int64
            Rows of the peptides that were used, one for each sequence.
        """
        score = np.where(np.isnan(self.score), 0.0 if self.source == "none" else -np.finfo(np.float64).max, self.score)
        accepted = np.flatnonzero((self.q_value <= settings.fdr) | (self.source == "none"))
        accepted = accepted[np.argsort(-score[accepted], kind="stable")]
        sequence = numbered([self.sequence[i] for i in accepted.tolist()], self.is_decoy[accepted])
        first = np.unique(sequence, return_index=True)[1]
        evidence = accepted[first]
        placed = positions.take(self.best_row[evidence])

        def expected_at(at: NDArray[np.float64]) -> NDArray[np.float64]:
            """Return the number of decoy peptides expected at or above each score.

            This number is an upper limit of the expected number of decoy groups, since each group needs at least one peptide.
            """
            return expected_decoys(self.score[self.competes], self.is_decoy[self.competes], at, scale)

        groups = infer_protein_groups(
            placed.offsets,
            placed.protein,
            score[evidence],
            self.is_decoy[evidence],
            np.bincount(sequence, self.n_psms[accepted], len(first)).astype(np.int64),
            is_decoy,
            decoy_partner=partner,
            plus_one=settings.plus_one,
            decoy_ratio=decoy_ratio,
            expected_at=expected_at,
        )
        return groups, evidence


def protein_table(groups: ProteinGroups, accession: pa.Array, described: Mapping[str, Any], error: NDArray[np.float64]) -> pa.Table:
    """Return the table of protein groups.

    Parameters
    ----------
    groups : ProteinGroups
        Protein groups.
    accession : pyarrow.Array
        Accessions of all members, in the order of `groups.members`.
    described : mapping of str to Any
        Columns with database information about the first member of each group.
    error : ndarray of float64, shape (groups,)
        Posterior error probability, NaN if unknown.
    """
    accessions = pa.ListArray.from_arrays(pa.array(groups.member_offsets, pa.int32()), accession)
    columns = {
        "group": pa.array([";".join(members) for members in accessions.to_pylist()], pa.string()),
        "accessions": accessions,
        "n_peptides": groups.n_peptides,
        "n_unique_peptides": groups.n_unique_peptides,
        "n_psms": groups.n_psms,
        "score": finite_or_null(groups.score),
        "q_value": finite_or_null(groups.q_value),
        "is_decoy": groups.is_decoy,
        "razor_peptides": groups.n_razor_peptides,
        "posterior_error_probability": finite_or_null(error),
        **described,
        **name_columns(described["description"]),
    }
    return PROTEINS.arrow(columns)


def modification_columns(
    offsets: NDArray[np.int64], site: NDArray[np.integer], modification: NDArray[np.integer], modifications: Sequence[Any]
) -> dict[str, pa.ListArray]:
    """Return the columns of PSM tables that describe the modifications of n matches.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Start of each match's modifications, followed by m.
    site : ndarray of int, shape (m,)
        Position of each modification: residue number from 1, 0 for the N-terminus, length + 1 for the C-terminus.
    modification : ndarray of int, shape (m,)
        Index into `modifications`.
    modifications : sequence
        Objects with the attributes `name`, `mass` and `unimod_id`.

    Returns
    -------
    dict of str to pyarrow.ListArray, length n
    """
    which = pa.array(modification)
    items = {
        "modification_positions": pa.array(site, pa.int16()),
        "modification_names": pa.array([modification.name for modification in modifications], pa.string()).take(which),
        "modification_masses": pa.array([modification.mass for modification in modifications], pa.float64()).take(which),
        "modification_unimod": pa.array([modification.unimod_id for modification in modifications], pa.int32()).take(which),
    }
    return {name: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values) for name, values in items.items()}


def _peptides(scored: ScoredMatches, sequences: list[str], peptide_of_row: NDArray[np.int64], settings: ReportSettings) -> PeptideRows:
    """Return the distinct peptidoforms of matches with scores and error rates.

    A peptidoform with matches in several classes is rated once per class, with its best match in the class. Of these q-values, the lowest
    is used, so that the peptidoform is not lost if its best match is in a class without an error rate.
    """
    psms, n_psms_of = scored.psms, peptide_of_row[scored.q_value <= settings.fdr]
    match_class = np.zeros(len(psms), np.int64) if scored.match_class is None else scored.match_class
    # A peptidoform that is never rank 1 has a row without statistics.
    ranked = np.where(psms.rank == 1, scored.score, -np.inf)
    rows = best_by_group(peptide_of_row * (int(match_class.max(initial=0)) + 1) + match_class, ranked)
    q_value, posterior_error = np.full((2, len(rows)), np.nan)
    competes = psms.rank[rows] == 1
    if settings.decoys != "none" and competes.any():
        rated = rows[competes]
        q_value[competes], posterior_error[competes] = error_rates(
            scored.score[rated],
            psms.is_decoy[rated],
            settings,
            decoy_ratio=psms.decoy_ratio,
            scale=scored.scale,
            peptide=None if scored.advantages is None else psms.peptide_family[rated],
            match_class=match_class[rated],
            advantages=scored.advantages,
        )
    best = best_by_group(peptide_of_row[rows], np.where(np.isnan(q_value), np.where(competes, -2.0, -3.0), -q_value))
    rows, competes = rows[best], competes[best]
    n_psms = np.bincount(n_psms_of, minlength=len(rows))
    of_best, source = [sequences[row] for row in rows.tolist()], "none" if settings.decoys == "none" else "decoys"
    return PeptideRows(
        rows, of_best, n_psms, scored.score[rows], psms.is_decoy[rows], competes, q_value[best], posterior_error[best], source
    )


def numbered(texts: list[str], is_decoy: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a number for each text, (n,) int64, from 0 in the order of first occurrence.

    Equal texts have the same number if both are targets or both are decoys.
    """
    numbers: dict[tuple[str, bool], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in zip(texts, is_decoy.tolist(), strict=True)], np.int64)


def _sequences(psms: Psms, proteins: ProteinIndex) -> list[str]:
    residues = bytes(np.asarray(proteins.proteins.residues))
    ends = (psms.position + psms.length).tolist()
    return [residues[a:b].decode("ascii") for a, b in zip(psms.position.tolist(), ends, strict=True)]


def _psm_table(
    scored: ScoredMatches,
    spectra: Spectra,
    proteins: ProteinIndex,
    positions: PeptidePositions,
    sequences: list[str],
    texts: list[str],
    peptide_q_value: NDArray[np.float64],
) -> pa.Table:
    psms, measured = scored.psms, scored.psms.features
    columns: dict[str, Any] = {
        **spectrum_columns(spectra, psms.spectrum),
        "charge": psms.charge,
        "observed_mass": psms.observed_mass,
        "calculated_mass": psms.calculated_mass,
        "mass_error_ppm": psms.mass_error_ppm,
        "isotope_error": psms.isotope_error,
        "peptide": texts,
        "sequence": sequences,
        "missed_cleavages": psms.missed_cleavages,
        "matched_ions": measured["matched_ions"].astype(np.int16),
        "total_ions": measured["total_ions"].astype(np.int16),
        **{kind.column: measured[kind.column] for kind in SCORE_KINDS},
        "score": scored.score,
        "delta_score": psms.delta_score,
        "q_value": or_null(scored.q_value),
        "posterior_error_probability": or_null(scored.posterior_error),
        "rank": psms.rank,
        "is_decoy": psms.is_decoy,
        "psm_id": np.arange(len(psms)),
        "peptide_q_value": or_null(peptide_q_value),
        "search_score": psms.score,
        "expectation": pa.array(10.0**psms.expectation, mask=psms.n_candidates < FEWEST_FOR_EXPECTATION),
        **modification_columns(psms.modification_offsets, psms.modification_site, psms.modification, psms.modifications),
        **positions.columns(
            _accessions(proteins, positions.protein), proteins.proteins, positions.protein, proteins.first_in_whole()[positions.protein]
        ),
    }
    if proteins.known_modifications is not None:
        columns[KNOWN_PLACES.name] = _database_modifications(psms, proteins, proteins.known_modifications)
    if scored.match_class is not None and scored.class_names:
        columns[MATCH_CLASS.name] = pa.array(scored.class_names, pa.string()).take(pa.array(scored.match_class))
    table = PSMS.arrow(columns, without=[column.name for column in (KNOWN_PLACES, MATCH_CLASS) if column.name not in columns])
    for name, column in scored.features.items():
        table = table.append_column(f"feature_{name}", pa.array(column.astype(np.float32)))
    return table


def _accessions(proteins: ProteinIndex, protein: NDArray[np.int64]) -> pa.Array:
    """Return the accessions of proteins with the given indices, as an Arrow array."""
    distinct, inverse = np.unique(protein, return_inverse=True)
    return pa.array([proteins.proteins.accession(i) for i in distinct.tolist()], pa.string()).take(pa.array(inverse))


def _protein_table(
    scored: ScoredMatches, peptides: PeptideRows, positions: PeptidePositions, proteins: ProteinIndex, settings: ReportSettings
) -> tuple[ProteinGroups, pa.Table]:
    """Return the protein groups and their table, inferred from the accepted sequences, each with its best peptidoform.

    Without decoys, all sequences are used.
    """
    is_decoy, ratio = np.arange(len(proteins)) >= proteins.n_targets, scored.psms.decoy_ratio
    groups, evidence = peptides.group_proteins(positions, is_decoy, proteins.partners(), settings, ratio, scored.scale)
    error = np.full(len(groups), np.nan)
    if settings.decoys == "none":
        groups = replace(groups, q_value=error)  # unknown q-values: all groups are reported, none is accepted
    elif len(groups):
        error = np.ones(len(groups))
        counts = ~groups.is_beaten
        error[counts] = posterior_error_probabilities(groups.score[counts], groups.is_decoy[counts], ratio)
    placed, lengths = positions.take(peptides.best_row[evidence]), proteins.whole_lengths()
    first = proteins.first_in_whole()[placed.protein]
    first_member = groups.members[groups.member_offsets[:-1]]
    described = {
        "description": [proteins.proteins.description(i) for i in first_member.tolist()],
        "coverage": coverage(lengths, placed.protein, placed.start + first, placed.stop + first)[first_member],
        "length": lengths[first_member],
        "sequence": [proteins.whole_sequence(i) for i in first_member.tolist()],
    }
    return groups, protein_table(groups, _accessions(proteins, groups.members), described, error)


def _database_modifications(psms: Psms, proteins: ProteinIndex, modifications_of_database: KnownModifications) -> pa.ListArray:
    """Return the modifications of each match that the database annotates at the same residue, as texts such as ``accession:S15 Phospho``.

    The modifications may have been searched as variable or as known modifications. In a sequence variant, residues are numbered as in the
    complete changed protein.
    """
    sites = modifications_of_database.position.astype(np.int64) << 8 | modifications_of_database.modification
    row_of_modification = np.repeat(np.arange(len(psms)), np.diff(psms.modification_offsets))
    within = np.clip(psms.modification_site - 1, 0, psms.length[row_of_modification] - 1)
    result: list[NDArray[np.int64]] = [np.zeros((0, 4), np.int64)]
    for number, modification in enumerate(psms.modifications):
        same = [i for i, candidate in enumerate(modifications_of_database.modifications) if _is_same(candidate, modification)]
        chosen = np.flatnonzero(psms.modification == number) if same else np.zeros(0, np.int64)
        rows = row_of_modification[chosen]
        offsets, index = ranges(psms.occurrence_offsets[rows], psms.occurrence_offsets[rows + 1])
        row, site = (np.repeat(column, np.diff(offsets)) for column in (rows, within[chosen]))
        position = psms.occurrences[index] + site
        for kind in same:
            key = position << 8 | kind
            place = np.minimum(np.searchsorted(sites, key), len(sites) - 1)
            is_known = sites[place] == key
            columns = row, site, position, np.full(len(row), kind)
            result.append(np.column_stack(columns)[is_known])
    table = np.unique(np.concatenate(result), axis=0)
    row, _, position, kind = table.T
    protein = proteins.protein_of(position)
    numbers = (position - proteins.proteins.offsets[protein] + proteins.first_in_whole()[protein] + 1).tolist()
    symbols = np.asarray(proteins.proteins.residues)[position].tobytes().decode("ascii")
    accessions = {number: proteins.proteins.accession(number) for number in np.unique(protein).tolist()}
    texts = [
        f"{accessions[number]}:{symbol}{residue} {modifications_of_database.modifications[which].name}"
        for number, symbol, residue, which in zip(protein.tolist(), symbols, numbers, kind.tolist(), strict=True)
    ]
    return pa.ListArray.from_arrays(
        pa.array(segment_offsets(np.bincount(row, minlength=len(psms))), pa.int32()), pa.array(texts, pa.string())
    )


def _is_same(first: SearchModification, second: SearchModification) -> bool:
    """Return True if two modifications have the same mass, and are at the same terminus or both at residues."""
    ends = [modification.position[-6:] for modification in (first, second)]
    return abs(first.mass - second.mass) < _SAME_MASS and ends[0] == ends[1]
