"""Scoring of queries against the peptide index in partitions of equal cost, and selection of the best candidates of each spectrum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, positions_in_groups, segment_offsets, take_segments
from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.execution.workload import Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fragment_index import FragmentIndexSearch
from proteoscope.engine.matches.fragment_intensities import has_predicted_series
from proteoscope.engine.matches.scoring_settings import MatchSettings, heaviest_ion, scoring_settings
from proteoscope.engine.matches.spectrum_scoring import create_workload, view_hits
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.counts import scoring_costs
from proteoscope.kernels.cpu.fragment_intensities import IONS, match_bonds
from proteoscope.kernels.cpu.matches import feature_names, measure_matches
from proteoscope.kernels.cuda.scoring import MAXIMUM_PEAKS
from proteoscope.kernels.device import Partition, StopFlag, even_partitions, stop_flag
from proteoscope.kernels.layouts import HitArrays, MatchArrays, ModificationArrays, PeptideArrays, ScoringSettings
from proteoscope.kernels.score_kinds import score_kind

__all__ = ["Matches", "ScoringBySeries", "ScoringPass", "joined_matches", "plan_by_series", "plan_scoring"]

_HITS = 5  # minimum candidates per query; the best candidate with another peptide gives the delta score
_MB = 1_000_000
_ROWS_FITTED = 512


@dataclass(frozen=True)
class Matches:
    """Peptide-spectrum matches (n), sorted by spectrum and rank.

    Attributes
    ----------
    spectrum, charge : ndarray of int64, shape (n,)
        Index of the spectrum, and precursor charge.
    rank : ndarray of int64, shape (n,)
        Rank of the match in the spectrum, from 1.
    query_mass : ndarray of float64, shape (n,)
        Neutral mass of the precursor, Da.
    peptide : ndarray of int64, shape (n,)
        Row of the peptide index.
    isotope_error : ndarray of int64, shape (n,)
        Isotope error of each precursor.
    site, modification : ndarray of uint8, shape (n, s)
        Sites and indices of variable modifications, as in `proteoscope.kernels.layouts.HitArrays`.
    score : ndarray of float64, shape (n,)
        Score of each match; higher is better.
    delta_score : ndarray of float64, shape (n,)
        Difference between the score and the score of the spectrum's best candidate with another sequence.
    n_candidates : ndarray of int64, shape (n,)
        Number of candidates of the spectrum's query.
    expectation : ndarray of float64, shape (n,)
        log10 of the number of candidates expected to reach the score by chance.
    features : dict of str to ndarray of float64, shape (n,)
        Feature columns of `proteoscope.kernels.cpu.matches.measure_matches`, by name.
    bond_weights : ndarray of float32, shape (r, 4), or None
        Square roots of matched intensities, one row per residue of each match (see
        `proteoscope.kernels.cpu.fragment_intensities.match_bonds`); None if not requested.
    has_bonds : ndarray of bool, shape (n,), or None
        True for matches of spectra with b and y ions, whose bonds have weights; None without `bond_weights`.
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    rank: NDArray[np.int64]
    query_mass: NDArray[np.float64]
    peptide: NDArray[np.int64]
    isotope_error: NDArray[np.int64]
    site: NDArray[np.uint8]
    modification: NDArray[np.uint8]
    score: NDArray[np.float64]
    delta_score: NDArray[np.float64]
    n_candidates: NDArray[np.int64]
    expectation: NDArray[np.float64]
    features: dict[str, NDArray[np.float64]]
    bond_weights: NDArray[np.float32] | None = None
    has_bonds: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.spectrum)

    def take(self, rows: NDArray[np.int64]) -> Matches:
        """Return the rows with the given indices, in this order, without bond weights."""
        features = {name: column[rows] for name, column in self.features.items()}
        return Matches(**{name: getattr(self, name)[rows] for name in _COLUMNS}, features=features)


_COLUMNS = [field.name for field in fields(Matches) if field.name not in ("features", "bond_weights", "has_bonds")]


def joined_matches(parts: Sequence[Matches]) -> Matches:
    """Concatenate the matches of several subsets of spectra, without bond weights."""
    features = {name: np.concatenate([part.features[name] for part in parts]) for name in parts[0].features}
    return Matches(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}, features=features)


@dataclass(frozen=True)
class ScoringPass:
    """A planned scoring pass of spectra against peptides, created by `plan_scoring`.

    The pass uses the GPUs of the resources, and also the CPU if the resources are `with_processor`. The CPU alone is used if there is no
    GPU, or if GPUs do not support the computation.

    Attributes
    ----------
    index : SpectrumIndex
        Spectra that have the same set of ion series.
    peptides : PeptideArrays
        Candidate peptides.
    modifications : ModificationArrays
        Variable and known modifications.
    parameters : MatchSettings
        Parameters of the search.
    settings : ScoringSettings
        Settings of the kernels.
    resources : Resources
        Devices and threads.
    workload : Workload
        Queries and candidates as a workload of the executor.
    n_candidates : ndarray of int64, shape (q,)
        Number of candidates of each query.
    session : Session or None
        Session whose devices already hold the candidates; None opens a new session.
    opened : ExitStack
        Context that closes the session.
    compile_index : callable, optional
        Function that compiles the index kernels; called before a fragment index is used.
    """

    index: SpectrumIndex
    peptides: PeptideArrays
    modifications: ModificationArrays
    parameters: MatchSettings
    settings: ScoringSettings
    resources: Resources
    workload: Workload
    n_candidates: NDArray[np.int64]
    session: Session | None
    opened: ExitStack
    compile_index: Callable[[Progress], object] | None = None

    def score(self) -> HitArrays:
        """Return the best candidates of each query."""
        fragments = FragmentIndexSearch(
            self.index, self.peptides, self.modifications, self.settings, self.resources, self.parameters.index_memory * _MB
        )
        with self._open() as session:
            if not fragments.is_worthwhile(self.n_candidates, self.compile_index):
                return self._scored_one_by_one(session)
        hits = view_hits(session.no_rows({"phase": "search"}, len(self.n_candidates)), self.workload.settings["histogram_width"])
        fragments.run(hits)
        return hits

    def score_one_by_one(self) -> HitArrays:
        """Score every candidate of each query without a fragment index, and return the best candidates."""
        with self._open() as session:
            return self._scored_one_by_one(session)

    @contextmanager
    def _open(self) -> Iterator[Session]:
        """Use the session of the plan, or open a new session."""
        with self.opened as stack:
            yield self.session or stack.enter_context(Executor(self.resources).session(self.workload))

    def _scored_one_by_one(self, session: Session) -> HitArrays:
        index, queries = self.index, self.index.queries
        cost = scoring_costs(self.n_candidates, queries.mass, is_modified=len(self.modifications.mass) > 0)
        state = {"phase": "search", "cost": cost}
        self.resources.progress.stage("Scoring spectra", len(queries.mass))
        peaks = np.diff(index.arrays.offsets)[queries.spectrum]
        too_full = peaks > MAXIMUM_PEAKS[self.settings.score] if self.resources.has_gpus else np.zeros(len(peaks), bool)
        if not too_full.any():
            return view_hits(session.run(state), self.workload.settings["histogram_width"])
        rows = session.no_rows(state, len(cost))
        with Executor(self.resources).session(self.workload, with_gpus=False) as on_threads:
            for part, chosen in ((session, ~too_full), (on_threads, too_full)):
                items = np.flatnonzero(chosen)
                for name, column in part.run(state, items).items():
                    rows[name][items] = column
        return view_hits(rows, self.workload.settings["histogram_width"])

    def run(self, *, with_bonds: bool = False) -> Matches:
        """Score the spectra, and return the best candidates of each spectrum.

        `with_bonds` adds the intensities of matched b and y ions at each bond.
        """
        index, settings = self.index, self.settings
        rows = _best_rows(index, self.score(), self.peptides, self.parameters, self.resources)
        measured, stop = np.zeros((len(rows["spectrum"]), len(feature_names()))), stop_flag()
        matches = MatchArrays(*(rows[name] for name in MatchArrays._fields))
        of_matches = index.arrays, matches, self.peptides, self.modifications.mass, settings

        def measure(part: Partition) -> None:
            measure_matches(*of_matches, part.first, part.last, measured, stop)

        self._on_threads(measure, len(measured), stop)
        features = dict(zip(feature_names(), np.ascontiguousarray(measured.T), strict=True))
        if not with_bonds:
            return Matches(**rows, features=features)
        offsets = segment_offsets(self.peptides.length[rows["peptide"]].astype(np.int64))
        bonds = np.zeros((offsets[-1], IONS), np.float32)
        symbols = list(dict.fromkeys(index.series))
        b, y = ([symbol for symbol in symbols if symbol in ends].index(series) for series, ends in (("b", "abc"), ("y", "xyz")))

        def match(part: Partition) -> None:
            match_bonds(*of_matches, (b, y), offsets, part.first, part.last, bonds, stop)

        self._on_threads(match, len(measured), stop)
        return Matches(**rows, features=features, bond_weights=bonds, has_bonds=np.ones(len(measured), np.bool_))

    def _on_threads(self, work: Callable[[Partition], None], n: int, stop: StopFlag) -> None:
        threads = self.resources.threads
        run_on_threads(work, even_partitions(n, threads), threads, self.resources.progress, steps=lambda _: 0, stop=stop)


def plan_scoring(
    index: SpectrumIndex,
    peptides: PeptideArrays,
    modifications: ModificationArrays,
    parameters: MatchSettings,
    resources: Resources,
    compile_index: Callable[[Progress], object] | None = None,
    *,
    stays_open: bool = True,
) -> ScoringPass:
    """Count the candidates of each query, and return a pass that can score them.

    Parameters
    ----------
    index, peptides, modifications, parameters, resources, compile_index
        See `ScoringPass`.
    stays_open : bool
        True keeps the candidates on the devices until the pass is scored. In the meantime, no other pass may be planned.

    Returns
    -------
    ScoringPass
    """
    # A single peak far above all ions would otherwise enlarge the peak table, which is cleared for each query.
    maximum_mz = min(float(index.arrays.mz.max(initial=0.0)), heaviest_ion(peptides, modifications))
    settings = scoring_settings(parameters, index.series, maximum_mz)
    workload = create_workload(
        index,
        peptides,
        modifications,
        settings,
        hits_per_query=max(_HITS, parameters.hits_per_spectrum + 1),
        slots=max(1, parameters.maximum_modifications),
        histogram_width=score_kind(parameters.score)[1].histogram_width,
    )
    resources.progress.stage("Planning", len(index.queries.mass))
    with ExitStack() as stack:
        session = stack.enter_context(Executor(resources).session(workload))
        n_candidates = session.run({"phase": "count"}, is_measured=False)["candidates"]
        held, opened = (session, stack.pop_all()) if stays_open else (None, ExitStack())
    return ScoringPass(index, peptides, modifications, parameters, settings, resources, workload, n_candidates, held, opened, compile_index)


@dataclass(frozen=True)
class ScoringBySeries:
    """Planned passes, one for each set of ion series, which use the devices one after the other.

    Attributes
    ----------
    passes : sequence of ScoringPass
        Planned passes.
    n_candidates : ndarray of int64, shape (q,)
        Number of candidates of each query, in the order of the index of all spectra.
    """

    passes: Sequence[ScoringPass]
    n_candidates: NDArray[np.int64]

    def run(self, *, with_bonds: bool = False) -> Matches:
        """Score the spectra, and return the best candidates of each spectrum, ordered by spectrum and rank.

        Parameters
        ----------
        with_bonds : bool
            True adds the intensities of matched ions at each bond, for spectra with b and y ions; weights are 0 for other spectra.

        Returns
        -------
        Matches
        """
        result = [
            scoring_pass.run(with_bonds=with_bonds and has_predicted_series(scoring_pass.index.series)) for scoring_pass in self.passes
        ]
        if with_bonds:
            result = [self._with_all_bonds(matches) for matches in result]
        if len(result) == 1:
            return result[0]
        every = joined_matches(result)
        order = np.argsort(every.spectrum, kind="stable")
        if not with_bonds:
            return every.take(order)
        weights, has_bonds = (np.concatenate([getattr(part, name) for part in result]) for name in ("bond_weights", "has_bonds"))
        rows, _ = take_segments(np.arange(len(weights)), segment_offsets(self._lengths(every)), order)
        return replace(every.take(order), bond_weights=weights[rows], has_bonds=has_bonds[order])

    def _with_all_bonds(self, matches: Matches) -> Matches:
        """Return the matches, with bond weights of 0 if the pass has none."""
        if matches.bond_weights is not None:
            return matches
        weights = np.zeros((int(self._lengths(matches).sum()), IONS), np.float32)
        return replace(matches, bond_weights=weights, has_bonds=np.zeros(len(matches), np.bool_))

    def _lengths(self, matches: Matches) -> NDArray[np.int64]:
        return self.passes[0].peptides.length[matches.peptide].astype(np.int64)


def plan_by_series(
    index: SpectrumIndex,
    peptides: PeptideArrays,
    modifications: ModificationArrays,
    parameters: MatchSettings,
    resources: Resources,
    compile_index: Callable[[Progress], object] | None = None,
) -> ScoringBySeries:
    """Count the candidates of each query in one pass per set of ion series (see `plan_scoring`)."""
    parts = index.by_series()
    passes = [
        plan_scoring(part, peptides, modifications, parameters, resources, compile_index, stays_open=len(parts) == 1) for part in parts
    ]
    if len(passes) == 1:
        return ScoringBySeries(passes, passes[0].n_candidates)
    # Queries are ordered by mass both in each part and in the whole index.
    n_candidates = np.empty(len(index.queries.mass), np.int64)
    order = np.argsort(index.ion_series.number[index.queries.spectrum], kind="stable")
    n_candidates[order] = np.concatenate([search_pass.n_candidates for search_pass in passes])
    return ScoringBySeries(passes, n_candidates)


def _best_rows(
    index: SpectrumIndex, hits: HitArrays, peptides: PeptideArrays, parameters: MatchSettings, resources: Resources
) -> dict[str, NDArray[Any]]:
    """Return columns of the best candidates of each spectrum, best first, at most `hits_per_spectrum`, with delta scores.

    The candidates of all charges are ranked together. Candidates with equal scores are ordered by isotope error, the smallest first.
    """
    queries = index.queries
    kind = score_kind(parameters.score)[1]
    exponent = 1.0 / float(getattr(parameters, kind.tail_root)) if kind.tail_root else 1.0
    query, column = np.nonzero(hits.peptide >= 0)
    score = hits.score[query, column].astype(np.float64)
    isotope_error = np.abs(hits.isotope_error[query, column].astype(np.int64))
    order = np.lexsort((column, query, isotope_error, -score, queries.spectrum[query]))
    query, column, score = query[order], column[order], score[order]
    spectrum, peptide = queries.spectrum[query], hits.peptide[query, column]
    n = len(spectrum)
    rank = positions_in_groups(is_group_start(spectrum)) + 1
    # The rival is the next row of the spectrum with another sequence, or its last row if all are arrangements of one peptide. The
    # range searched does not depend on `hits_per_spectrum`, so that requesting more hits does not change the first hit.
    sequence = (
        peptides.position[peptide].astype(np.int64) << 8 | peptides.length[peptide]
    )  # an entry with known modifications refers to its peptide
    rival = np.full(n, 0.0)
    open_rows = np.ones(n, bool)
    for step in range(1, _HITS):
        other = np.minimum(np.arange(n) + step, max(n - 1, 0))
        same_spectrum = (np.arange(n) + step < n) & (spectrum[other] == spectrum)
        rival = np.where(open_rows & same_spectrum, score[other], rival)
        open_rows &= same_spectrum & (sequence[other] == sequence)
    reported = rank <= parameters.hits_per_spectrum
    rows = query[reported], column[reported]
    return {
        "spectrum": spectrum[reported],
        "charge": queries.charge[rows[0]],
        "rank": rank[reported],
        "query_mass": index.observed_mass[rows[0]],
        "peptide": peptide[reported],
        "isotope_error": hits.isotope_error[rows].astype(np.int64),
        "site": hits.site[rows],
        "modification": hits.modification[rows],
        "score": score[reported],
        "delta_score": (score - rival)[reported],
        "n_candidates": hits.n_candidates[rows[0]],
        "expectation": _expectation(hits, rows[0], score[reported], rank[reported] == 1, exponent, resources),
    }


def _expectation(
    hits: HitArrays,
    query: NDArray[np.int64],
    score: NDArray[np.float64],
    is_first: NDArray[np.bool_],
    exponent: float,
    resources: Resources,
) -> NDArray[np.float64]:
    """Return log10 of the number of candidates expected to reach `score` by chance, for each row; `query` is the query of the row.

    For high scores, the logarithm of the number of candidates that reach a score is a falling line (Fenyö & Beavis 2003), as a function of
    the score to the power of `exponent` (1 except for long-tailed scores). The line is fitted to the best third of the query's candidates,
    without the best candidate. If these are few, the slope is shrunk towards a common slope, which is fitted to one query per spectrum (the
    rows with `is_first`).
    """
    n_bins = hits.histogram.shape[1]
    x = (np.arange(n_bins) * hits.histogram_width) ** exponent
    total, sum_w, mean_x, mean_y, spread_x, spread_xy = np.empty((6, len(query)))

    def fit(begin: int) -> None:
        part = slice(begin, begin + _ROWS_FITTED)
        rows = query[part]
        histogram = hits.histogram[rows].astype(np.float64)
        best = np.minimum((hits.score[rows, 0] / hits.histogram_width).astype(np.int64), n_bins - 1)
        position = np.arange(len(rows))
        histogram[position, best] = np.maximum(histogram[position, best] - 1, 0)
        reaching = np.cumsum(histogram[:, ::-1], axis=1)[:, ::-1]
        total[part] = reaching[:, 0]
        # Fit the upper third of the scored candidates, where the line is straight; each bin is weighted by its count.
        is_fitted = (reaching >= 1) & (reaching <= reaching[:, :1] / 3) & (x > 0)
        weight = np.where(is_fitted, np.minimum(reaching, 50.0), 0.0)
        y = np.log(np.maximum(reaching, 1.0))
        weighted_x = weight * x
        sum_w[part] = weight.sum(axis=1)
        safe = np.maximum(sum_w[part], 1e-9)
        mean_x[part], mean_y[part] = weighted_x.sum(axis=1) / safe, (weight * y).sum(axis=1) / safe
        spread_x[part] = (weighted_x * x).sum(axis=1) - mean_x[part] ** 2 * sum_w[part]
        spread_xy[part] = (weight * y * x).sum(axis=1) - mean_x[part] * mean_y[part] * sum_w[part]

    # In small batches, so that intermediate results stay in the cache.
    batches = range(0, len(query), _ROWS_FITTED)
    run_on_threads(fit, batches, resources.threads, resources.progress, steps=lambda _: 0)
    common = spread_xy[is_first].sum() / max(spread_x[is_first].sum(), 1e-9)
    prior = 50.0 * hits.histogram_width**exponent
    slope = np.minimum((spread_xy + common * prior) / (spread_x + prior), 0.2 * common)
    reached = np.maximum(score, 0.0) ** exponent
    logarithm = np.where(sum_w > 0, mean_y + slope * (reached - mean_x), np.log(total + 1.0) + common * reached)
    tail: NDArray[np.float64] = logarithm / np.log(10.0)
    return tail
