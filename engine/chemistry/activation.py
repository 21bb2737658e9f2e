"""Activations (methods by which precursors are fragmented), and the ion series that they produce.

Collisions break the amide bond (C-N), which gives b and y; electron transfer and capture break the bond after it (N-Cα), which gives c
and z.
Collisions of precursors that survive electron transfer give all four series (Frese et al. 2012, Anal. Chem. 84:9668).
"""

import re
from collections.abc import Iterable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Activation",
    "activation_names",
    "activation_series",
    "activations_from_terms",
    "combine_activations",
    "named_activation_series",
    "parse_activation",
    "parse_activation_names",
    "parse_filter_activation",
]


class Activation(IntEnum):
    """Methods by which precursors are fragmented, with their values in columns of spectra."""

    UNKNOWN = 0
    CID = 1
    HCD = 2
    ETD = 3
    ECD = 4
    EAD = 5
    ETCID = 6
    ETHCD = 7
    PQD = 8
    UVPD = 9
    PD = 10
    IRMPD = 11


_NAMES = {Activation.UNKNOWN: "", Activation.ETCID: "ETciD", Activation.ETHCD: "EThcD"}
_BY_NAME = {_NAMES.get(activation, activation.name).lower(): activation for activation in Activation if activation}
_TERMS = {
    1000133: Activation.CID,
    1000433: Activation.CID,
    1002472: Activation.CID,
    1002679: Activation.CID,
    1000422: Activation.HCD,
    1002481: Activation.HCD,
    1002678: Activation.HCD,
    1000598: Activation.ETD,
    1000250: Activation.ECD,
    1003294: Activation.EAD,
    1003182: Activation.ETCID,
    1002631: Activation.ETHCD,
    1000599: Activation.PQD,
    1003246: Activation.UVPD,
    1000435: Activation.PD,
    1000262: Activation.IRMPD,
}
"""Activation of each PSI-MS term by its number; supplemental collisions have terms too."""
_COLLISIONS = frozenset({Activation.CID, Activation.HCD, Activation.PQD})
_ELECTRONS = frozenset({Activation.ETD, Activation.ECD, Activation.EAD})
_BOTH = frozenset({Activation.ETCID, Activation.ETHCD})
_SERIES = {
    **dict.fromkeys(_COLLISIONS, "by"),
    Activation.ETD: "cz",
    Activation.ECD: "cz",
    **dict.fromkeys((Activation.EAD, *_BOTH), "bycz"),
}
_USUAL_SERIES = "by"
_WORDS = re.compile(
    r"(?<![a-z])(?:ethcd|etcid|etcad|etshcd|etd ?\+ ?sa|etd|ecd|ead|hcd|cid|cad|pqd|uvpd|irmpd|pd|electron[ -]transfer dissociation"
    r"|electron[ -]capture dissociation|electron[ -]activated dissociation|beam[ -]type|higher[ -]energy|collision(?:al)?)(?![a-z])"
)
"""Pattern of names of activations; alternatives are tried in this order, so that a name precedes the names that it contains."""
_FILTER = re.compile(r"@([a-z]{2,8})(?![a-z])")
_OTHER_NAMES = {
    "etcad": "etcid",
    "etd+sa": "etcid",
    "cad": "cid",
    "etshcd": "ethcd",
    "electron transfer dissociation": "etd",
    "electron capture dissociation": "ecd",
    "electron activated dissociation": "ead",
    "beam type": "hcd",
    "higher energy": "hcd",
    "collision": "cid",
    "collisional": "cid",
}


def parse_activation(text: str) -> Activation:
    """Return the activation that a text names; several names are combined.

    Examples
    --------
    >>> [parse_activation(text).name for text in ("HCD", "etd50.00@hcd20.00", "ETD+SA", "beam-type collision-induced dissociation", "x")]
    ['HCD', 'ETHCD', 'ETCID', 'HCD', 'UNKNOWN']
    """
    words = (word.replace("-", " ").replace(" +", "+").replace("+ ", "+") for word in _WORDS.findall(text.lower()))
    return combine_activations(_BY_NAME[_OTHER_NAMES.get(word, word)] for word in words)


def parse_filter_activation(text: str) -> Activation:
    """Return the activation that the filter string of a Thermo scan names.

    Examples
    --------
    >>> parse_filter_activation("FTMS + p NSI d Full ms2 604.7591@etd50.00@hcd20.00 [120.0000-1220.0000]").name
    'ETHCD'
    """
    return parse_activation(" ".join(_FILTER.findall(text.lower())))


def activations_from_terms(terms: NDArray[np.int64], spectrum: NDArray[np.int64], n: int) -> NDArray[np.uint8]:
    """Return the activations of spectra from their PSI-MS terms.

    Parameters
    ----------
    terms, spectrum : ndarray of int64, shape (m,)
        Accession number of each term, and index of its spectrum. Terms that do not name an activation are ignored.
    n : int
        Number of spectra.

    Returns
    -------
    ndarray of uint8, shape (n,)
        Values of `Activation`, 0 if no term names an activation.
    """
    bits = np.zeros(n, np.int64)
    for term, activation in _TERMS.items():
        # Repeated terms of a spectrum have no effect.
        bits[spectrum[terms == term]] |= 1 << activation
    patterns, position = np.unique(bits, return_inverse=True)
    combined = [combine_activations(kind for kind in Activation if pattern >> kind & 1) for pattern in patterns.tolist()]
    return np.array(combined, np.uint8)[position]


def combine_activations(activations: Iterable[Activation]) -> Activation:
    """Return one activation for a spectrum with several activations: electron transfer and collisions become ``ETHCD`` or ``ETCID``.

    Examples
    --------
    >>> combine_activations([Activation.ETD, Activation.HCD]).name, combine_activations([Activation.CID, Activation.HCD]).name
    ('ETHCD', 'HCD')
    """
    kinds = set(activations) - {Activation.UNKNOWN}
    electrons, both = kinds & _ELECTRONS, kinds & _BOTH
    if both or (electrons and kinds & _COLLISIONS):
        return Activation.ETHCD if {Activation.ETHCD, Activation.HCD} & kinds else Activation.ETCID
    # The term of a specific type of collision may accompany the general term.
    return max(electrons or kinds, default=Activation.UNKNOWN)


def activation_series(activation: int) -> str:
    """Return the ion series of an activation as characters; b and y if the activation is unknown.

    Examples
    --------
    >>> [activation_series(kind) for kind in (Activation.UNKNOWN, Activation.HCD, Activation.ETD, Activation.ETHCD)]
    ['by', 'by', 'cz', 'bycz']
    """
    return _SERIES.get(Activation(activation), _USUAL_SERIES)


def named_activation_series(name: str) -> str:
    """Return the ion series of an activation, given by name, as characters; '' for other names."""
    return _SERIES.get(_BY_NAME.get(name.lower(), Activation.UNKNOWN), "")


def activation_names(activation: NDArray[np.uint8]) -> list[str]:
    """Return the name of each activation, '' if unknown."""
    names = [_NAMES.get(kind, kind.name) for kind in Activation]
    return [names[code] for code in activation.tolist()]


def parse_activation_names(names: Iterable[str | None]) -> NDArray[np.uint8]:
    """Return activations from the names that `activation_names` returns; other texts become unknown."""
    return np.array([_BY_NAME.get((name or "").lower(), Activation.UNKNOWN) for name in names], np.uint8)
