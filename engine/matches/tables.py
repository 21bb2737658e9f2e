"""Report: statistics of the matches, and the tables of PSMs, peptides, protein groups and spectra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.peptidoforms import write_many
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import KNOWN_PLACES, PEPTIDES, PROTEINS, PSMS
from proteoscope.engine.matches.fragment_intensities import (
    IntensityModel,
    IntensitySettings,
    MatchColumns,
    learn_intensities,
    why_not_predicted,
)
from proteoscope.engine.matches.group_rates import group_rates
from proteoscope.engine.matches.known_places import known_places
from proteoscope.engine.matches.protein_groups import ProteinGroups, coverage, infer_protein_groups
from proteoscope.engine.matches.psms import SEARCH_SCORE_SCALE, Psms, SystematicErrors, joined_psms, rescoring_features, search_score
from proteoscope.engine.matches.rescoring import LearntScore, RescoringSettings, rescore
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import ScoreScale, best_by_group, expected_decoys, false_share_interval, q_values
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = [
    "FEWEST_FOR_EXPECTATION",
    "Counted",
    "Learnt",
    "ReportSettings",
    "Scored",
    "Tables",
    "error_rates",
    "identified_proteins",
    "numbered",
    "score_statistics",
    "with_second_pass",
    "write_tables",
]

FEWEST_FOR_EXPECTATION = 20
"""Candidates of a spectrum below which its E-value is unknown: the best third of so few scores says nothing of how far chance reaches."""


class ReportSettings(Protocol):
    """Settings that decide error rates and tables, by the names that every search's parameters have for it."""

    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]
    plus_one: bool
    fdr: float


class StatisticsSettings(ReportSettings, IntensitySettings, Protocol):
    """Further settings that decide the statistics of an identification."""

    rescoring: Literal["automatic", "off"]
    fragment_tolerance: Tolerance


@dataclass(frozen=True)
class Scored:
    """Matches with their statistics; n rows.

    `score` decides the order of all matches: the learnt one, or `search_score`. `q_value` and `posterior_error` (n,) float64, NaN for rows
    of rank 2 and worse: only the best match of a spectrum competes, so nothing is known of the others. `features` are those that
    rescoring used, `learnt` what was learnt from them, None without decoys. `group` (n,) int64: matches that are judged apart from the
    others, whose scores lead by `leads` (`proteoscope.engine.matches.group_rates`); None where all are judged together. `is_second` (n,)
    bool: rows of a second pass; None where there was none. `scale` is what is known of the score beforehand, None where it was learnt.
    """

    psms: Psms
    score: NDArray[np.float64]
    q_value: NDArray[np.float64]
    posterior_error: NDArray[np.float64]
    features: Mapping[str, NDArray[np.floating]]
    message: str
    group: NDArray[np.int64] | None = None
    leads: NDArray[np.float64] | None = None
    is_second: NDArray[np.bool_] | None = None
    scale: ScoreScale | None = None
    learnt: Learnt | None = None

    def sorted(self) -> Scored:
        """The same rows, first the best of each spectrum, the best score first: the order in which they are looked at."""
        order = self.order
        return self if (order[1:] > order[:-1]).all() else self.take(order)

    @property
    def order(self) -> NDArray[np.int64]:
        """The rows as `sorted` has them."""
        return np.lexsort((-self.score, self.psms.rank))

    def take(self, order: NDArray[np.int64]) -> Scored:
        """Some of the rows, in the order given."""
        features = {name: column[order] for name, column in self.features.items()}
        group = None if self.group is None else self.group[order]
        is_second = None if self.is_second is None else self.is_second[order]
        return replace(
            self,
            psms=self.psms.take(order),
            score=self.score[order],
            q_value=self.q_value[order],
            posterior_error=self.posterior_error[order],
            features=features,
            group=group,
            is_second=is_second,
        )


class Counted(NamedTuple):
    """How many targets and decoys are accepted at the false discovery rate, and decoy candidates for each target candidate; and targets at
    5 %, which say more of a short list."""

    targets: int
    decoys: int
    decoy_ratio: float = 1.0
    targets_at_5_percent: int = 0

    @classmethod
    def of(cls, q_value: NDArray[np.float64], is_decoy: NDArray[np.bool_], fdr: float, decoy_ratio: float = 1.0) -> Counted:
        """Count rows with q-values (NaN: they do not compete) at a false discovery rate."""
        decoys = int(np.count_nonzero((q_value <= fdr) & is_decoy))
        at_5_percent = int(np.count_nonzero((q_value <= 0.05) & ~is_decoy))
        return cls(int(np.count_nonzero(q_value <= fdr)) - decoys, decoys, decoy_ratio, at_5_percent)

    def certainty(self) -> dict[str, float]:
        """The counts, and the 95 % interval of the share of false ones among the targets."""
        low, high = false_share_interval(self.targets, self.decoys, self.decoy_ratio)
        share = {"false_share_low": round(low, 6), "false_share_high": round(high, 6)}
        return {"targets": self.targets, "decoys": self.decoys, **share, "targets_at_5_percent": self.targets_at_5_percent}


@dataclass(frozen=True)
class Tables:
    """The tables of an identification and what is counted at the false discovery rate.

    `counted` has ``psms``, ``peptides`` (peptidoforms) and ``proteins`` (groups); `n_sequences` are the different sequences among the
    peptides counted.
    """

    psms: pa.Table
    peptides: pa.Table
    proteins: pa.Table
    counted: dict[str, Counted]
    n_sequences: int


class Learnt(NamedTuple):
    """What a search learnt from its matches; it scores further matches of the same spectra.

    `rescoring` is None where matches keep their search score, `intensities` where none are predicted. `usual` has the mean of each column
    of predicted intensities, which stands for matches whose intensities are not predicted.
    """

    systematic: SystematicErrors
    intensities: IntensityModel | None
    rescoring: LearntScore | None
    usual: Mapping[str, float] = {}

    def features(self, psms: Psms, resources: Resources) -> tuple[dict[str, NDArray[np.float64]], Learnt]:
        """Columns by which matches are told apart, by name, each (n,) float64; and this with the usual values, of the first matches."""
        features, learnt = rescoring_features(psms, self.systematic), self
        if self.intensities is not None and psms.bonds is not None:
            found, is_known = self.intensities.features(psms.bonds, psms.charge, psms.peptide_family, resources), psms.bonds.is_known
            if not self.usual:
                learnt = self._replace(usual={name: float(column[is_known].mean()) for name, column in found.items() if is_known.any()})
            if not is_known.all():
                found = {name: np.where(is_known, column, learnt.usual.get(name, 0.0)) for name, column in found.items()}
            features |= found
        return features, learnt


def score_statistics(psms: Psms, settings: StatisticsSettings, resources: Resources, series: Sequence[str] = ("by",)) -> Scored:
    """Rescore the matches where there is enough to learn from, and estimate q-values and posterior error probabilities by the decoys among
    the best of each spectrum.

    Parameters
    ----------
    series : letters of each ion series that spectra were searched for.
    """
    initial, unknown = search_score(psms), np.full(len(psms), np.nan)
    if settings.decoys == "none":
        return Scored(psms, initial, unknown, unknown, {}, "no decoys: no false discovery rate can be estimated")
    first = psms.rank == 1
    confident = np.zeros(len(psms), bool)
    rates = q_values(initial[first], psms.is_decoy[first], plus_one=settings.plus_one, decoy_ratio=psms.decoy_ratio)
    confident[first] = (rates <= 0.01) & ~psms.is_decoy[first]
    model, intensities = _intensities(psms, MatchColumns(psms.charge, psms.peptide_family, initial, confident), settings, series, resources)
    learnt = Learnt(SystematicErrors.of(psms, confident), model, None)
    features, learnt = learnt.features(psms, resources)
    score, message = initial, "rescoring is off"
    if settings.rescoring == "automatic":
        learning = RescoringSettings(decoy_ratio=psms.decoy_ratio)
        outcome = rescore(features, psms.is_decoy, psms.peptide_family, initial, first, learning, resources)
        score, message, learnt = outcome.score, outcome.message, learnt._replace(rescoring=outcome.learnt)
    message = "; ".join(one for one in (message, intensities) if one)
    psms = replace(psms, bonds=None)  # nothing else asks for them
    scale = None if learnt.rescoring is not None else SEARCH_SCORE_SCALE
    return _judged(Scored(psms, score, unknown, unknown, _kept(features), message, scale=scale, learnt=learnt), settings)


def with_second_pass(first: Scored, second: Psms, settings: StatisticsSettings, resources: Resources) -> Scored:
    """The statistics of the matches of both passes.

    The matches of the second are scored by what was learnt from the first. Then of each spectrum those of the pass with the better best
    match stay, and all compete in one list. Lists of their own would hold few decoys, and "down to the first decoy" is no 1 %: of the
    second passes of small runs 9 % were wrong that way.
    """
    score, features = search_score(second), dict[str, NDArray]()
    if first.learnt is not None:
        features, _ = first.learnt.features(second, resources)
        if first.learnt.rescoring is not None:
            score = first.learnt.rescoring.score(features, score, second.peptide_family)
    n, psms = len(first.psms), joined_psms(first.psms, replace(second, bonds=None))
    score, new = np.concatenate((first.score, score)), _kept(features)
    kept = _rows_of_better_pass(psms, score, n)
    joined = replace(
        first,
        psms=psms.take(kept),
        score=score[kept],
        q_value=np.full(len(kept), np.nan),
        posterior_error=np.full(len(kept), np.nan),
        features={name: np.concatenate((column, new[name]))[kept] for name, column in first.features.items()},
        is_second=kept >= n,
    )
    return _judged(joined, settings)


def _kept(features: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.floating]]:
    """The features as they are written: they were learnt from, and of a large run take much room."""
    return {name: column.astype(np.float32) for name, column in features.items()}


def _judged(scored: Scored, settings: ReportSettings) -> Scored:
    """The same with q-values and posterior errors of the best of each spectrum."""
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
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """q-values and posterior error probabilities of rows that compete, all in one list.

    Decoys expected from the tail of the decoys are added to those seen (`proteoscope.engine.statistics.target_decoy`).

    Parameters
    ----------
    scale : ScoreScale, optional
        What is known of the score beforehand.
    peptide : ndarray of int64, shape (n,), optional
        Peptide of each row. The tail is that of decoy peptides, each at its best score, times the mean number of rows of one (of any
        peptide without decoys). Without `peptide` each row is one draw.
    """
    best, at_once = np.flatnonzero(is_decoy), 1.0
    if peptide is not None and len(score):
        rows = best if len(best) else np.arange(len(score))
        at_once = len(rows) / len(np.unique(peptide[rows]))
        best = best[best_by_group(peptide[best], score[best])]
    expected = at_once * expected_decoys(score[best], is_decoy[best], score, scale)
    q_value = q_values(score, is_decoy, plus_one=settings.plus_one, decoy_ratio=decoy_ratio, expected=expected, at_once=at_once)
    return q_value, posterior_error_probabilities(score, is_decoy, decoy_ratio)


def _intensities(
    psms: Psms, judged: MatchColumns, settings: StatisticsSettings, series: Sequence[str], resources: Resources
) -> tuple[IntensityModel | None, str]:
    """What predicts fragment intensities, and what was learnt of them or why they are not predicted; nothing is said where nobody asked."""
    if not settings.predicted_intensities:
        return None, ""
    why = why_not_predicted(settings, series, psms.modifications)
    if why or psms.bonds is None:
        return None, f"fragment intensities are not predicted: {why or 'a label of the second pass changes them'}"
    model, message = learn_intensities(psms.bonds, judged, settings.fragment_tolerance, resources.progress)
    n_unknown = len(np.unique(psms.spectrum[~psms.bonds.is_known]))
    if model is not None and n_unknown:
        message += f", none predicted for {n_unknown:,} spectra without b and y ions"
    return model, message


def _rows_of_better_pass(psms: Psms, score: NDArray[np.float64], n_first: int) -> NDArray[np.int64]:
    """Rows of the pass, the first `n_first` rows or the others, in which the best match of their spectrum scores better."""
    best = np.full((2, int(psms.spectrum.max(initial=-1)) + 1), -np.inf)
    is_second = (np.arange(len(psms)) >= n_first).astype(np.int64)
    ranked = psms.rank == 1
    best[is_second[ranked], psms.spectrum[ranked]] = score[ranked]
    return np.flatnonzero((best[1] > best[0])[psms.spectrum] == (is_second == 1))


def identified_proteins(scored: Scored, proteins: ProteinIndex, fdr: float) -> NDArray[np.int64]:
    """Targets with a peptide at the false discovery rate, ascending."""
    rows = np.flatnonzero((scored.q_value <= fdr) & ~scored.psms.is_decoy)
    return np.unique(proteins.protein_of(scored.psms.take(rows).occurrences))


def write_tables(scored: Scored, spectra: Spectra, proteins: ProteinIndex, settings: ReportSettings) -> Tables:
    """The tables of PSMs, peptides and protein groups, with the statistics of peptides and groups."""
    scored = scored.sorted()
    psms = scored.psms
    sequences = _sequences(psms, proteins)
    names = [modification.name for modification in psms.modifications]
    masses = [modification.mass for modification in psms.modifications]
    texts = write_many(sequences, psms.modification_offsets, psms.modification_site, psms.modification, names, masses)
    peptide_of_row = numbered(texts, psms.is_decoy)
    peptides = _Peptides.of(scored, peptide_of_row, settings)
    psm_table = _psm_table(scored, spectra, proteins, sequences, texts, peptides.q_value[peptide_of_row])
    peptide_table = _peptide_table(peptides, psm_table)
    groups, protein_table = _protein_table(scored, peptides, sequences, proteins, settings)
    accepted = peptides.q_value <= settings.fdr
    return Tables(
        psm_table,
        peptide_table,
        protein_table,
        {
            "psms": Counted.of(scored.q_value, psms.is_decoy, settings.fdr, psms.decoy_ratio),
            "peptides": Counted.of(peptides.q_value, peptides.is_decoy, settings.fdr, psms.decoy_ratio),
            "proteins": Counted.of(groups.q_value, groups.is_decoy, settings.fdr, psms.decoy_ratio),
        },
        len({sequences[row] for row in peptides.best_row[accepted & ~peptides.is_decoy].tolist()}),
    )


@dataclass(frozen=True)
class _Peptides:
    """p distinct peptidoforms: best row of rank 1, number of accepted PSMs, and statistics by their best PSM."""

    best_row: NDArray[np.int64]
    n_psms: NDArray[np.int64]
    score: NDArray[np.float64]
    is_decoy: NDArray[np.bool_]
    q_value: NDArray[np.float64]
    posterior_error: NDArray[np.float64]

    @classmethod
    def of(cls, scored: Scored, peptide_of_row: NDArray[np.int64], settings: ReportSettings) -> _Peptides:
        n = int(peptide_of_row.max(initial=-1)) + 1
        # A peptidoform that is nowhere best keeps its row, with nothing in its statistics.
        ranked = np.where(scored.psms.rank == 1, scored.score, -np.inf)
        best_row = best_by_group(peptide_of_row, ranked)
        score, is_decoy = scored.score[best_row], scored.psms.is_decoy[best_row]
        n_psms = np.bincount(peptide_of_row[scored.q_value <= settings.fdr], minlength=n)
        q_value, posterior_error = np.full(n, np.nan), np.full(n, np.nan)
        counted = scored.psms.rank[best_row] == 1
        if settings.decoys != "none" and counted.any():
            ratio, columns = scored.psms.decoy_ratio, (score[counted], is_decoy[counted])
            if scored.group is None or scored.leads is None:
                rates = error_rates(*columns, settings, decoy_ratio=ratio, scale=scored.scale)
            else:
                family, group = scored.psms.peptide_family[best_row][counted], scored.group[best_row][counted]
                plus_one, scale = settings.plus_one, scored.scale
                rates = group_rates(*columns, family, group, scored.leads, plus_one=plus_one, decoy_ratio=ratio, scale=scale)
            q_value[counted], posterior_error[counted] = rates
        return cls(best_row, n_psms, score, is_decoy, q_value, posterior_error)


def numbered(texts: list[str], is_decoy: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a number for each distinct text, targets and decoys apart, in the order of their first rows."""
    numbers: dict[tuple[str, bool], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in zip(texts, is_decoy.tolist(), strict=True)], np.int64)


def _sequences(psms: Psms, proteins: ProteinIndex) -> list[str]:
    residues = bytes(np.asarray(proteins.proteins.residues))
    ends = (psms.position + psms.length).tolist()
    return [residues[a:b].decode("ascii") for a, b in zip(psms.position.tolist(), ends, strict=True)]


def _psm_table(
    scored: Scored,
    spectra: Spectra,
    proteins: ProteinIndex,
    sequences: list[str],
    texts: list[str],
    peptide_q_value: NDArray[np.float64],
) -> pa.Table:
    psms, measured, of = scored.psms, scored.psms.features, scored.psms.spectrum
    scan, retention_time = spectra.scan[of], spectra.retention_time[of]
    spectrum_ids = pa.array(spectra.identifier).take(pa.array(of))
    unimod = pa.array([modification.unimod_id for modification in psms.modifications], pa.int32())
    names = pa.array([modification.name for modification in psms.modifications], pa.string())
    masses = pa.array([modification.mass for modification in psms.modifications], pa.float64())
    which = pa.array(psms.modification)
    modification_lists = pa.array(psms.modification_offsets, pa.int32())
    protein = proteins.protein_of(psms.occurrences)
    starts = psms.occurrences - np.asarray(proteins.proteins.offsets)[protein] + proteins.first_in_whole()[protein]
    length_of_each = np.repeat(psms.length, np.diff(psms.occurrence_offsets))
    protein_lists = pa.array(psms.occurrence_offsets, pa.int32())
    columns: dict[str, Any] = {
        "spectrum_file": pa.array(spectra.file_names).take(pa.array(spectra.file[of])),
        "spectrum_id": spectrum_ids,
        "scan": pa.array(scan, mask=scan < 0),
        "retention_time": pa.array(retention_time, mask=np.isnan(retention_time)),
        "precursor_mz": pa.array(spectra.precursor_mz[of]),
        "charge": pa.array(psms.charge, pa.int8()),
        "observed_mass": pa.array(psms.observed_mass),
        "calculated_mass": pa.array(psms.calculated_mass),
        "mass_error_ppm": pa.array(psms.mass_error_ppm),
        "isotope_error": pa.array(psms.isotope_error, pa.int8()),
        "peptide": pa.array(texts, pa.string()),
        "sequence": pa.array(sequences, pa.string()),
        "proteins": pa.ListArray.from_arrays(protein_lists, _accessions(proteins, protein)),
        "missed_cleavages": pa.array(psms.missed_cleavages, pa.int8()),
        "matched_ions": pa.array(measured["matched_ions"].astype(np.int16)),
        "total_ions": pa.array(measured["total_ions"].astype(np.int16)),
        **{kind.column: pa.array(measured[kind.column]) for kind in SCORE_KINDS},
        "score": pa.array(scored.score),
        "delta_score": pa.array(psms.delta_score),
        "q_value": pa.array(scored.q_value, from_pandas=True),
        "posterior_error_probability": pa.array(scored.posterior_error, from_pandas=True),
        "rank": pa.array(psms.rank, pa.int8()),
        "is_decoy": pa.array(psms.is_decoy),
        "psm_id": pa.array(np.arange(len(psms))),
        "spectrum_index": pa.array(spectra.index[of]),
        "spectrum": pa.array(of),
        "peptide_q_value": pa.array(peptide_q_value, from_pandas=True),
        "search_score": pa.array(psms.score),
        "expectation": pa.array(10.0**psms.expectation, mask=psms.n_candidates < FEWEST_FOR_EXPECTATION),
        "modification_positions": pa.ListArray.from_arrays(modification_lists, pa.array(psms.modification_site, pa.int16())),
        "modification_names": pa.ListArray.from_arrays(modification_lists, names.take(which)),
        "modification_masses": pa.ListArray.from_arrays(modification_lists, masses.take(which)),
        "modification_unimod": pa.ListArray.from_arrays(modification_lists, unimod.take(which)),
        "protein_starts": pa.ListArray.from_arrays(protein_lists, pa.array(starts + 1, pa.int32())),
        "residues_before": pa.ListArray.from_arrays(protein_lists, _flanks(proteins, psms.occurrences - 1, protein)),
        "residues_after": pa.ListArray.from_arrays(protein_lists, _flanks(proteins, psms.occurrences + length_of_each, protein)),
    }
    if proteins.known is not None:
        columns[KNOWN_PLACES.name] = known_places(psms, proteins, proteins.known)
    table = PSMS.arrow(columns, without=() if proteins.known is not None else (KNOWN_PLACES.name,))
    for name, column in scored.features.items():
        table = table.append_column(f"feature_{name}", pa.array(column.astype(np.float32)))
    return table


def _accessions(proteins: ProteinIndex, protein: NDArray[np.int64]) -> pa.Array:
    """Accessions of proteins by number, as an Arrow array."""
    distinct, inverse = np.unique(protein, return_inverse=True)
    return pa.array([proteins.proteins.accession(i) for i in distinct.tolist()], pa.string()).take(pa.array(inverse))


def _flanks(proteins: ProteinIndex, position: NDArray[np.int64], protein: NDArray[np.int64]) -> pa.Array:
    """The residue at each position, "-" where that lies outside the protein."""
    offsets, residues = np.asarray(proteins.proteins.offsets), np.asarray(proteins.proteins.residues)
    outside = (position < offsets[protein]) | (position >= offsets[protein + 1])
    letter = np.where(outside, ord("-"), residues[position.clip(0, max(0, len(residues) - 1))])
    return pa.array([chr(code) for code in range(128)], pa.string()).take(pa.array(letter))


def _peptide_table(peptides: _Peptides, psm_table: pa.Table) -> pa.Table:
    best = psm_table.take(pa.array(peptides.best_row))
    known = [name for name in (KNOWN_PLACES.name,) if name in best.column_names]
    return PEPTIDES.arrow(
        {
            **{name: best[name] for name in known},
            "peptide": best["peptide"],
            "sequence": best["sequence"],
            "proteins": best["proteins"],
            "n_psms": pa.array(peptides.n_psms, pa.int32()),
            "best_score": pa.array(peptides.score),
            "q_value": pa.array(peptides.q_value, from_pandas=True),
            "is_decoy": pa.array(peptides.is_decoy),
            "posterior_error_probability": pa.array(peptides.posterior_error, from_pandas=True),
            "calculated_mass": best["calculated_mass"],
            "best_psm": best["psm_id"],
        },
        without=() if known else (KNOWN_PLACES.name,),
    )


def _protein_table(
    scored: Scored, peptides: _Peptides, sequences: list[str], proteins: ProteinIndex, settings: ReportSettings
) -> tuple[ProteinGroups, pa.Table]:
    """Groups from the peptides at the false discovery rate (from all, where there are no decoys), by the sequences' best forms."""
    offsets = np.asarray(proteins.proteins.offsets)
    accepted = np.flatnonzero((peptides.q_value <= settings.fdr) | (settings.decoys == "none"))
    accepted = accepted[np.argsort(-peptides.score[accepted], kind="stable")]
    rows = scored.psms.take(peptides.best_row[accepted])
    # Forms of one sequence are one peptide here: its best form's score, all forms' PSMs.
    sequence = numbered([sequences[row] for row in peptides.best_row[accepted].tolist()], rows.is_decoy)
    first = np.unique(sequence, return_index=True)[1]
    n_psms = np.bincount(sequence, peptides.n_psms[accepted], len(first)).astype(np.int64)
    evidence, competes = rows.take(first), scored.psms.rank[peptides.best_row] == 1

    def expected_at(score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Decoys of peptides, of which few reach as far as groups do: a false group rests on a false peptide."""
        return expected_decoys(peptides.score[competes], peptides.is_decoy[competes], score, scored.scale)

    groups = infer_protein_groups(
        evidence.occurrence_offsets,
        proteins.protein_of(evidence.occurrences),
        peptides.score[accepted][first],
        evidence.is_decoy,
        n_psms,
        np.arange(len(proteins)) >= proteins.n_targets,
        decoy_partner=proteins.partners(),
        plus_one=settings.plus_one,
        decoy_ratio=rows.decoy_ratio,
        expected_at=expected_at,
    )
    holder, lengths = proteins.protein_of(evidence.occurrences), proteins.whole_lengths()
    start = evidence.occurrences - offsets[holder] + proteins.first_in_whole()[holder]
    stop = start + np.repeat(evidence.length, np.diff(evidence.occurrence_offsets))
    covered = coverage(lengths, holder, start, stop)
    first_member = groups.members[groups.member_offsets[:-1]]
    accessions = pa.ListArray.from_arrays(pa.array(groups.member_offsets, pa.int32()), _accessions(proteins, groups.members))
    error = np.full(len(groups), np.nan)
    if settings.decoys == "none":
        groups = replace(groups, q_value=error)  # nothing is known of them, and none counts as accepted
    elif len(groups):
        error = np.ones(len(groups))
        counts = ~groups.is_beaten
        error[counts] = posterior_error_probabilities(groups.score[counts], groups.is_decoy[counts], rows.decoy_ratio)
    table = PROTEINS.arrow(
        {
            "group": pa.array([";".join(members) for members in accessions.to_pylist()], pa.string()),
            "accessions": accessions,
            "description": pa.array([proteins.proteins.description(i) for i in first_member.tolist()], pa.string()),
            "n_peptides": pa.array(groups.n_peptides, pa.int32()),
            "n_unique_peptides": pa.array(groups.n_unique_peptides, pa.int32()),
            "n_psms": pa.array(groups.n_psms, pa.int32()),
            "coverage": pa.array(covered[first_member]),
            "score": pa.array(groups.score),
            "q_value": pa.array(groups.q_value, from_pandas=True),
            "is_decoy": pa.array(groups.is_decoy),
            "razor_peptides": pa.array(groups.n_razor_peptides, pa.int32()),
            "posterior_error_probability": pa.array(error, from_pandas=True),
            "length": pa.array(lengths[first_member], pa.int32()),
            "sequence": pa.array([proteins.whole_sequence(i) for i in first_member.tolist()], pa.string()),
        }
    )
    return groups, table
