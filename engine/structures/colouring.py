"""Colour schemes for residues in pictures of superposed chains, with legends.

The first chain colours are from Okabe & Ito (2008, jfly.uni-koeln.de/color). Each further colour has the largest distance to all
previous colours and to grey, in CIELAB for normal vision and for vision without red or green cones (Machado, Oliveira & Fernandes, IEEE
Transactions on Visualization and Computer Graphics 15, 2009, 1291-1298). The lightness is 38 to 84, so that colours are visible on white,
grey and black. `SCALE` is a section of viridis (van der Walt & Smith 2015, CC0); the colours of pLDDT are from AlphaFold DB.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.results.counts import counted
from proteoscope.engine.sequences.matrices import SYMBOLS, read_matrix
from proteoscope.engine.structures.chains import COIL, HELIX, STRAND, Chains

__all__ = [
    "CHAIN_COLOURS",
    "EVIDENCE_SCHEMES",
    "FOREIGN",
    "LIT",
    "MAXIMUM_HITS",
    "MODIFIED",
    "NOT_OBSERVED",
    "OBSERVED",
    "SCALE",
    "SCHEMES",
    "UNALIGNED",
    "ChainEvidence",
    "Coloured",
    "ColouredScene",
    "Legend",
    "QuantityScale",
    "Scale",
    "Scheme",
    "ShownChain",
    "coloured",
    "conservation",
    "lit",
    "quantity_colours",
    "scale_colours",
    "scheme_named",
]

Colours = NDArray[np.uint8]
Colour = tuple[int, int, int]

MAXIMUM_HITS = 20
"""Maximum number of hits in a picture, which is the number of distinguishable colours."""
UNALIGNED: Colour = (0xB8, 0xB8, 0xB8)
"""Colour of residues without a value in a colour scheme."""
LIT: Colour = (0xE6, 0x00, 0x9A)
"""Colour of residues that are selected in another view, such as residues of a peptide in a table; no scale or evidence scheme uses it."""


def _colour(text: str) -> Colour:
    return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16)


OBSERVED, MODIFIED, NOT_OBSERVED = map(_colour, ("0072b2", "e750ff", "d5d5d5"))
"""Colours of residues of a protein with peptide evidence, as in the other figures (`proteoscope.engine.views.palette`)."""
FOREIGN: Colour = _colour("808080")
"""Colour of residues of a structure that do not belong to the protein; darker than `NOT_OBSERVED`, which most residues have."""

CHAIN_COLOURS: tuple[Colour, ...] = tuple(
    map(
        _colour,
        (
            "0072b2",
            "e69f00",
            "009e73",
            "cc79a7",
            "d55e00",
            "56b4e9",
            "6900ff",
            "e1d287",
            "4b78ff",
            "b40f2d",
            "2d6969",
            "78a55a",
            "b4d2a5",
            "00f04b",
            "693cc3",
            "1ee1f0",
            "8796ff",
            "b40096",
            "4b693c",
            "c30000",
            "694bff",
        ),
    )
)
"""Colours of the query and of twenty hits."""
SCALE: tuple[Colour, ...] = tuple(map(_colour, ("424086", "33638d", "26828e", "1fa088", "3fbc73", "84d44b", "c8e020")))
"""Colours from low to high values in perceptually equal steps of increasing lightness."""
_CHANGE: tuple[Colour, ...] = tuple(map(_colour, ("0072b2", "6fb4dc", "ececec", "f0a860", "d55e00")))
"""Colours from decrease (first) through no change to increase (last)."""
_RAINBOW: tuple[Colour, ...] = tuple(map(_colour, ("2f4fd0", "1f9fdc", "2db27a", "a3bf3c", "f0b429", "e8702a", "d0312d")))
"""Colours from blue to red, as usual along chains; the steps are not perceptually equal."""
_STATES: dict[int, tuple[Colour, str]] = {
    HELIX: (_colour("d55e00"), "helix"),
    STRAND: (_colour("0072b2"), "strand"),
    COIL: (_colour("a8a8a8"), "coil"),
}
_SAME, _SIMILAR, _OTHER = map(_colour, ("0072b2", "56b4e9", "e69f00"))
_BANDS: tuple[tuple[float, Colour, str], ...] = (
    (90.0, _colour("0053d6"), "pLDDT over 90"),
    (70.0, _colour("65cbf3"), "70 to 90"),
    (50.0, _colour("ffdb13"), "50 to 70"),
    (-np.inf, _colour("ff7d45"), "under 50"),
)
_MAXIMUM_DISTANCE = 8.0
"""Upper end of the scale of distances in Å; aligned residues at larger distances are not considered similar."""
_X = SYMBOLS.index("X")
_B_FACTORS = (5.0, 95.0)  # percentiles at the ends of the scale


@dataclass(frozen=True)
class QuantityScale:
    """Type of peptide quantities, with the range of its colour scale.

    Attributes
    ----------
    title : str
        Name of the quantity.
    low, high : float
        Values at the ends of the scale.
    is_change : bool
        True for changes between conditions, whose scale is symmetric about zero.
    """

    title: str
    low: float
    high: float
    is_change: bool

    @property
    def stops(self) -> tuple[Colour, ...]:
        """Evenly spaced colours of the scale from `low` to `high`."""
        return _CHANGE if self.is_change else SCALE


@dataclass(frozen=True, eq=False)
class ChainEvidence:
    """Peptide evidence for the r residues of a chain.

    Attributes
    ----------
    position : ndarray of int64, shape (r,)
        Index of the aligned residue of the protein, from 0; -1 for none.
    n_psms : ndarray of int64, shape (r,)
        Number of PSMs of peptides that cover the residue.
    is_modified : ndarray of bool, shape (r,)
        True if a peptide has a modification at the residue.
    exposure : ndarray of float64, shape (r,)
        Relative solvent exposure, 0 to 1, NaN if unknown.
    conservation : ndarray of float64, shape (r,)
        Conservation of the aligned residue of the protein among homologues, 0 to 1, NaN if unknown.
    quantity : ndarray of float64, shape (r,), optional
        Mean quantity of the peptides that cover the residue, NaN without peptides; None without quantities.
    quantity_scale : QuantityScale, optional
        Scale of `quantity`.
    """

    position: NDArray[np.int64]
    n_psms: NDArray[np.int64]
    is_modified: NDArray[np.bool_]
    exposure: NDArray[np.float64]
    conservation: NDArray[np.float64]
    quantity: NDArray[np.float64] | None = None
    quantity_scale: QuantityScale | None = None


@dataclass(frozen=True)
class ShownChain:
    """Chain shown in a picture.

    Attributes
    ----------
    chains : Chains
        Columns of this chain only (r residues).
    hit : int
        0 for the query, 1 to 20 for hits.
    pairs : ndarray of int32, shape (k, 2)
        Aligned residues of the query and of this chain, from 0; empty for the query.
    distance : ndarray, shape (k,)
        Cα distance of each aligned pair after superposition, Å.
    is_other_chain : bool
        True for another chain in the file of the query or of a hit; it is not aligned.
    b_factor : ndarray, shape (r,), optional
        B-factors in Å², NaN if missing in the file; None if not read.
    evidence : ChainEvidence, optional
        Peptide evidence.
    """

    chains: Chains
    hit: int = 0
    pairs: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 2), np.int32))
    distance: NDArray[np.floating] = field(default_factory=lambda: np.empty(0))
    is_other_chain: bool = False
    b_factor: NDArray[np.floating] | None = None
    evidence: ChainEvidence | None = None

    def __len__(self) -> int:
        return int(self.chains.offsets[-1])

    @property
    def name(self) -> str:
        """Name of the chain."""
        return self.chains.names[0]


@dataclass(frozen=True)
class ColouredScene:
    """Chains of a picture with the data that colour schemes need.

    Attributes
    ----------
    chains : tuple of ShownChain
        Chains, the query (q residues) first.
    chosen : int
        Number of the selected hit: schemes that colour the query by comparison with one hit use this hit.
    conservation : ndarray, shape (q,), optional
        Conservation of the query's residues; see the function `conservation`.
    n_hits : int
        Number of hits from which the conservation was computed.
    """

    chains: tuple[ShownChain, ...]
    chosen: int = 1
    conservation: NDArray[np.floating] | None = None
    n_hits: int = 0

    @property
    def query(self) -> ShownChain:
        """Chain of the query."""
        return self.chains[0]

    @property
    def partner(self) -> ShownChain | None:
        """Chain of the hit with number `chosen`, or None."""
        return next((chain for chain in self.chains if chain.hit == self.chosen and chain.hit and not chain.is_other_chain), None)


@dataclass(frozen=True)
class Scale:
    """Colour scale of a legend.

    Attributes
    ----------
    stops : tuple of Colour
        Evenly spaced colours from `low` to `high`.
    low, high : float
        Values at the ends of the scale, in `unit`.
    unit : str
        Unit, or ''.
    low_text, high_text : str
        Texts at the ends of the scale.
    """

    stops: tuple[Colour, ...]
    low: float
    high: float
    unit: str
    low_text: str
    high_text: str


@dataclass(frozen=True)
class Legend:
    """Legend of colours.

    Attributes
    ----------
    title : str
        Title.
    entries : tuple of (Colour, str)
        Colours with their meaning.
    scales : tuple of Scale
        Colour scales.
    note : str
        Further explanation, or ''.
    """

    title: str
    entries: tuple[tuple[Colour, str], ...] = ()
    scales: tuple[Scale, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Coloured:
    """Colours of the chains of a scene.

    Attributes
    ----------
    colours : tuple of ndarray of uint8, shape (r, 3)
        Colours of the r residues of each chain, in the order of the scene.
    legend : Legend
        Legend of the colours.
    """

    colours: tuple[Colours, ...]
    legend: Legend


@dataclass(frozen=True)
class Scheme:
    """Colouring scheme.

    Attributes
    ----------
    name : str
        Identifier.
    title, help : str
        Title and tooltip in the menu.
    colour : callable
        Function that returns the colours of a scene.
    needs : callable
        Function that returns a message about data that the scheme needs and the scene lacks, or ''.
    """

    name: str
    title: str
    help: str
    colour: Callable[[ColouredScene], Coloured]
    needs: Callable[[ColouredScene], str] = lambda scene: ""


def scale_colours(value: NDArray[np.floating], low: float, high: float, stops: Sequence[Colour] = SCALE) -> Colours:
    """Return the colours of values on a colour scale.

    Parameters
    ----------
    value : ndarray, shape (n,)
        Values, which are clipped to the range of the scale.
    low, high : float
        Values at the ends of the scale.
    stops : sequence of Colour
        Evenly spaced colours from `low` to `high`.

    Returns
    -------
    ndarray of uint8, shape (n, 3)
        Colours; `UNALIGNED` for NaN.

    Examples
    --------
    >>> scale_colours(np.array([0.0, np.nan, 9.0]), 0.0, 1.0).tolist()
    [[66, 64, 134], [184, 184, 184], [200, 224, 32]]
    """
    value = np.asarray(value, np.float64)
    is_number = ~np.isnan(value)
    part = np.clip((np.where(is_number, value, low) - low) / max(high - low, 1e-12), 0.0, 1.0) * (len(stops) - 1)
    table = np.array(stops, np.float64)
    mixed = np.stack([np.interp(part, np.arange(len(stops)), table[:, axis]) for axis in range(3)], axis=1)
    colours: Colours = np.where(is_number[:, None], np.rint(mixed), UNALIGNED).astype(np.uint8)
    return colours


def conservation(query: NDArray[np.int8], hits: Sequence[tuple[NDArray[np.integer], NDArray[np.int8]]]) -> NDArray[np.float64]:
    """Return, for each residue of the query, the fraction of hits with the same residue at the aligned position.

    The fraction refers to all hits, including those with a gap or another residue, so that a position that few hits cover has a low
    conservation. X never counts as the same residue.

    Parameters
    ----------
    query : ndarray of int8, shape (q,)
        Codes of the query's residues.
    hits : sequence of (ndarray, ndarray)
        For each hit the aligned residues of query and target, shape (k, 2), and the codes of the target's residues.

    Returns
    -------
    ndarray of float64, shape (q,)
        Fractions, 0 to 1.

    Examples
    --------
    >>> pairs = np.array([[0, 0], [1, 1]])
    >>> conservation(np.array([0, 1, 2], np.int8), [(pairs, np.array([0, 5], np.int8)), (pairs, np.array([0, 1], np.int8))]).tolist()
    [1.0, 0.5, 0.0]
    """
    counts = np.zeros(len(query))
    for pairs, target in hits:
        counts[pairs[_are_same(query, target, pairs), 0]] += 1.0
    return counts / max(1, len(hits))


def _are_same(query: NDArray[np.int8], target: NDArray[np.int8], pairs: NDArray[np.integer]) -> NDArray[np.bool_]:
    a, b = query[pairs[:, 0]], target[pairs[:, 1]]
    same: NDArray[np.bool_] = (a == b) & (a != _X)
    return same


def _all(n: int, colour: Colour) -> Colours:
    return np.tile(np.array(colour, np.uint8), (n, 1))


def _paler(colour: Colour) -> Colour:
    """Return the mean of a colour and the grey of residues without a value."""
    r, g, b = ((channel + grey) // 2 for channel, grey in zip(colour, UNALIGNED, strict=True))
    return r, g, b


def _by_partner(scene: ColouredScene) -> Coloured:
    colours, entries = [], []
    for chain in scene.chains:
        colour = CHAIN_COLOURS[chain.hit % len(CHAIN_COLOURS)]
        colours.append(_all(len(chain), _paler(colour) if chain.is_other_chain else colour))
        if not chain.is_other_chain:
            entries.append((colour, chain.name if chain.hit else f"{chain.name} (query)"))
    note = "Other chains of the files are paler." if any(chain.is_other_chain for chain in scene.chains) else ""
    return Coloured(tuple(colours), Legend("Query and hits", tuple(entries), note=note))


def _by_chain(scene: ColouredScene) -> Coloured:
    chain_colours = [CHAIN_COLOURS[i % len(CHAIN_COLOURS)] for i in range(len(scene.chains))]
    note = f"The colours repeat after {len(CHAIN_COLOURS)} chains." if len(chain_colours) > len(CHAIN_COLOURS) else ""
    entries = tuple((colour, chain.name) for colour, chain in zip(chain_colours, scene.chains, strict=True))
    return Coloured(
        tuple(_all(len(chain), colour) for colour, chain in zip(chain_colours, scene.chains, strict=True)),
        Legend("Chain", entries, note=note),
    )


def _by_state(scene: ColouredScene) -> Coloured:
    table = np.array([_STATES[code][0] for code in (COIL, HELIX, STRAND)], np.uint8)
    colours = tuple(table[np.minimum(chain.chains.secondary, STRAND)] for chain in scene.chains)
    return Coloured(colours, Legend("Secondary structure", tuple(_STATES.values())))


def _compared(scene: ColouredScene, values: Callable[[ShownChain], NDArray[np.floating]], nothing: float) -> list[NDArray[np.float64]]:
    """Return, for each chain, a value per residue.

    `values` returns a value for each aligned pair of a hit. In a hit, each residue has the value of its pair; in the query, the value of
    its pair with the selected hit. Residues without a pair have the value `nothing`.
    """
    result = []
    for chain in scene.chains:
        source = scene.partner if chain is scene.query else chain
        rows = np.full(len(chain), nothing)
        if source is not None and not chain.is_other_chain and len(source.pairs):
            rows[source.pairs[:, 0 if chain is scene.query else 1]] = values(source)
        result.append(rows)
    return result


def _chosen_note(scene: ColouredScene, text: str) -> str:
    partner = scene.partner
    n = len({chain.hit for chain in scene.chains if chain.hit})
    return f"The query {text} {partner.name}." if partner is not None and n > 1 else ""


def _by_distance(scene: ColouredScene) -> Coloured:
    values = _compared(scene, lambda shown: shown.distance, np.nan)
    scale = Scale(SCALE, 0.0, _MAXIMUM_DISTANCE, "Å", "0 Å", f"{_MAXIMUM_DISTANCE:g} Å or more")
    legend = Legend("Distance to the partner", ((UNALIGNED, "not aligned"),), (scale,), _chosen_note(scene, "by its distance to"))
    return Coloured(tuple(scale_colours(value, 0.0, _MAXIMUM_DISTANCE) for value in values), legend)


@lru_cache(maxsize=1)
def _are_similar() -> NDArray[np.bool_]:
    """Return a mask of pairs of residue codes, (27, 27): True for a positive BLOSUM62 score."""
    similar: NDArray[np.bool_] = read_matrix("BLOSUM62").scores > 0
    return similar


def _by_identity(scene: ColouredScene) -> Coloured:
    query = scene.query.chains.residue

    def kinds(chain: ShownChain) -> NDArray[np.float64]:
        a, b = query[chain.pairs[:, 0]], chain.chains.residue[chain.pairs[:, 1]]
        is_known = (a != _X) & (b != _X)
        return np.where((a == b) & is_known, 1.0, np.where(_are_similar()[a, b] & is_known, 2.0, 3.0))

    table = np.array([UNALIGNED, _SAME, _SIMILAR, _OTHER], np.uint8)
    entries = ((_SAME, "same residue"), (_SIMILAR, "similar (BLOSUM62 above 0)"), (_OTHER, "other"), (UNALIGNED, "not aligned"))
    colours = tuple(table[classes.astype(np.int64)] for classes in _compared(scene, kinds, 0.0))
    return Coloured(colours, Legend("Sequence identity", entries, note=_chosen_note(scene, "compared with")))


def _by_conservation(scene: ColouredScene) -> Coloured:
    shares = scene.conservation
    result = []
    for chain in scene.chains:
        rows = np.full(len(chain), np.nan)
        if shares is not None and not chain.is_other_chain:
            if chain is scene.query:
                rows[:] = shares
            else:
                rows[chain.pairs[:, 1]] = shares[chain.pairs[:, 0]]
        result.append(scale_colours(rows, 0.0, 1.0))
    hits = counted(scene.n_hits, "hit")
    scale = Scale(SCALE, 0.0, 1.0, "", "in none", "in all")
    note = f"Fraction of {hits} with the query's residue at the aligned position. Hits have the colours of the query's residues."
    return Coloured(tuple(result), Legend("Conservation among hits", ((UNALIGNED, "not aligned"),), (scale,), note))


def _by_confidence(scene: ColouredScene) -> Coloured:
    table = np.array([colour for _, colour, _ in _BANDS], np.uint8)
    bounds = np.array([bound for bound, _, _ in _BANDS[:-1]])
    measured = [chain.b_factor for chain in scene.chains if chain.b_factor is not None and np.isnan(chain.chains.confidence).all()]
    every = np.concatenate([np.empty(0), *measured])
    every = every[np.isfinite(every)]
    low, high = np.percentile(every, _B_FACTORS).tolist() if len(every) else (0.0, 1.0)
    has_bands = lacks = False
    colours = []
    for chain in scene.chains:
        confidence = chain.chains.confidence
        is_known = np.isfinite(confidence)
        if is_known.any():
            has_bands = True
            band = (confidence[:, None] <= bounds).sum(axis=1)
            colours.append(np.where(is_known[:, None], table[band], UNALIGNED).astype(np.uint8))
            lacks |= not is_known.all()
        else:
            values = np.full(len(chain), np.nan) if chain.b_factor is None else np.asarray(chain.b_factor, np.float64)
            colours.append(scale_colours(values, low, high))
            lacks |= bool(np.isnan(values).any())
    entries = (*((colour, text) for _, colour, text in _BANDS if has_bands), *([(UNALIGNED, "not in the file")] if lacks else []))
    scales = (Scale(SCALE, low, high, "Å²", f"B-factor {low:.0f} Å² or less", f"{high:.0f} Å² or more"),) if len(every) else ()
    return Coloured(tuple(colours), Legend("Confidence", entries, scales))


def _by_place(scene: ColouredScene) -> Coloured:
    colours = [scale_colours(np.arange(len(chain), dtype=np.float64), 0.0, max(1, len(chain) - 1), _RAINBOW) for chain in scene.chains]
    return Coloured(tuple(colours), Legend("Position along the chain", (), (Scale(_RAINBOW, 0.0, 1.0, "", "N-terminus", "C-terminus"),)))


def _needs_partner(scene: ColouredScene) -> str:
    return "" if scene.partner is not None else "There is no hit to compare the query with."


def _needs_conservation(scene: ColouredScene) -> str:
    return "" if scene.conservation is not None and scene.n_hits else "There are no hits whose residues can be counted."


def _needs_confidence(scene: ColouredScene) -> str:
    is_known = any(
        np.isfinite(chain.chains.confidence).any() or (chain.b_factor is not None and np.isfinite(chain.b_factor).any())
        for chain in scene.chains
    )
    return "" if is_known else "The files contain neither pLDDT nor B-factors."


SCHEMES: tuple[Scheme, ...] = (
    Scheme("partner", "Query and hits", "One colour for the query and one for each hit", _by_partner),
    Scheme("chain", "Chain", "A colour for each chain", _by_chain),
    Scheme("secondary", "Secondary structure", "Helix, strand and coil", _by_state),
    Scheme("distance", "Distance to the partner", "Distance of aligned Cα after superposition", _by_distance, _needs_partner),
    Scheme("identity", "Sequence identity", "Identity or similarity of aligned residues", _by_identity, _needs_partner),
    Scheme(
        "conservation",
        "Conservation among hits",
        "Fraction of hits with the same residue as the query",
        _by_conservation,
        _needs_conservation,
    ),
    Scheme(
        "confidence",
        "Confidence",
        "pLDDT of predicted structures in AlphaFold's colours, B-factors of others",
        _by_confidence,
        _needs_confidence,
    ),
    Scheme("rainbow", "N- to C-terminus", "From blue at the N-terminus to red at the C-terminus", _by_place),
)
"""Colour schemes in the order of the menu."""


_OBSERVED_PALER: Colour = _paler(OBSERVED)
_NOT_OF_PROTEIN = "not aligned with the protein"


def _by_evidence(scene: ColouredScene, values: Callable[[ChainEvidence], Colours], foreign: Colour = UNALIGNED) -> tuple[Colours, ...]:
    """Return the colours of the residues of each chain: from `values` if aligned with the protein of the evidence, otherwise `foreign`."""
    return tuple(
        _all(len(chain), foreign)
        if chain.evidence is None
        else np.where((chain.evidence.position >= 0)[:, None], values(chain.evidence), np.array(foreign, np.uint8)).astype(np.uint8)
        for chain in scene.chains
    )


def _by_coverage(scene: ColouredScene) -> Coloured:
    table = np.array([NOT_OBSERVED, OBSERVED, MODIFIED], np.uint8)
    colours = _by_evidence(scene, lambda evidence: table[np.where(evidence.is_modified, 2, np.minimum(evidence.n_psms, 1))], FOREIGN)
    entries = ((OBSERVED, "observed"), (MODIFIED, "modified"), (NOT_OBSERVED, "not observed"), (FOREIGN, _NOT_OF_PROTEIN))
    return Coloured(colours, Legend("Coverage by peptides", entries))


def _by_psms(scene: ColouredScene) -> Coloured:
    most = max((int(chain.evidence.n_psms.max(initial=0)) for chain in scene.chains if chain.evidence is not None), default=0)

    def shade(evidence: ChainEvidence) -> Colours:
        counts = scale_colours(np.log2(np.maximum(evidence.n_psms, 1)), 0.0, float(np.log2(max(most, 2))))
        return np.where((evidence.n_psms > 0)[:, None], counts, np.array(NOT_OBSERVED, np.uint8)).astype(np.uint8)

    scales = (Scale(SCALE, 0.0, float(np.log2(max(most, 2))), "", "1 PSM", f"{max(most, 2):,}"),)
    legend = Legend("Spectra of each residue, by powers of two", ((NOT_OBSERVED, "none"), (FOREIGN, _NOT_OF_PROTEIN)), scales)
    return Coloured(_by_evidence(scene, shade, FOREIGN), legend)


def _by_modification(scene: ColouredScene) -> Coloured:
    table = np.array([NOT_OBSERVED, _OBSERVED_PALER, MODIFIED], np.uint8)
    colours = _by_evidence(scene, lambda evidence: table[np.where(evidence.is_modified, 2, np.minimum(evidence.n_psms, 1))], FOREIGN)
    observed = ((MODIFIED, "modified"), (_OBSERVED_PALER, "observed, not modified"), (NOT_OBSERVED, "not observed"))
    entries = (*observed, (FOREIGN, _NOT_OF_PROTEIN))
    return Coloured(colours, Legend("Modified residues", entries))


def _by_exposure(scene: ColouredScene) -> Coloured:
    colours = _by_evidence(scene, lambda evidence: scale_colours(evidence.exposure, 0.0, 1.0))
    scale = Scale(SCALE, 0.0, 1.0, "", "buried", "exposed")
    return Coloured(colours, Legend("Exposure of the isolated chain", ((UNALIGNED, "not known"),), (scale,)))


def _needs_exposure(scene: ColouredScene) -> str:
    is_known = any(chain.evidence is not None and np.isfinite(chain.evidence.exposure).any() for chain in scene.chains)
    return "" if is_known else "Exposure needs all atoms: the file contains only Cα, or could not be read."


def _by_homologues(scene: ColouredScene) -> Coloured:
    colours = _by_evidence(scene, lambda evidence: scale_colours(evidence.conservation, 0.0, 1.0))
    scale = Scale(SCALE, 0.0, 1.0, "", "variable", "conserved")
    return Coloured(colours, Legend("Conservation among homologues", ((UNALIGNED, "not known"),), (scale,)))


def _needs_homologues(scene: ColouredScene) -> str:
    is_known = any(chain.evidence is not None and np.isfinite(chain.evidence.conservation).any() for chain in scene.chains)
    return "" if is_known else "The run had no homologues, or the protein has too few."


def quantity_colours(values: NDArray[np.float64], scale: QuantityScale) -> Colours:
    """Return the colours of quantities on their scale.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Quantities; the colour of NaN is `UNALIGNED`.
    scale : QuantityScale
        Range and colours.

    Returns
    -------
    ndarray of uint8, shape (n, 3)
        Red, green and blue.
    """
    return scale_colours(values, scale.low, scale.high, scale.stops)


def _quantity_scale(scene: ColouredScene) -> QuantityScale | None:
    return next(
        (chain.evidence.quantity_scale for chain in scene.chains if chain.evidence is not None and chain.evidence.quantity_scale), None
    )


def _by_quantity(scene: ColouredScene) -> Coloured:
    scale = _quantity_scale(scene)
    if scale is None:
        return Coloured(
            _by_evidence(scene, lambda evidence: _all(len(evidence.position), UNALIGNED)), Legend("Quantity", ((UNALIGNED, "not known"),))
        )
    limits = scale

    def shade(evidence: ChainEvidence) -> Colours:
        return _all(len(evidence.position), UNALIGNED) if evidence.quantity is None else quantity_colours(evidence.quantity, limits)

    shown = Scale(scale.stops, scale.low, scale.high, "", f"{scale.low:.1f}", f"{scale.high:.1f}")
    return Coloured(_by_evidence(scene, shade), Legend(f"{scale.title} of the peptides", ((UNALIGNED, "no quantity"),), (shown,)))


def _needs_quantity(scene: ColouredScene) -> str:
    is_there = _quantity_scale(scene) is not None
    return "" if is_there else "The project has no quantities of these peptides. Quantify the identification to show them."


EVIDENCE_SCHEMES: tuple[Scheme, ...] = (
    Scheme("coverage", "Coverage", "Residues that are covered by peptides, modified, or not observed", _by_coverage),
    Scheme("psms", "Number of PSMs", "Number of PSMs whose peptides cover each residue", _by_psms),
    Scheme("modification", "Modifications", "Residues with modifications in identified peptides", _by_modification),
    Scheme("quantity", "Quantity", "Quantity of the peptides that cover each residue, or its change", _by_quantity, _needs_quantity),
    Scheme("exposure", "Exposure", "Fraction of the surface of each residue that water can reach", _by_exposure, _needs_exposure),
    Scheme(
        "homologues",
        "Conservation among homologues",
        "Conservation of the protein's residues among related sequences",
        _by_homologues,
        _needs_homologues,
    ),
    *(scheme for scheme in SCHEMES if scheme.name in ("conservation", "partner", "identity", "secondary", "confidence", "rainbow")),
)
"""Colour schemes for chains with peptide evidence, in the order of the menu."""


def scheme_named(name: str) -> Scheme:
    """Return the colour scheme with a name.

    Raises
    ------
    KeyError
        If no scheme has this name.
    """
    return {scheme.name: scheme for scheme in (*SCHEMES, *EVIDENCE_SCHEMES)}[name]


def lit(colours: Colours, is_lit: NDArray[np.bool_]) -> Colours:
    """Return the given colours, but `LIT` for residues that are selected in another view.

    Parameters
    ----------
    colours : ndarray of uint8, shape (n, 3)
        Colours of residues.
    is_lit : ndarray of bool, shape (n,)
        True for selected residues.

    Examples
    --------
    >>> lit(np.zeros((2, 3), np.uint8), np.array([False, True])).tolist()
    [[0, 0, 0], [230, 0, 154]]
    """
    result: Colours = np.where(is_lit[:, None], np.array(LIT, np.uint8), colours).astype(np.uint8)
    return result


def coloured(scene: ColouredScene, scheme: str) -> Coloured:
    """Return the colours of a scene and their legend.

    If the scene lacks data that the scheme needs, residues are grey, and `Scheme.needs` returns the reason.

    Parameters
    ----------
    scene : ColouredScene
        Chains of the picture.
    scheme : str
        Name of the colour scheme.
    """
    return scheme_named(scheme).colour(scene)
