"""Plan and score: the queries against the peptide dictionary, in partitions of equal cost, and the best hits of each spectrum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets, take_runs
from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.execution.workload import Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fragment_index import FragmentIndexSearch
from proteoscope.engine.matches.fragment_intensities import has_predicted_series
from proteoscope.engine.matches.scoring_settings import MatchSettings, heaviest_ion, scoring_settings
from proteoscope.engine.matches.spectrum_scoring import hits_of, work_of
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.counts import scoring_costs
from proteoscope.kernels.cpu.fragment_intensities import IONS, match_bonds
from proteoscope.kernels.cpu.matches import feature_names, measure_matches
from proteoscope.kernels.cuda.scoring import MAXIMUM_PEAKS
from proteoscope.kernels.device import StopFlag, stop_flag
from proteoscope.kernels.layouts import HitArrays, MatchArrays, ModificationArrays, PeptideArrays, ScoringSettings
from proteoscope.kernels.partitions import Partition, equal_partitions
from proteoscope.kernels.score_kinds import score_kind

__all__ = ["Matches", "ScoringBySeries", "ScoringPass", "joined_matches", "plan_by_series", "plan_scoring"]

_KEPT = 5  # candidates of each query: the next different peptide gives the delta score
_MB = 1_000_000
_ROWS_FITTED = 512


@dataclass(frozen=True)
class Matches:
    """Peptide-spectrum matches, by spectrum and rank.

    Attributes
    ----------
    spectrum, charge, rank : (n,) int64
        Rank counts from 1.
    query_mass : (n,) float64
        Dalton.
    peptide : (n,) int64
        Row of the peptide dictionary.
    isotope_error : (n,) int64
        Isotope error.
    site, modification : (n, s) uint8
        Variable modifications as in `proteoscope.kernels.layouts.HitArrays`.
    score, delta_score : (n,) float64
        Delta to the best candidate of the same spectrum with another sequence.
    n_candidates : (n,) int64
        Number of candidates.
    expectation : (n,) float64
        log10 of the number of candidates expected to score as well by chance.
    features
        Name -> (n,) float64, the columns of `proteoscope.kernels.cpu.matches.measure_matches`.
    bond_weights : (r, 4) float32
        A row for each residue of each match: see `proteoscope.kernels.cpu.fragment_intensities.match_bonds`; None if not requested.
    has_bonds : (n,) bool
        True for spectra with b and y ions, whose bonds have weights; None without `bond_weights`.
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
        """Return some of the rows, in the order given, without the peaks of bonds."""
        features = {name: column[rows] for name, column in self.features.items()}
        return Matches(**{name: getattr(self, name)[rows] for name in _COLUMNS}, features=features)


_COLUMNS = [field.name for field in fields(Matches) if field.name not in ("features", "bond_weights", "has_bonds")]


def joined_matches(parts: Sequence[Matches]) -> Matches:
    """Return the rows of several parts of the spectra one after the other, without the peaks of bonds."""
    features = {name: np.concatenate([part.features[name] for part in parts]) for name in parts[0].features}
    return Matches(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}, features=features)


@dataclass(frozen=True)
class ScoringPass:
    """A planned pass of spectra against peptides, which scores them; made by `plan_scoring`.

    On the cards of the resources where there are any, on the processor's threads beside them when they are `with_processor`; on the threads
    alone where there are no cards, and what the cards cannot do.

    Attributes
    ----------
    index : SpectrumIndex
        Spectra of one ion series.
    peptides, modifications, parameters, settings
        Candidates, and how they are scored.
    resources : Resources
        What scores them.
    workload : Workload
        The queries and the candidates, as the executor takes them.
    n_candidates : ndarray of int64, shape (q,)
        Candidates of each query, in the order of the queries.
    session : Session or None
        Devices that hold the candidates, until the pass is scored; None: they are filled anew.
    opened : ExitStack
        Closes the session.
    compile_index : callable, optional
        Called before an index of fragments is used.
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
        hits = hits_of(session.no_rows({"phase": "search"}, len(self.n_candidates)), self.workload.settings["histogram_width"])
        fragments.run(hits)
        return hits

    def score_one_by_one(self) -> HitArrays:
        """Return the best candidates of each query by scoring every candidate, even if a fragment index takes less work."""
        with self._open() as session:
            return self._scored_one_by_one(session)

    @contextmanager
    def _open(self) -> Iterator[Session]:
        """Open the session of the plan, or a new one."""
        with self.opened as stack:
            yield self.session or stack.enter_context(Executor(self.resources).session(self.workload))

    def _scored_one_by_one(self, session: Session) -> HitArrays:
        index, queries = self.index, self.index.queries
        cost = scoring_costs(self.n_candidates, queries.mass, is_modified=len(self.modifications.mass) > 0)
        state = {"phase": "search", "cost": cost}
        self.resources.progress.stage("Scoring spectra", len(queries.mass))
        peaks = np.diff(index.arrays.offsets)[queries.spectrum]
        too_full = peaks > MAXIMUM_PEAKS[self.settings.score] if self.resources.has_cards else np.zeros(len(peaks), bool)
        if not too_full.any():
            return hits_of(session.run(state), self.workload.settings["histogram_width"])
        rows = session.no_rows(state, len(cost))
        with Executor(self.resources).session(self.workload, with_cards=False) as on_threads:
            for part, chosen in ((session, ~too_full), (on_threads, too_full)):
                items = np.flatnonzero(chosen)
                for name, column in part.run(state, items).items():
                    rows[name][items] = column
        return hits_of(rows, self.workload.settings["histogram_width"])

    def run(self, *, with_bonds: bool = False) -> Matches:
        """Return the best candidates of each spectrum with all scores; `with_bonds` adds the peaks of each bond (series b and y)."""
        index, settings = self.index, self.settings
        rows = _best_rows(index, self.score(), self.peptides, self.parameters)
        measured, stop = np.zeros((len(rows["spectrum"]), len(feature_names()))), stop_flag()
        matches = MatchArrays(*(rows[name] for name in MatchArrays._fields))
        of_matches = index.arrays, matches, self.peptides, self.modifications.mass, settings

        def measure(part: Partition) -> None:
            measure_matches(*of_matches, part.first, part.last, measured, stop)

        self._on_threads(measure, len(measured), stop)
        features = dict(zip(feature_names(), np.ascontiguousarray(measured.T), strict=True))
        if not with_bonds:
            return Matches(**rows, features=features)
        offsets = run_offsets(self.peptides.length[rows["peptide"]].astype(np.int64))
        bonds = np.zeros((offsets[-1], IONS), np.float32)
        symbols = list(dict.fromkeys(index.series))
        b, y = ([symbol for symbol in symbols if symbol in ends].index(one) for one, ends in (("b", "abc"), ("y", "xyz")))

        def match(part: Partition) -> None:
            match_bonds(*of_matches, (b, y), offsets, part.first, part.last, bonds, stop)

        self._on_threads(match, len(measured), stop)
        return Matches(**rows, features=features, bond_weights=bonds, has_bonds=np.ones(len(measured), np.bool_))

    def _on_threads(self, work: Callable[[Partition], None], n: int, stop: StopFlag) -> None:
        threads = self.resources.threads
        run_on_threads(work, equal_partitions(np.ones(n), threads), threads, self.resources.progress, steps=lambda _: 0, stop=stop)


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
    """Count the candidates of each query.

    Parameters
    ----------
    index, peptides, modifications, parameters, resources, compile_index
        See `ScoringPass`.
    stays_open : bool
        True if the candidates stay on the devices until the pass is scored: no other pass is planned before.
    """
    # One stray peak far beyond all ions would else make the table of peaks, which each query clears, as large as it likes.
    maximum_mz = min(float(index.arrays.mz.max(initial=0.0)), heaviest_ion(peptides, modifications))
    settings = scoring_settings(parameters, index.series, maximum_mz)
    workload = work_of(
        index,
        peptides,
        modifications,
        settings,
        kept=max(_KEPT, parameters.hits_per_spectrum + 1),
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
    """Planned passes of spectra against peptides, each with the ion series of its spectra; one after the other fills the devices.

    Attributes
    ----------
    passes : sequence of ScoringPass
        One for each ion series.
    n_candidates : ndarray of int64, shape (q,)
        Candidates of each query, in the order of the queries of all passes together.
    """

    passes: Sequence[ScoringPass]
    n_candidates: NDArray[np.int64]

    def run(self, *, with_bonds: bool = False) -> Matches:
        """Return the best candidates of each spectrum, by spectrum and rank, with all scores.

        Parameters
        ----------
        with_bonds : bool
            True if the peaks of each bond are needed too, of spectra with b and y ions; bonds of others have no peaks.
        """
        result = [one.run(with_bonds=with_bonds and has_predicted_series(one.index.series)) for one in self.passes]
        if with_bonds:
            result = [self._with_all_bonds(matches) for matches in result]
        if len(result) == 1:
            return result[0]
        every = joined_matches(result)
        order = np.argsort(every.spectrum, kind="stable")
        if not with_bonds:
            return every.take(order)
        weights, has_bonds = (np.concatenate([getattr(one, name) for one in result]) for name in ("bond_weights", "has_bonds"))
        rows, _ = take_runs(np.arange(len(weights)), run_offsets(self._lengths(every)), order)
        return replace(every.take(order), bond_weights=weights[rows], has_bonds=has_bonds[order])

    def _with_all_bonds(self, matches: Matches) -> Matches:
        """Return the matches with bonds without peaks, where the series has none."""
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
    """Count the candidates of each query; see `proteoscope.engine.matches.scoring.plan_scoring`."""
    parts = index.by_series()
    passes = [
        plan_scoring(part, peptides, modifications, parameters, resources, compile_index, stays_open=len(parts) == 1) for part in parts
    ]
    if len(passes) == 1:
        return ScoringBySeries(passes, passes[0].n_candidates)
    # Queries are in order of mass in the parts as in the whole.
    n_candidates = np.empty(len(index.queries.mass), np.int64)
    order = np.argsort(index.ion_series.number[index.queries.spectrum], kind="stable")
    n_candidates[order] = np.concatenate([search_pass.n_candidates for search_pass in passes])
    return ScoringBySeries(passes, n_candidates)


def _best_rows(index: SpectrumIndex, hits: HitArrays, peptides: PeptideArrays, parameters: MatchSettings) -> dict[str, NDArray]:
    """Hits of all charges of a spectrum together, the best first, with delta scores; at most `hits_per_spectrum` of each spectrum."""
    queries = index.queries
    kind = score_kind(parameters.score)[1]
    exponent = 1.0 / float(getattr(parameters, kind.tail_root)) if kind.tail_root else 1.0
    query, column = np.nonzero(hits.peptide >= 0)
    score = hits.score[query, column].astype(np.float64)
    order = np.lexsort((column, query, -score, queries.spectrum[query]))
    query, column, score = query[order], column[order], score[order]
    spectrum, peptide = queries.spectrum[query], hits.peptide[query, column]
    n = len(spectrum)
    is_first = np.ones(n, bool)
    is_first[1:] = spectrum[1:] != spectrum[:-1]
    start = np.maximum.accumulate(np.where(is_first, np.arange(n), 0))
    rank = np.arange(n) - start + 1
    # The next row of the same spectrum with another sequence; the last score is used instead if all are arrangements of one. No
    # further than with one hit for a spectrum: more of them must not change the first.
    sequence = (
        peptides.position[peptide].astype(np.int64) << 8 | peptides.length[peptide]
    )  # an entry with known modifications has its peptide's
    rival = np.full(n, 0.0)
    open_rows = np.ones(n, bool)
    for step in range(1, _KEPT):
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
        "expectation": _expectation(hits, rows[0], score[reported], rank[reported] == 1, exponent),
    }


def _expectation(
    hits: HitArrays, query: NDArray[np.int64], score: NDArray[np.float64], is_first: NDArray[np.bool_], exponent: float
) -> NDArray[np.float64]:
    """Return log10 of the number of candidates of the query expected to reach `score` by chance.

    The logarithm of the number of candidates reaching a score decreases linearly at its upper end (Fenyö & Beavis 2003) or, for a
    long-tailed score, in the score to the power of `exponent`. The line is fitted to the query's candidates except the best; the fewer they
    are, the more its slope is shrunk to that of all queries together, one per spectrum: the rows with `is_first`.
    """
    n_bins = hits.histogram.shape[1]
    x = (np.arange(n_bins) * hits.histogram_width) ** exponent
    total, sum_w, mean_x, mean_y, spread_x, spread_xy = np.empty((6, len(query)))
    for begin in range(0, len(query), _ROWS_FITTED):  # in small batches, so that intermediate results stay in the cache
        part = slice(begin, begin + _ROWS_FITTED)
        rows = query[part]
        histogram = hits.histogram[rows].astype(np.float64)
        best = np.minimum((hits.score[rows, 0] / hits.histogram_width).astype(np.int64), n_bins - 1)
        place = np.arange(len(rows))
        histogram[place, best] = np.maximum(histogram[place, best] - 1, 0)
        reaching = np.cumsum(histogram[:, ::-1], axis=1)[:, ::-1]
        total[part] = reaching[:, 0]
        # The upper third of the candidates with a score, where the line is straight; counts weigh by their own number.
        is_fitted = (reaching >= 1) & (reaching <= reaching[:, :1] / 3) & (x > 0)
        weight = np.where(is_fitted, np.minimum(reaching, 50.0), 0.0)
        y = np.log(np.maximum(reaching, 1.0))
        weighted_x = weight * x
        sum_w[part] = weight.sum(axis=1)
        safe = np.maximum(sum_w[part], 1e-9)
        mean_x[part], mean_y[part] = weighted_x.sum(axis=1) / safe, (weight * y).sum(axis=1) / safe
        spread_x[part] = (weighted_x * x).sum(axis=1) - mean_x[part] ** 2 * sum_w[part]
        spread_xy[part] = (weight * y * x).sum(axis=1) - mean_x[part] * mean_y[part] * sum_w[part]
    common = spread_xy[is_first].sum() / max(spread_x[is_first].sum(), 1e-9)
    prior = 50.0 * hits.histogram_width**exponent
    slope = np.minimum((spread_xy + common * prior) / (spread_x + prior), 0.2 * common)
    reached = np.maximum(score, 0.0) ** exponent
    return np.where(sum_w > 0, mean_y + slope * (reached - mean_x), np.log(total + 1.0) + common * reached) / np.log(10.0)
