"""Descriptions of the scores of spectra against peptides, one for each, from which all else that distinguishes scores is made.

A description has the score's compiled function and its GPU kernel, the properties of a spectrum that it needs in addition to the matched
peaks, what fits its counts by chance, and how parameters, tables, files of other formats and the methods paragraph report it.
docs/developers/extending.md explains how to add a score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "HYPERSCORE",
    "KSDP",
    "SCORE_KINDS",
    "SDP",
    "XCORR",
    "IndexTerms",
    "Order",
    "ScoreKind",
    "ordered_scores",
    "parted_scores",
    "score_kind",
]


class IndexTerms(NamedTuple):
    """A score that a fragment-ion index can sum: contributions of the matches from either end, and of the dot product.

    `of_count`: of 0, 1, 2, … matches. `of_dot`: of dot products.
    """

    of_count: Callable[[Floats], Floats]
    of_dot: Callable[[Floats], Floats]


class Order(NamedTuple):
    """Position of a score in lists, lower numbers first; the default is last.

    Attributes
    ----------
    files : int
        In files of tables and of other formats.
    window : int
        In the window's tables.
    features : int
        Among the features that rescoring learns from.
    """

    files: int = 100
    window: int = 100
    features: int = 100


class ScoreKind(NamedTuple):
    """A score.

    Attributes
    ----------
    name : str
        Value of the parameter that chooses the score.
    title, formula : str
        Title and meaning of its column.
    on_processor, on_card : str
        Its function in `proteoscope.kernels.cpu.scores`, of `Matched` and the settings, and its kernel in ``sparse_search.cu``.
    histogram_width : float
        Width of a bin of the candidates' scores, for the count by chance: the histogram spans the scores of good matches.
    method, citation : str
        The score as the methods paragraph calls it, and its publication.
    tail_root : str
        Setting whose root of the score has a straight tail, where the score itself has a long one; see
        `proteoscope.engine.matches.scoring`.
    needs_roots, needs_correlation : bool
        Properties of the peaks that it needs in addition to the matches: roots of their weights, or the spectrum minus its surroundings.
    dense_on_card : str
        Its kernel in ``dense_search.cu``, or ''.
    in_index : IndexTerms or None
        How a fragment-ion index adds it up.
    width, decimals : int
        Of its column, in characters.
    term : (str, str) or None
        Accession and name in the PSI-MS vocabulary.
    exported_as, in_pepxml : str
        Its name in files of other formats, where the vocabulary has no term, and in pepXML; '' for the title and the column's name.
    is_main : bool
        True if its column is one of the first in tables as text, whose order others rely on, and a feature for Percolator also where
        a run has no features.
    is_optional : bool
        True if tables may lack its column, as those that were written before the score was added.
    order : Order
        Its place among the scores.
    """

    name: str
    title: str
    formula: str
    on_processor: str
    on_card: str
    histogram_width: float
    method: str
    citation: str
    tail_root: str = ""
    needs_roots: bool = False
    needs_correlation: bool = False
    dense_on_card: str = ""
    in_index: IndexTerms | None = None
    width: int = 8
    decimals: int = 3
    term: tuple[str, str] | None = None
    exported_as: str = ""
    in_pepxml: str = ""
    is_main: bool = False
    is_optional: bool = True
    order: Order = Order()

    @property
    def column(self) -> str:
        """Name of its column in tables."""
        return self.name.replace("-", "_")


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
        "the spectral dot product",
        "Li Y, Chi H, Xia L, Chu X. BMC Bioinformatics 2014, 15:121.",
        dense_on_card="search_tile_by_dot_product",
        in_index=IndexTerms(_nothing, _itself),
        exported_as="spectral dot product",
        is_main=True,
        is_optional=False,
        order=Order(0, 2, 3),
    ),
    ScoreKind(
        "ksdp",
        "KSDP",
        "Kernel spectral dot product",
        "kernel_spectral_dot_product",
        "search_by_kernel_dot_product",
        0.5,
        "the kernel spectral dot product",
        "Fu Y et al. Bioinformatics 2004, 20:1948.",
        tail_root="ksdp_power",
        needs_roots=True,
        is_optional=False,
        order=Order(3, 3, 2),
    ),
    ScoreKind(
        "hyperscore",
        "Hyperscore",
        "ln(matched N-terminal ions!) + ln(matched C-terminal ions!) + ln(1 + 100 × SDP), with a spectrum of unit length; the scale is this"
        " program's own, neither X!Tandem's nor Sage's",
        "hyperscore_of_match",
        "search_by_hyperscore",
        0.5,
        "a hyperscore after X!Tandem's",
        "Craig R, Beavis RC. TANDEM. Bioinformatics 2004, 20:1466.",
        dense_on_card="search_tile_by_hyperscore",
        in_index=IndexTerms(_logarithms_of_factorials, _logarithm_of_hundredfold),
        width=9,
        decimals=2,
        term=("MS:1001331", "X!Tandem:hyperscore"),
        is_main=True,
        is_optional=False,
        order=Order(1, 0, 0),
    ),
    ScoreKind(
        "xcorr",
        "XCorr",
        "Cross-correlation",
        "cross_correlation",
        "search_by_cross_correlation",
        0.05,
        "the fast form of SEQUEST's cross-correlation",
        "Eng JK et al. J Proteome Res 2008, 7:4598.",
        needs_correlation=True,
        in_pepxml="cross_correlation",  # readers take xcorr for the score that decides, as in Comet's files
        is_optional=False,
        order=Order(2, 1, 1),
    ),
)
"""All scores, in the order by which kernels number them."""

SDP, KSDP, HYPERSCORE, XCORR = 0, 1, 2, 3


def ordered_scores(order: Literal["files", "window", "features"]) -> list[ScoreKind]:
    """Return all scores in the order of some list, see `Order`."""
    return sorted(SCORE_KINDS, key=lambda kind: getattr(kind.order, order))


def parted_scores(order: Literal["files", "window", "features"]) -> tuple[list[ScoreKind], list[ScoreKind]]:
    """Return the scores that the PSI-MS vocabulary has a term for, and the others, each in the order of some list."""
    scores = ordered_scores(order)
    return [kind for kind in scores if kind.term], [kind for kind in scores if not kind.term]


def score_kind(name: str) -> tuple[int, ScoreKind]:
    """Return a score's index in `SCORE_KINDS`, and the score.

    Raises
    ------
    KeyError
        There is none.
    """
    return {kind.name: (code, kind) for code, kind in enumerate(SCORE_KINDS)}[name]
