"""Alignment of two superposed chains by columns: residues, secondary structure, distances and descriptors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.structure_search.hit_chains import ChainInFile, HitChains, trace_geometry
from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.traces import RESIDUE_NAMES, superpose_hit

__all__ = ["ALIGNED", "APART", "BEYOND", "WITHIN", "ChainFacts", "StructurePair", "expand_cigar", "structure_pair"]

WITHIN = (10, 11, 12, 13)
"""Kinds of aligned columns by Cα distance after superposition, smallest distance first."""
_LIMITS = np.array([1.0, 2.0, 3.5, 5.0])
BEYOND, ALIGNED, APART = 14, 15, 16
"""Kinds of columns: aligned with a distance above all limits; aligned with an unknown distance; not aligned."""
_CLOSE = 5.0
"""Maximum distance in Å of a pair marked with ``:``, as in TM-align."""
_RUNS = re.compile(r"(\d+)([MID])")
_STATES = {"H": "helix", "E": "strand", "C": "coil", "-": ""}


@dataclass(frozen=True)
class ChainFacts:
    """Descriptors of the n residues of a chain.

    Attributes
    ----------
    states
        Secondary structure, one symbol per residue: H helix, E strand, C coil.
    labels
        Residue numbers with insertion codes as in the structure file, or None if unknown.
    length, angle
        Length of the vector to the next Cα (Å) and its angle to the following vector (degrees), NaN if unknown, shape (n,).
    confidence
        pLDDT, NaN if unknown, shape (n,).
    """

    states: str
    labels: tuple[str, ...] | None
    length: NDArray[np.floating]
    angle: NDArray[np.floating]
    confidence: NDArray[np.floating]

    @classmethod
    def from_states(cls, states: str) -> ChainFacts:
        """Return the descriptors of a chain for which only the secondary structure is known, not the coordinates."""
        unknown = np.full(len(states), np.nan)
        return cls(states, None, unknown, unknown, unknown)

    @classmethod
    def from_file(cls, source: ChainInFile, states: str) -> ChainFacts:
        """Return the descriptors of a chain from its file."""
        chains = source.chains
        insertion = chains.insertion.tolist()
        labels = tuple(
            f"{number}{chr(code) if code else ''}" for number, code in zip(chains.author_number.tolist(), insertion, strict=True)
        )
        return cls(states, labels, *trace_geometry(chains.position), chains.confidence)


def expand_cigar(cigar: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each column, the residue index (from 0) of the query and of the target, or -1 for a gap; shape (columns,) each.

    >>> [part.tolist() for part in expand_cigar("1I2M1D")]
    [[0, 1, 2, -1], [-1, 0, 1, 2]]
    """
    runs = _RUNS.findall(cigar)
    kinds = np.repeat(np.array([kind for _, kind in runs], "U1"), np.array([int(n) for n, _ in runs], np.int64))
    of_query, of_target = kinds != "D", kinds != "I"
    return np.where(of_query, np.cumsum(of_query) - 1, -1), np.where(of_target, np.cumsum(of_target) - 1, -1)


@dataclass(frozen=True, kw_only=True)
class StructurePair(AlignedPair):
    """Alignment of two whole chains; `subject` is the target.

    Attributes
    ----------
    of_query, of_target
        Residue index (from 0) of each chain in each column, or -1 for a gap; shape (columns,).
    distance
        Cα distance of aligned pairs after superposition, Å, NaN in other columns, (columns,).
    query_facts, target_facts
        Descriptors of the residues of both chains.
    chains
        Both chains from their files, or None.
    note
        Reason why the chains are missing, or ''.
    """

    of_query: NDArray[np.int64]
    of_target: NDArray[np.int64]
    distance: NDArray[np.floating]
    query_facts: ChainFacts
    target_facts: ChainFacts
    chains: tuple[ChainInFile, ChainInFile] | None = None
    note: str = ""

    titles: ClassVar[tuple[str, str]] = ("Query", "Target")
    has_states: ClassVar[bool] = True

    @property
    def legend(self) -> tuple[tuple[int, str], ...]:
        """Distance classes that a legend explains, each with its text."""
        return (*((kind, f"≤ {limit:g} Å") for kind, limit in zip(WITHIN, _LIMITS.tolist(), strict=True)), (BEYOND, "farther"))

    @classmethod
    def from_cigar(
        cls,
        names: tuple[str, str, str],
        sequences: tuple[str, str],
        cigar: str,
        distances: NDArray[np.floating] | None,
        facts_of: tuple[ChainFacts, ChainFacts],
        hit: Mapping[str, Any] | None = None,
        chains: tuple[ChainInFile, ChainInFile] | None = None,
        note: str = "",
    ) -> StructurePair:
        """Return the alignment of two whole chains given by a CIGAR.

        Parameters
        ----------
        names
            Name of the query, name of the target, and description of the target.
        distances
            Distance of each aligned pair in Å, shape (pairs,), or None.
        facts_of
            Descriptors of both chains.
        hit
            Values of the hit by column.
        chains
            Both chains from their files, or None.
        note
            Reason why the chains are missing, or ''.
        """
        of_query, of_target = expand_cigar(cigar)
        symbols = [_spread(text, rows) for text, rows in zip(sequences, (of_query, of_target), strict=True)]
        is_pair = (of_query >= 0) & (of_target >= 0)
        distance = np.full(len(of_query), np.nan)
        if distances is not None:
            distance[is_pair] = distances
        same = is_pair & (symbols[0] == symbols[1]) & (symbols[0] != ord("X"))
        middle = np.full(len(of_query), ord(" "), np.uint8)
        middle[is_pair] = ord(".")
        with np.errstate(invalid="ignore"):
            middle[distance < _CLOSE] = ord(":")
        middle[same] = symbols[0][same]
        query, between, target = (line.tobytes().decode("ascii") for line in (symbols[0], middle, symbols[1]))
        return cls(
            *names,
            1,
            1,
            query,
            between,
            target,
            hit=hit or {},
            of_query=of_query,
            of_target=of_target,
            distance=distance,
            query_facts=facts_of[0],
            target_facts=facts_of[1],
            chains=chains,
            note=note,
        )

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """Kind of each column, shape (columns,), uint8: by distance one of `WITHIN` or `BEYOND`; `ALIGNED` without distance; or `APART`."""
        kinds = np.full(len(self), APART, np.uint8)
        kinds[(self.of_query >= 0) & (self.of_target >= 0)] = ALIGNED
        is_known = np.isfinite(self.distance)
        kinds[is_known] = np.array([*WITHIN, BEYOND], np.uint8)[np.searchsorted(_LIMITS, self.distance[is_known])]
        return kinds

    @cached_property
    def states(self) -> tuple[str, str]:
        """Secondary structure of query and target in each column, ``-`` for a gap."""
        query, target = (
            _spread(facts.states, rows).tobytes().decode("ascii")
            for facts, rows in ((self.query_facts, self.of_query), (self.target_facts, self.of_target))
        )
        return query, target

    def states_text(self, first: int, last: int) -> tuple[str, str]:
        """Return the secondary structure of query and target in columns `first` to `last` (exclusive), blank for coil and gaps."""
        query, target = (line[first:last].replace("C", " ").replace("-", " ") for line in self.states)
        return query, target

    def labels(self, first: int, last: int) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the first and last residue numbers of query and target as in the structure files, or positions if unknown."""
        query, target = (
            (_label(facts, begin), _label(facts, end))
            for facts, (begin, end) in zip((self.query_facts, self.target_facts), self.numbers(first, last), strict=True)
        )
        return query, target

    @cached_property
    def widest_label(self) -> int:
        """Length of the longest label in characters."""
        counted = max(len(self.query_facts.states), len(self.target_facts.states), 1)
        named = [len(label) for facts in (self.query_facts, self.target_facts) for label in facts.labels or ()]
        return max([*named, len(str(counted)) if not named else 1])

    def column_text(self, column: int) -> str:
        """Return the tooltip of a column in three lines: both residues with their descriptors, and their distance."""
        lines = []
        chains = (self.query, self.of_query, self.query_facts), (self.subject, self.of_target, self.target_facts)
        for title, (symbols, rows, facts) in zip(self.titles, chains, strict=True):
            symbol = symbols[column]
            row = int(rows[column])
            if row < 0:
                lines.append(f"{title}: gap")
                continue
            parts = [f"{title}: {RESIDUE_NAMES.get(symbol, symbol)} {_label(facts, row + 1)}", _STATES[facts.states[row]]]
            for value, text in (
                (facts.length[row], "{:.2f} Å to the next Cα"),
                (facts.angle[row], "{:.0f}° between successive Cα vectors"),
                (facts.confidence[row], "pLDDT {:.0f}"),
            ):
                if np.isfinite(value):
                    parts.append(text.format(value))
            lines.append(", ".join(parts))
        kind = int(self.kinds[column])
        distance = float(self.distance[column])
        lines.append("Not aligned" if kind == APART else "Aligned" if kind == ALIGNED else f"Aligned, {distance:.2f} Å apart")
        return "\n".join(lines)


def structure_pair(hit: Mapping[str, Any], chains: HitChains) -> StructurePair:
    """Return the alignment of a hit.

    If the structure file of one of the chains is missing, there are no distances, this chain has no residue numbers, and `note` contains
    the reason.

    Parameters
    ----------
    hit
        Values of the hit from `proteoscope.engine.views.structure_hits.read_hit_row`.
    chains
        Reader of the chains of the run.
    """
    facts_of = [ChainFacts.from_states(hit["query_states"]), ChainFacts.from_states(hit["target_states"])]
    result: list[ChainInFile | None] = [None, None]
    missing = []
    reads: tuple[Callable[[], ChainInFile], ...] = (
        lambda: chains.query(hit["query"], hit["query_sequence"]),
        lambda: chains.target(hit["target"], hit["target_sequence"], hit["target_index"]),
    )
    for k, read in enumerate(reads):
        try:
            chain = read()
        except ProteoscopeError as error:
            missing.append(str(error))
            continue
        result[k], facts_of[k] = chain, ChainFacts.from_file(chain, facts_of[k].states)
    distances, both = None, None
    if result[0] is not None and result[1] is not None:
        both = result[0], result[1]
        pairs = superpose_hit(hit, *both).pairs
        distances = None if pairs is None else pairs.distance
    note = f"Without distances and author residue numbers: {missing[0]}" if missing else ""
    return StructurePair.from_cigar(
        (hit["query"], hit["target"], hit["description"] or ""),
        (hit["query_sequence"], hit["target_sequence"]),
        hit["cigar"],
        distances,
        (facts_of[0], facts_of[1]),
        hit,
        both,
        note,
    )


def _label(facts: ChainFacts, number: int) -> str:
    if number < 1:
        return ""
    return str(number) if facts.labels is None else facts.labels[number - 1]


def _spread(text: str, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the symbols of a chain by column, ``-`` for a gap, uint8; `rows` is the residue of each column, -1 for a gap."""
    symbols = np.append(np.frombuffer(text.encode("ascii", "replace"), np.uint8), np.uint8(ord("-")))
    return np.ascontiguousarray(symbols[rows])
