"""Synthetic spectra and peptides for measuring the speed of devices."""

from dataclasses import dataclass

import numpy as np

from proteoscope.engine.arrays import read_only
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS, WATER_MASS
from proteoscope.engine.execution.workload import Sample
from proteoscope.engine.matches import fragment_scoring, spectrum_scoring
from proteoscope.engine.spectra.columns import SpectrumSeries
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels import counts
from proteoscope.kernels.cpu.peptidoforms import list_peptidoforms
from proteoscope.kernels.cpu.segments import empty_best, precursor_windows
from proteoscope.kernels.layouts import ModificationArrays, PeptideArrays, QueryArrays, ScoringSettings, SpectrumArrays
from proteoscope.kernels.score_kinds import HYPERSCORE

__all__ = ["RESIDUES", "RESIDUE_MASSES", "SyntheticSearch", "sample_fragments", "sample_spectra", "synthetic_search"]

_QUERIES, _PEPTIDES = 20_000, 250_000
_QUERIES_OF_INDEX, _PEPTIDES_OF_INDEX, _WINDOW = 4000, 60_000, 100.0
_IONS, _NOISE = 24, 60  # peaks per spectrum
_TEXT, _RESIDUES_OF_PEPTIDE = 1 << 20, 4
_HITS, _SLOTS, _ADDITIONAL_HITS = 5, 1, 3
_BINS = 96
RESIDUES = "GASPVTCLINDQKEMHFRYW"
"""Residues of synthetic peptides."""
RESIDUE_MASSES = np.array(
    [
        57.02146,
        71.03711,
        87.03203,
        97.05276,
        99.06841,
        101.04768,
        103.00919,
        113.08406,
        113.08406,
        114.04293,
        115.02694,
        128.05858,
        128.09496,
        129.04259,
        131.04049,
        137.05891,
        147.06841,
        156.10111,
        163.06333,
        186.07931,
    ]
)
"""Mass of each residue in `RESIDUES`, Da."""
_ANYWHERE = 0


@dataclass(frozen=True)
class SyntheticSearch:
    """Synthetic search; `candidates` (q,) is the number of candidates of each query."""

    spectra: SpectrumArrays
    queries: QueryArrays
    peptides: PeptideArrays
    modifications: ModificationArrays
    settings: ScoringSettings
    candidates: np.ndarray

    @property
    def index(self) -> SpectrumIndex:
        """Spectra and queries as an index."""
        n = len(self.spectra.offsets) - 1
        return SpectrumIndex(self.spectra, self.queries, len(self.queries.mass), SpectrumSeries.for_spectra("by", np.zeros(n, np.uint8)))


def synthetic_search(n_queries: int, n_peptides: int, precursor: tuple[float, float], seed: int) -> SyntheticSearch:
    """Return spectra that contain fragment ions of peptides and noise.

    The search has variable oxidation of M, a fragment tolerance of 20 ppm, and the hyperscore.

    Parameters
    ----------
    n_queries, n_peptides : int
        Number of queries and peptides.
    precursor : tuple of float
        Absolute (Da) and relative precursor tolerance, which are added.
    seed : int
        Random seed.
    """
    rng = np.random.default_rng(seed)
    symbols = np.frombuffer(RESIDUES.encode(), np.uint8)
    residue_mass = np.full(26, np.nan)
    residue_mass[symbols - 65] = RESIDUE_MASSES
    # Peptides are overlapping sections of one array of residues, like peptides of proteins.
    drawn = rng.integers(0, len(symbols), min(_TEXT, _RESIDUES_OF_PEPTIDE * n_peptides), np.uint8)
    prefix = np.concatenate(([0.0], np.cumsum(RESIDUE_MASSES[drawn])))
    lengths = rng.integers(7, 30, n_peptides)
    starts = rng.integers(0, len(drawn) - 30, n_peptides)
    mass = prefix[starts + lengths] - prefix[starts] + WATER_MASS
    present = _unite_bits((np.uint32(1) << (symbols.astype(np.uint32) - 65))[drawn], starts, lengths)
    order = np.argsort(mass)
    # Read-only, like arrays of a mapped file, so that kernels compiled for a search are not compiled again.
    peptides = PeptideArrays(
        read_only(mass[order]),
        read_only(starts[order].astype(np.uint32)),
        read_only(lengths[order].astype(np.uint8)),
        read_only(np.zeros(n_peptides, np.uint8)),
        read_only(present[order]),
        read_only(symbols[drawn]),
        residue_mass,
        0.0,
        0.0,
    )
    shift = np.array([15.994915])
    table = np.array([[0], [1]], np.int64)
    modifications = ModificationArrays(
        shift, np.array([1 << ord("M") - 65], np.uint32), np.array([_ANYWHERE], np.int64), table @ shift, table, 20
    )
    chosen = np.sort(rng.integers(0, n_peptides, n_queries))
    begin, length = peptides.position[chosen].astype(np.int64), peptides.length[chosen].astype(np.int64)
    cuts = begin[:, None] + 1 + (rng.random((n_queries, _IONS)) * (length[:, None] - 1)).astype(np.int64)
    sums = prefix[cuts] - prefix[begin][:, None]
    ions = np.where(rng.random(sums.shape) < 0.5, sums, peptides.mass[chosen][:, None] - sums) + PROTON_MASS
    peaks = np.sort(np.concatenate((ions, rng.uniform(100.0, 1800.0, (n_queries, _NOISE))), axis=1), axis=1)
    heights = rng.uniform(0.01, 1.0, peaks.shape).astype(np.float32)
    heights /= np.sqrt((heights * heights).sum(axis=1, keepdims=True))
    spectra = SpectrumArrays(np.arange(n_queries + 1) * peaks.shape[1], peaks.ravel(), heights.ravel(), 50 * heights.ravel())
    queries = QueryArrays(np.arange(n_queries), rng.integers(2, 4, n_queries), peptides.mass[chosen])
    settings = ScoringSettings(
        *precursor,
        np.array([0]),
        np.array([0.0]),
        ISOTOPE_SPACING,
        0.0,
        20e-6,
        np.array([PROTON_MASS]),
        np.array([WATER_MASS + PROTON_MASS]),
        2,
        0.02,
        float(spectra.mz.max()) + 2,
        0.02,
        0.0,
        5,
        3.0,
        HYPERSCORE,
        2,
    )
    reach = precursor[0] + precursor[1] * queries.mass
    ends = [np.searchsorted(peptides.mass, queries.mass - offset + sign * reach) for offset in (0.0, shift[0]) for sign in (-1, 1)]
    return SyntheticSearch(spectra, queries, peptides, modifications, settings, ends[1] - ends[0] + ends[3] - ends[2])


def _unite_bits(bits: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the bitwise or of the residue bits of each peptide, (n,) uint32, computed from ranges of 2, 4, 8, … consecutive residues."""
    result, width = np.zeros(len(starts), np.uint32), 1
    while width <= lengths.max():
        fits = (lengths >= width) & (lengths < 2 * width)
        result[fits] = bits[starts[fits]] | bits[starts[fits] + lengths[fits] - width]
        bits, width = bits[:-width] | bits[width:], 2 * width
    return result


def sample_spectra(size: float, seed: int) -> Sample:
    """Return a workload of queries with precursor windows of ±0.1 Da, whose candidates are counted and then scored."""
    n = max(20, round(_QUERIES * size**0.75))
    made = synthetic_search(n, max(2000, round(_PEPTIDES * size**0.5)), (0.1, 0.0), seed)
    workload = spectrum_scoring.create_workload(
        made.index, made.peptides, made.modifications, made.settings, hits_per_query=_HITS, slots=_SLOTS, histogram_width=0.5
    )
    cost = counts.scoring_costs(made.candidates, made.queries.mass, is_modified=True)
    return Sample(workload, [{"phase": "count"}, {"phase": "search", "cost": cost}])


def sample_fragments(size: float, seed: int) -> Sample:
    """Return a workload of queries with precursor windows of ±100 Da for a fragment index."""
    n = max(8, round(_QUERIES_OF_INDEX * size**0.75))
    made = synthetic_search(n, max(1000, round(_PEPTIDES_OF_INDEX * size**0.25)), (_WINDOW, 0.0), seed)
    mass, number = list_peptidoforms(made.peptides, made.modifications, 0.0, 1e6)
    workload = fragment_scoring.create_workload(
        made.index,
        made.peptides,
        made.modifications,
        made.settings,
        mass,
        number,
        histogram_width=0.5,
        index_bytes=1 << 28,
        bytes_of_form=fragment_scoring.BYTES_OF_FORM + fragment_scoring.BYTES_OF_POSTING * 36.0,
        threads=1,
    )
    windows = precursor_windows(mass, made.queries, made.settings, 0, n)
    forms = (windows[..., 1] - windows[..., 0]).sum(axis=1)
    peaks = np.diff(made.spectra.offsets)
    covered = counts.covered_share(peaks, made.queries.mass, made.settings.fragment_absolute, made.settings.fragment_relative)
    ions = 2.0 * (float(made.peptides.length.mean()) - 1.0)
    charges = np.maximum(1, np.minimum(2, made.queries.charge - 1))
    state = {
        **empty_best(n, _HITS + _ADDITIONAL_HITS)._asdict(),
        "histogram": np.zeros((n, _BINS), np.int32),
        "n_candidates": np.zeros(n, np.int64),
        "cost": counts.fragment_index_search(forms, ions, charges, covered),
    }
    return Sample(workload, [state])
