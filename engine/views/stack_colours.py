"""Colours of the residues of stacked alignments, in established schemes such as Clustal X, and sequence logos.

In a logo, the height of a column is its information content, divided among the residues by their frequencies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.sequences.conservation import RESIDUES, conservation, information_content, residue_codes, residue_counts
from proteoscope.engine.sequences.stack import OUTSIDE, Stack

__all__ = ["MAXIMUM_BITS", "MINIMUM_SEQUENCES", "SCHEMES", "ColouredStack", "StackLogo", "StackScheme", "scheme_named", "stack_colours"]

Colours = NDArray[np.uint8]

_GAP = ord("-")

_HYDROPATHY = {
    "I": 4.5,
    "V": 4.2,
    "L": 3.8,
    "F": 2.8,
    "C": 2.5,
    "M": 1.9,
    "A": 1.8,
    "G": -0.4,
    "T": -0.7,
    "S": -0.8,
    "W": -0.9,
    "Y": -1.3,
    "P": -1.6,
    "H": -3.2,
    "E": -3.5,
    "Q": -3.5,
    "D": -3.5,
    "N": -3.5,
    "K": -3.9,
    "R": -4.5,
}
_ZAPPO = {"ILVAM": "ffafaf", "FWY": "ffc800", "KRH": "6464ff", "DE": "ff0000", "STNQ": "00ff00", "PG": "ff00ff", "C": "ffff00"}
_TAYLOR = {
    "A": "ccff00",
    "R": "0000ff",
    "N": "cc00ff",
    "D": "ff0000",
    "C": "ffff00",
    "Q": "ff00cc",
    "E": "ff0066",
    "G": "ff9900",
    "H": "0066ff",
    "I": "66ff00",
    "L": "33ff00",
    "K": "6600ff",
    "M": "00ff00",
    "F": "00ff66",
    "P": "ffcc00",
    "S": "ff3300",
    "T": "ff6600",
    "W": "00ccff",
    "Y": "00ffcc",
    "V": "99ff00",
}
_SAME = ((0.8, "6464ff"), (0.6, "9999ff"), (0.4, "ccccff"), (0.0, "e6e6ff"))
"""Colours of residues that equal the query's residue, by the minimum fraction of such rows in the column."""
_CLUSTAL_COLOURS = {
    "orange": "e6994d",
    "yellow": "cccc00",
    "green": "1acc1a",
    "blue": "1a80e6",
    "cyan": "1ab3b3",
    "pink": "e68080",
    "magenta": "cc4dcc",
    "red": "e6331a",
}
_GROUPS = {
    "%": ("WLVIMAFCYHP", 0.6),
    "#": ("WLVIMAFCYHP", 0.8),
    "-": ("ED", 0.5),
    "+": ("KR", 0.6),
    "g": ("G", 0.5),
    "n": ("N", 0.5),
    "q": ("QE", 0.5),
    "p": ("P", 0.5),
    "t": ("TS", 0.5),
    "s": ("S", 0.5),
    **{residue: (residue, 0.85) for residue in "ACDEFGHIKLMNPQRSTVWY"},
}
"""Residue groups of Clustal X: residues, and the minimum fraction of rows in a column with any of them."""
_WATER_SHY = "%#ACFHILMVWYPp"
_RULES = (
    ("G", "orange", ""),
    ("P", "yellow", ""),
    ("T", "green", "tST%#"),
    ("S", "green", "tST#"),
    ("N", "green", "nND"),
    ("Q", "green", "qQE+KR"),
    *((residue, "blue", _WATER_SHY) for residue in "WLVIMF"),
    ("A", "blue", _WATER_SHY + "TSsG"),
    ("C", "blue", "%#AFHILMVWYSPp"),
    ("C", "pink", "C"),
    ("H", "cyan", _WATER_SHY),
    ("Y", "cyan", _WATER_SHY),
    ("E", "magenta", "-DEqQ"),
    ("D", "magenta", "-DEnN"),
    ("K", "red", "+KRQ"),
    ("R", "red", "+KRQ"),
)
"""Rules of Clustal X: residue, colour, and groups (the column must have one of them); later rules override earlier ones."""


@dataclass(frozen=True)
class StackScheme:
    """Colour scheme: name, title, description, and a function that returns the colours of a stack."""

    name: str
    title: str
    help: str
    colour: Callable[[Stack], Colours]


@dataclass(frozen=True)
class ColouredStack:
    """Stack of alignments with colours, with or without the columns of insertions.

    Attributes
    ----------
    columns
        Drawn columns of the stack, shape (n,), int64.
    colours
        Colours of the drawn residues, shape (rows, n, 4), uint8; see `stack_colours`.
    grade
        Conservation of the drawn columns, 0 to 1, (n,), float64.
    logo
        Sequence logo of the drawn columns, or None for fewer than `MINIMUM_SEQUENCES` rows.
    follows_insertion
        True for residues after a hidden insertion, shape (rows, n); None if insertions are shown.
    """

    stack: Stack
    columns: NDArray[np.int64]
    colours: Colours
    grade: NDArray[np.float64]
    logo: StackLogo | None = None
    follows_insertion: NDArray[np.bool_] | None = None

    @classmethod
    def from_stack(cls, stack: Stack, scheme: str, *, has_insertions: bool = True) -> ColouredStack:
        """Return a stack with the colours of a scheme, given by its name in `SCHEMES`."""
        colours, grade = stack_colours(stack, scheme), conservation(stack.symbols)
        if has_insertions:
            return cls(stack, np.arange(stack.n_columns), colours, grade, StackLogo.from_symbols(stack.symbols, colours))
        columns = np.flatnonzero(~stack.is_opened)
        logo = StackLogo.from_symbols(stack.symbols[:, columns], colours[:, columns])
        return cls(stack, columns, colours[:, columns], grade[columns], logo, stack.follows_insertion)

    @cached_property
    def symbols(self) -> NDArray[np.uint8]:
        """Drawn residues, shape (rows, n), uint8 (ASCII)."""
        return self.stack.symbols[:, self.columns]

    @cached_property
    def query_place(self) -> NDArray[np.int64]:
        """Residue of the query in each drawn column, from 0, or -1 for none, (n,)."""
        return self.stack.query_place[self.columns]

    def text_at(self, row: int, position: int) -> str:
        """Return the tooltip of the cell in a row and a drawn column."""
        stack, column = self.stack, int(self.columns[position])
        symbols = stack.symbols[row]
        name = stack.query_name if row == 0 else stack.subjects.names[row - 1]
        query_place = int(stack.query_place[column])
        of_query = f"query {chr(stack.symbols[0, column])}{query_place + 1}" if query_place >= 0 else "an insertion"
        if symbols[column] == OUTSIDE:
            return f"{name}: not aligned here ({of_query})"
        before = int(np.count_nonzero((symbols[: column + 1] != _GAP) & (symbols[: column + 1] != OUTSIDE)))
        start = 0 if row == 0 else int(stack.subjects.subject_start[row - 1])
        of_hit = f"gap after {start + before}" if symbols[column] == _GAP else f"{chr(symbols[column])}{start + before}"
        insertion = self.follows_insertion is not None and self.follows_insertion[row, position]
        return f"{name}: {of_hit}{', after an insertion' if insertion else ''}, {of_query}, conservation {self.grade[position]:.2f}"


def stack_colours(stack: Stack, name: str) -> Colours:
    """Return the colours of a stack's residues in a scheme of `SCHEMES`, (rows, columns, 4), uint8.

    The values are red, green, blue and opacity. The opacity is 255, or 0 for residues without a colour.
    """
    return scheme_named(name).colour(stack)


def scheme_named(name: str) -> StackScheme:
    """Return the scheme of `SCHEMES` with a name."""
    return {scheme.name: scheme for scheme in SCHEMES}[name]


def _rgba(text: str) -> tuple[int, int, int, int]:
    return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16), 255


def _of_residues(colours: dict[str, tuple[int, int, int, int]]) -> Callable[[Stack], Colours]:
    """Return a function that colours the cells of a stack by their residues only, not by other rows of the column."""
    table = np.zeros((256, 4), np.uint8)
    for residues, colour in colours.items():
        table[[ord(residue) for residue in residues]] = colour
    return lambda stack: table[stack.symbols]


def _hydropathy_colour(value: float) -> tuple[int, int, int, int]:
    fraction = (value + 4.5) / 9
    return round(255 * fraction), 0, round(255 * (1 - fraction)), 255


def _by_identity(stack: Stack) -> Colours:
    is_same = (stack.symbols == stack.symbols[0]) & ~stack.is_opened
    fraction = is_same.sum(0) / len(stack)
    of_column = np.zeros((2, stack.n_columns, 4), np.uint8)
    for least, colour in reversed(_SAME):
        of_column[1, fraction >= least] = _rgba(colour)
    colours: NDArray[np.uint8] = of_column[is_same.astype(np.int8), np.arange(stack.n_columns)]
    return colours


def _by_clustal(stack: Stack) -> Colours:
    # Fractions of all rows, including those with a gap.
    shares = dict(zip(RESIDUES, residue_counts(stack.symbols) / len(stack), strict=True))
    is_there = {name: sum(shares[residue] for residue in residues) >= least for name, (residues, least) in _GROUPS.items()}
    of_residue = np.zeros((len(RESIDUES) + 1, stack.n_columns, 4), np.uint8)
    for residue, colour, groups in _RULES:
        columns = np.any([is_there[group] for group in groups], axis=0) if groups else np.ones(stack.n_columns, np.bool_)
        of_residue[RESIDUES.index(residue), columns] = _rgba(_CLUSTAL_COLOURS[colour])
    return of_residue[residue_codes(stack.symbols), np.arange(stack.n_columns)]


SCHEMES: tuple[StackScheme, ...] = tuple(
    starmap(
        StackScheme,
        (
            (
                "clustal",
                "Clustal X",
                "By type of residue, in columns with enough residues of the type (Thompson et al. 1997, NAR 25:4876)",
                _by_clustal,
            ),
            ("identity", "Identity", "Residues identical to the query's, darker if more rows have them", _by_identity),
            (
                "zappo",
                "Zappo",
                "By chemistry: aliphatic, aromatic, positive, negative, hydrophilic, proline and glycine, cysteine",
                _of_residues({residues: _rgba(colour) for residues, colour in _ZAPPO.items()}),
            ),
            (
                "taylor",
                "Taylor",
                "A colour for each residue; similar residues have similar colours (Taylor 1997, Protein Eng. 10:743)",
                _of_residues({residue: _rgba(colour) for residue, colour in _TAYLOR.items()}),
            ),
            (
                "hydrophobicity",
                "Hydrophobicity",
                "From blue (hydrophilic) to red (hydrophobic) (Kyte & Doolittle 1982, J. Mol. Biol. 157:105)",
                _of_residues({residue: _hydropathy_colour(value) for residue, value in _HYDROPATHY.items()}),
            ),
            ("none", "None", "Residues without colours", lambda stack: np.zeros((*stack.symbols.shape, 4), np.uint8)),
        ),
    )
)
"""Colour schemes, the default first."""


MAXIMUM_BITS = float(np.log2(len(RESIDUES)))
"""Maximum information content of a column, bits."""
MINIMUM_SEQUENCES = 5
"""Minimum number of rows for a logo; with four, the small-sample correction would leave at most 0.9 of 4.3 bits."""


@dataclass(frozen=True)
class StackLogo:
    """Symbols of a sequence logo (Schneider & Stephens 1990).

    Attributes
    ----------
    bits
        Height in bits of each residue of `RESIDUES` in each column, shape (20, n), float64: the information content of the column,
        multiplied by the fraction of the residue.
    counts
        Number of rows with each residue, shape (20, n), float64.
    colours
        Colours of the residues in the stack, shape (20, n, 4), uint8.
    """

    bits: NDArray[np.float64]
    counts: NDArray[np.float64]
    colours: NDArray[np.uint8]

    @classmethod
    def from_symbols(cls, symbols: NDArray[np.uint8], colours: NDArray[np.uint8]) -> StackLogo | None:
        """Return the logo of symbols (rows, n) with colours (rows, n, 4); None for fewer than `MINIMUM_SEQUENCES` rows."""
        if len(symbols) < MINIMUM_SEQUENCES:
            return None
        counts = residue_counts(symbols)
        columns = np.arange(symbols.shape[1])
        of_residue = np.zeros((len(RESIDUES) + 1, len(columns), 4), np.uint8)
        # Schemes colour by residue and column: equal residues of a column have the same colour.
        for row_symbols, row_colours in zip(symbols, colours, strict=True):
            of_residue[residue_codes(row_symbols), columns] = row_colours
        bits = information_content(counts) * counts / np.maximum(counts.sum(0), 1)
        return cls(bits, counts, of_residue[:-1])

    def text_at(self, column: int) -> str:
        """Return the tooltip of a column: its information content and its residues, most frequent first."""
        counts = self.counts[:, column]
        n = int(counts.sum())
        if not n:
            return "no residue"
        order = np.argsort(-counts, kind="stable")
        shares = ", ".join(f"{RESIDUES[residue]} {counts[residue] / n:.0%}" for residue in order.tolist() if counts[residue])
        return f"{self.bits[:, column].sum():.2f} of {MAXIMUM_BITS:.2f} bits, {n} residue{'' if n == 1 else 's'}: {shares}"
