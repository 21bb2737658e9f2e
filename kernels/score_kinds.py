"""The scores of spectra against peptides: one line for each, from which all else that tells scores apart is made.

What ranks candidates is named here with its formula, its compiled function for the processor and its kernel for a card, what it needs to
know of a spectrum besides the matched peaks, and what fits its counts by chance. CONTRIBUTING says how to add one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["HYPERSCORE", "KSDP", "SCORE_KINDS", "SDP", "XCORR", "IndexTerms", "ScoreKind", "score_kind"]


class IndexTerms(NamedTuple):
    """A score that a fragment-ion index can add up: what the matches from either end are worth, and what the dot product is.

    `of_count`: of 0, 1, 2, … matches. `of_dot`: of dot products.
    """

    of_count: Callable[[Floats], Floats]
    of_dot: Callable[[Floats], Floats]


class ScoreKind(NamedTuple):
    """A score.

    Attributes
    ----------
    name : of the parameter's value. title : as a table's head has it. formula : what it is, for people.
    on_processor : its function in `proteoscope.kernels.cpu.scores`, of `Matched` and the settings. on_card : its kernel in
        ``sparse_search.cu``.
    histogram_width : of a bin of the candidates' scores, for the count by chance: the histogram spans what a good match reaches.
    tail_root : the setting of which the score's root has a straight tail, where the score itself has a long one; see
        `proteoscope.engine.matches.scoring`.
    needs_roots, needs_correlation : of the peaks, besides which of them match: the roots of their weights, or the spectrum less its
        surroundings.
    dense_on_card : its kernel in ``dense_search.cu``, where it has one. in_index : where a fragment-ion index can add it up.
    """

    name: str
    title: str
    formula: str
    on_processor: str
    on_card: str
    histogram_width: float
    tail_root: str = ""
    needs_roots: bool = False
    needs_correlation: bool = False
    dense_on_card: str = ""
    in_index: IndexTerms | None = None


def _nothing(values: Floats) -> Floats:
    return values * 0.0


def _itself(values: Floats) -> Floats:
    return values


def _logarithms_of_factorials(counts: Floats) -> Floats:
    import numpy as np  # here: parameters, which name scores, are listed without it

    return np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])


def _logarithm_of_hundredfold(dot: Floats) -> Floats:
    import numpy as np  # parameters are described without loading NumPy

    return np.log(1.0 + 100.0 * dot)


SCORE_KINDS: tuple[ScoreKind, ...] = (
    ScoreKind(
        "spectral-dot-product",
        "SDP",
        "Spectral dot product",
        "spectral_dot_product",
        "search_by_dot_product",
        0.1,
        dense_on_card="search_tile_by_dot_product",
        in_index=IndexTerms(_nothing, _itself),
    ),
    ScoreKind(
        "ksdp",
        "KSDP",
        "Kernel spectral dot product",
        "kernel_spectral_dot_product",
        "search_by_kernel_dot_product",
        0.5,
        tail_root="ksdp_power",
        needs_roots=True,
    ),
    ScoreKind(
        "hyperscore",
        "Hyperscore",
        "ln(matched N-terminal ions!) + ln(matched C-terminal ions!) + ln(1 + 100 × SDP), with a spectrum of unit length; the scale is this"
        " program's own, neither X!Tandem's nor Sage's",
        "hyperscore_of_match",
        "search_by_hyperscore",
        0.5,
        dense_on_card="search_tile_by_hyperscore",
        in_index=IndexTerms(_logarithms_of_factorials, _logarithm_of_hundredfold),
    ),
    ScoreKind(
        "xcorr",
        "XCorr",
        "Cross-correlation",
        "cross_correlation",
        "search_by_cross_correlation",
        0.05,
        needs_correlation=True,
    ),
)
"""All scores; kernels know each by its place here."""

SDP, KSDP, HYPERSCORE, XCORR = 0, 1, 2, 3


def score_kind(name: str) -> tuple[int, ScoreKind]:
    """The score of a name, and its place in `SCORE_KINDS`.

    Raises
    ------
    KeyError : there is none.
    """
    return {one.name: (code, one) for code, one in enumerate(SCORE_KINDS)}[name]
