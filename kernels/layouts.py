"""The arrays that the spectrum kernels take, bundled by what they describe. The same for the processor and for CUDA.

A tolerance is a pair (`*_absolute` in dalton or thomson, `*_relative` as a fraction): the half width at m is absolute + relative * m, so
that
ppm and Da need no branch in the kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HYPERSCORE",
    "KSDP",
    "SDP",
    "XCORR",
    "HitArrays",
    "ModificationArrays",
    "PeptideArrays",
    "QueryArrays",
    "ScoringSettings",
    "SpectrumArrays",
]

SDP, KSDP, HYPERSCORE, XCORR = 0, 1, 2, 3


class SpectrumArrays(NamedTuple):
    """Preprocessed spectra: CSR peaks with m/z ascending.

    `weight` is what the dot products sum, `correlation_weight` what XCorr sums (Comet's normalisation in ten windows).
    """

    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    weight: NDArray[np.float32]
    correlation_weight: NDArray[np.float32]


class QueryArrays(NamedTuple):
    """What is searched: a spectrum with one assumed charge, in order of mass."""

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    mass: NDArray[np.float64]


class PeptideArrays(NamedTuple):
    """The dictionary of distinct peptides in order of mass (dalton, fixed modifications included), and the residues it points into.

    `letters` has bit k set where letter k occurs: most peptides that cannot carry a modification are known by it alone.
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


class ModificationArrays(NamedTuple):
    """Variable modifications and their combinations.

    `mass` (m,) float64 Da; `residue_mask` (m,) uint32 with bit k for letter k (all ones: any residue); `place` (m,) int64: 0 anywhere, 1
    peptide
    N-terminus, 2 peptide C-terminus, 3 protein N-terminus, 4 protein C-terminus. `combination_mass` (c,) and `combination_count` (c, m)
    int64:
    the multisets of modifications that a peptide may carry, the empty one first. `max_forms`: site arrangements tried for one peptide and
    combination.
    """

    mass: NDArray[np.float64]
    residue_mask: NDArray[np.uint32]
    place: NDArray[np.int64]
    combination_mass: NDArray[np.float64]
    combination_count: NDArray[np.int64]
    max_forms: int


class ScoringSettings(NamedTuple):
    """Tolerances, ion series and the score.

    `isotope_errors` come largest first; each is tried from its `isotope_minimum_mass` (dalton) on.
    `n_term_series` and `c_term_series`: float64, what is added to the sum of residue masses from that end to give the singly charged m/z.
    `bin_width`: thomson, of the bit table of peaks. `correlation_bin_width`, `correlation_bin_offset`: of XCorr.
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
    max_fragment_charge: int
    bin_width: float
    max_mz: float
    correlation_bin_width: float
    correlation_bin_offset: float
    ksdp_window: int
    ksdp_power: float
    score: int
    min_matched_ions: int


class HitArrays(NamedTuple):
    """The best candidates of each query, best first, and what the other candidates scored.

    `score` (q, k) float32; `peptide` (q, k) int64, -1 where there is none; `isotope_error` (q, k) int8; `site` and `modification` (q, k, s)
    uint8: places of the variable modifications (0 N-terminus, 1..L, L + 1 C-terminus) and which (255: none). `n_candidates` (q,) int64;
    `histogram` (q, b) int32 counts candidates by score, `histogram_width` a bin.
    """

    score: NDArray[np.float32]
    peptide: NDArray[np.int64]
    isotope_error: NDArray[np.int8]
    site: NDArray[np.uint8]
    modification: NDArray[np.uint8]
    n_candidates: NDArray[np.int64]
    histogram: NDArray[np.int32]
    histogram_width: float
