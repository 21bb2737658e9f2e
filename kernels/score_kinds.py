"""Descriptions of the scores of spectra against peptides; everything that depends on the score is derived from these.

A description contains the score's compiled function and GPU kernel, the properties of a spectrum that it needs in addition to matched
peaks, the settings of its chance distribution, and its names in parameters, tables, files of other formats and the methods paragraph.
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
    """Terms of a score that a fragment-ion index can sum: contributions of the matched N- and C-terminal ions and of the dot product.

    `of_count` returns the contribution of 0, 1, 2, … matches, `of_dot` the contribution of a dot product.
    """

    of_count: Callable[[Floats], Floats]
    of_dot: Callable[[Floats], Floats]


class Order(NamedTuple):
    """Position of a score in lists; lower numbers come first, and the default is the end.

    Attributes
    ----------
    files : int
        Position in files of tables and of other formats.
    window : int
        Position in the window's tables.
    features : int
        Position among the features of rescoring.
    """

    files: int = 100
    window: int = 100
    features: int = 100


class ScoreKind(NamedTuple):
    """Description of a score.

    Attributes
    ----------
    name : str
        Value of the parameter that selects the score.
    title, formula : str
        Title and description of the score's column.
    on_processor, on_gpu : str
        Function in `proteoscope.kernels.cpu.scores`, which is called with `Matched` and the settings; kernel in ``sparse_search.cu``.
    histogram_width : float
        Bin width of the histogram of candidates' scores. The histogram must cover the scores of good matches.
    method, citation : str
        Name of the score in the methods paragraph, and publication of the score.
    tail_root : str
        Name of the search parameter r if the r-th root of the score has an exponential tail; '' if the score itself has such a tail. See
        `proteoscope.engine.matches.scoring`.
    needs_roots, needs_correlation : bool
        True if the score needs roots of the peak weights, or XCorr's vector, in addition to the matches.
    dense_on_gpu : str
        Kernel in ``dense_search.cu``, or '' if there is none.
    in_index : IndexTerms or None
        Terms for a fragment-ion index; None if an index cannot sum the score.
    width, decimals : int
        Width of the score's column in characters, and number of decimals.
    term : (str, str) or None
        Accession and name in the PSI-MS vocabulary, if it has one.
    exported_as, in_pepxml : str
        Name in files of other formats if the vocabulary has no term (default: the title), and in pepXML (default: the name of the column).
    is_main : bool
        True for main scores. Their columns come first in text tables (other programs rely on this order), and they are always Percolator
        features.
    is_optional : bool
        True if tables may lack the column, such as tables that were written before the score was added.
    order : Order
        Position of the score in lists.
    """

    name: str
    title: str
    formula: str
    on_processor: str
    on_gpu: str
    histogram_width: float
    method: str
    citation: str
    tail_root: str = ""
    needs_roots: bool = False
    needs_correlation: bool = False
    dense_on_gpu: str = ""
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
        """Name of the score's column in tables."""
        return self.name.replace("-", "_")


def _nothing(values: Floats) -> Floats:
    return values * 0.0


def _itself(values: Floats) -> Floats:
    return values


def _logarithms_of_factorials(counts: Floats) -> Floats:
    import numpy as np  # imported here: parameters with names of scores are listed without loading NumPy

    return np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])


def _logarithm_of_hundredfold(dot: Floats) -> Floats:
    import numpy as np  # parameters are described without loading NumPy

    return np.log(1.0 + 100.0 * dot)


SCORE_KINDS: tuple[ScoreKind, ...] = (
    ScoreKind(
        "spectral-dot-product",
        "SDP",
        "Spectral dot product of the measured and the theoretical spectrum",
        "spectral_dot_product",
        "search_by_dot_product",
        0.1,
        "the spectral dot product",
        "Li Y, Chi H, Xia L, Chu X. BMC Bioinformatics 2014, 15:121.",
        dense_on_gpu="search_tile_by_dot_product",
        in_index=IndexTerms(_nothing, _itself),
        exported_as="spectral dot product",
        is_main=True,
        is_optional=False,
        order=Order(0, 2, 3),
    ),
    ScoreKind(
        "ksdp",
        "KSDP",
        "Kernel spectral dot product: spectral dot product with more weight for consecutive fragment ions",
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
        dense_on_gpu="search_tile_by_hyperscore",
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
        "Cross-correlation of the measured with the theoretical spectrum, as in SEQUEST",
        "cross_correlation",
        "search_by_cross_correlation",
        0.05,
        "the fast form of SEQUEST's cross-correlation",
        "Eng JK et al. J Proteome Res 2008, 7:4598.",
        needs_correlation=True,
        in_pepxml="cross_correlation",  # not xcorr: readers would use it as the ranking score, as in Comet's files
        is_optional=False,
        order=Order(2, 1, 1),
    ),
)
"""All scores, in the order in which kernels number them."""

SDP, KSDP, HYPERSCORE, XCORR = 0, 1, 2, 3


def ordered_scores(order: Literal["files", "window", "features"]) -> list[ScoreKind]:
    """Return all scores, sorted by a list of `Order`."""
    return sorted(SCORE_KINDS, key=lambda kind: getattr(kind.order, order))


def parted_scores(order: Literal["files", "window", "features"]) -> tuple[list[ScoreKind], list[ScoreKind]]:
    """Return two lists: the scores with a term in the PSI-MS vocabulary, and all other scores, both sorted by a field of `Order`."""
    scores = ordered_scores(order)
    return [kind for kind in scores if kind.term], [kind for kind in scores if not kind.term]


def score_kind(name: str) -> tuple[int, ScoreKind]:
    """Return the index in `SCORE_KINDS` of the score with a name, and the score.

    Raises
    ------
    KeyError
        If no score has the name.
    """
    return {kind.name: (code, kind) for code, kind in enumerate(SCORE_KINDS)}[name]
