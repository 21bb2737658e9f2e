"""Arrays of the kernels for spectra, grouped by content, for CPU and CUDA.

A tolerance is a pair (`*_absolute` in dalton or thomson, `*_relative` as a fraction): the half width at m is absolute + relative * m, so
that ppm and Da need no branch in the kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CORRELATION_UNITS",
    "C_TERMINAL",
    "ISOTOPE_BITS",
    "KEYS_OF_DALTON",
    "PEPTIDOFORMS_OF_CHUNK",
    "BestArrays",
    "FragmentIndexArrays",
    "HitArrays",
    "IndexHits",
    "MatchArrays",
    "ModificationArrays",
    "PeakArrays",
    "PeptideArrays",
    "PeptidoformCode",
    "QueryArrays",
    "ScoreTables",
    "ScoringSettings",
    "SegmentArrays",
    "SpectrumArrays",
]

PEPTIDOFORMS_OF_CHUNK = 1 << 15  # their counters (four bytes each) fit into the second-level cache of a core
C_TERMINAL = 1 << 15  # the bit of a posting that identifies the end from which the ion counts
KEYS_OF_DALTON = 1 << 19  # a key is a mass in units of 2^-19 Da (2e-6 Da), so that 32 bits reach 8,192 Da
ISOTOPE_BITS = 4
CORRELATION_UNITS = 65536.0  # per height of one: XCorr sums integers, which is exact in any order


class PeakArrays(NamedTuple):
    """Peaks of spectra as CSR: `mz` in thomson, ascending in each spectrum; `intensity` positive, float32 as read, float64 for means."""

    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.floating]


class SpectrumArrays(NamedTuple):
    """Preprocessed spectra as CSR; m/z ascend in each spectrum.

    `weight` is summed by the dot products, `correlation_weight` by XCorr (Comet's normalisation in ten windows; at most 50, rounded
    to `CORRELATION_UNITS`).
    """

    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    weight: NDArray[np.float32]
    correlation_weight: NDArray[np.float32]


class QueryArrays(NamedTuple):
    """Queries, which are spectra with one assumed charge each, sorted by mass."""

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    mass: NDArray[np.float64]


def _nothing(kind: type[np.generic], *shape: int) -> NDArray:
    """Return an empty read-only array. Arrays mapped from files are read-only too, so that kernels are compiled only once."""
    empty = np.zeros(shape, kind)
    empty.flags.writeable = False
    return empty


class PeptideArrays(NamedTuple):
    """Distinct peptides sorted by mass (dalton, including fixed modifications), and the residues to which they refer.

    `letters` has bit k set if the k-th capital occurs. This suffices to exclude most peptides that cannot carry a modification.

    A peptide may have known modifications at its residues, which its mass includes: `known` (n,) uint32 is its row of `known_site` and
    `known_modification` (k, s) uint8, or 0; it is empty if no peptide has any. A row lists at most s sites (0 N-terminus, 1..length,
    length + 1 C-terminus) and modifications, sorted by modification and site, then 255; row 0 is all 255. A peptide has at most s
    modifications in total.
    """

    mass: NDArray[np.float64]
    position: NDArray[np.uint32]
    length: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    letters: NDArray[np.uint32]
    residues: NDArray[np.uint8]
    residue_mass: NDArray[np.float64]
    n_term_mass: float
    c_term_mass: float
    known: NDArray[np.uint32] = _nothing(np.uint32, 0)
    known_site: NDArray[np.uint8] = _nothing(np.uint8, 0, 0)
    known_modification: NDArray[np.uint8] = _nothing(np.uint8, 0, 0)


class ModificationArrays(NamedTuple):
    """Variable modifications and their combinations, and modifications known at residues.

    Attributes
    ----------
    mass
        (m,) float64, mass (Da) of the v variable modifications, then of the known modifications.
    residue_mask
        (v,) uint32, allowed residues: bit k for capital k; all ones for any residue.
    place
        (m,) int64, allowed position: -1 anywhere except the last residue of a peptide (unless it is the last of a protein), 0 anywhere,
        1 peptide N-terminus, 2 peptide C-terminus, 3 protein N-terminus, 4 protein C-terminus.
    combination_mass, combination_count
        (c,) float64 (Da) and (c, v) int64: mass and counts of the combinations of variable modifications, the empty one first.
    maximum_forms
        Maximum number of site arrangements per peptide and combination.
    """

    mass: NDArray[np.float64]
    residue_mask: NDArray[np.uint32]
    place: NDArray[np.int64]
    combination_mass: NDArray[np.float64]
    combination_count: NDArray[np.int64]
    maximum_forms: int


class ScoringSettings(NamedTuple):
    """Tolerances, ion series and score.

    `isotope_errors` are in descending order; each is tried from its `isotope_minimum_mass` (dalton).
    `n_term_series` and `c_term_series`: float64, added to the sum of residue masses from that end for the singly charged m/z.
    `fragment_relative` is below 1. `maximum_mz`: thomson, at least the smaller of the largest peak m/z and the largest ion m/z.
    `bin_width`: thomson, bins of the bit table of peaks. `correlation_bin_width`, `correlation_bin_offset`: bins of XCorr.
    """

    precursor_absolute: float
    precursor_relative: float
    isotope_errors: NDArray[np.int64]
    isotope_minimum_mass: NDArray[np.float64]
    isotope_spacing: float
    fragment_absolute: float
    fragment_relative: float
    n_term_series: NDArray[np.float64]
    c_term_series: NDArray[np.float64]
    maximum_fragment_charge: int
    bin_width: float
    maximum_mz: float
    correlation_bin_width: float
    correlation_bin_offset: float
    ksdp_window: int
    ksdp_power: float
    score: int
    minimum_matched_ions: int


class HitArrays(NamedTuple):
    """Best candidates of each query, best first, and histogram of the scores of all candidates.

    Attributes
    ----------
    score
        (q, k) float32.
    peptide
        (q, k) int64, index of the peptide, or -1.
    isotope_error
        (q, k) int8.
    site, modification
        (q, k, s) uint8: sites of variable modifications (0 N-terminus, 1..L, L + 1 C-terminus) and their indices; 255 for unused slots.
    n_candidates
        (q,) int64, number of candidates.
    histogram, histogram_width
        (q, b) int32, number of candidates by score, and the bin width.
    """

    score: NDArray[np.float32]
    peptide: NDArray[np.int64]
    isotope_error: NDArray[np.int8]
    site: NDArray[np.uint8]
    modification: NDArray[np.uint8]
    n_candidates: NDArray[np.int64]
    histogram: NDArray[np.int32]
    histogram_width: float


class MatchArrays(NamedTuple):
    """Given matches (n): a spectrum with an assumed charge, and a peptidoform.

    `spectrum`, `charge`, `peptide` (n,) int64; `site` and `modification` (n, s) uint8, as in `HitArrays`.
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    peptide: NDArray[np.int64]
    site: NDArray[np.uint8]
    modification: NDArray[np.uint8]


class PeptidoformCode(NamedTuple):
    """Encoding of candidates as numbers: combination, isotope error, peptide and arrangement, from high to low bits.

    A candidate's number is `((combination << ISOTOPE_BITS | e) << peptide_bits | peptide) << arrangement_bits | arrangement`, with `e` the
    row of `ScoringSettings.isotope_errors`; a peptidoform's number has `e` = 0. Numbers are in the order in which the exhaustive search
    scores candidates. `isotope_shift` = peptide_bits + arrangement_bits is the first bit of `e`.
    """

    peptide_bits: int
    arrangement_bits: int
    isotope_shift: int


class FragmentIndexArrays(NamedTuple):
    """Fragment ions of all peptidoforms (peptides with an arrangement of variable modifications) in a mass range.

    Peptidoforms are sorted by mass, in chunks of `PEPTIDOFORMS_OF_CHUNK`. The postings (ion and peptidoform) of chunk c are
    `chunk_start[c]:chunk_start[c + 1]`, ordered by the ions' 32-bit keys: the neutral fragment mass (m/z of the singly charged ion minus a
    proton) in units of 1 / `KEYS_OF_DALTON`, rounded down.

    Attributes
    ----------
    form_mass
        (f,) float64, mass (Da), ascending.
    form_code
        (f,) int64, numbers of the peptidoforms (`PeptidoformCode`).
    chunk_start
        (c + 1,) int64, start of each chunk's postings.
    bin_start
        (c, b + 1) uint32, first posting (relative to the chunk's first) whose key >> `bin_shift` (at most 16) is not below the bin.
    key
        (p,) uint16, low 16 bits of the key; the bin implies the other bits.
    form
        (p,) uint16, index of the peptidoform in its chunk, with the bit `C_TERMINAL` for C-terminal ions.
    """

    form_mass: NDArray[np.float64]
    form_code: NDArray[np.int64]
    chunk_start: NDArray[np.int64]
    bin_start: NDArray[np.uint32]
    bin_shift: int
    key: NDArray[np.uint16]
    form: NDArray[np.uint16]


class SegmentArrays(NamedTuple):
    """Key ranges to look up in a fragment index, disjoint for each fragment charge, with the weights of peaks.

    Attributes
    ----------
    offsets
        (q + 1,) int64, start of each query's ranges.
    low, high
        (n,) uint32, half-open ranges of 32-bit keys.
    weight
        (n,) uint16, weight in units of `ScoreTables.weight_scale`.
    """

    offsets: NDArray[np.int64]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    weight: NDArray[np.uint16]


class ScoreTables(NamedTuple):
    """Tables that convert the counter ``dot << 16 | c << 8 | n`` of a peptidoform to its float32 score.

    The score is ``(of_count[n] + of_count[c]) + of_dot[dot]``. n and c are the numbers of matched N- and C-terminal ions; dot is the sum of
    segment weights, with `weight_scale` units per unit of weight. `of_count` (256,) float32 (zeros for the plain dot product), `of_dot`
    (d,) float32 for every possible dot product.
    """

    of_count: NDArray[np.float32]
    of_dot: NDArray[np.float32]
    weight_scale: float


class BestArrays(NamedTuple):
    """Best candidates of each query by the scores of `ScoreTables`: by descending score, then by ascending number.

    `score` (q, k) float32, or -inf; `code` (q, k) int64, numbers of candidates (`PeptidoformCode`), or -1.
    """

    score: NDArray[np.float32]
    code: NDArray[np.int64]


class IndexHits(NamedTuple):
    """Accumulated results of a search in a fragment index: best candidates of each query, and histogram of all scores.

    `histogram` (q, b) int32 counts candidates by score, with bins of `histogram_width`; `n_candidates` (q,) int64.
    """

    best: BestArrays
    histogram: NDArray[np.int32]
    histogram_width: float
    n_candidates: NDArray[np.int64]
