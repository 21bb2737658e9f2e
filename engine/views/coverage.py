"""Where peptides lie in a protein."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.chemistry.peptidoforms import parse
from engine.errors import ParameterError

__all__ = ["Coverage", "PlacedPeptide", "cover"]


@dataclass(frozen=True)
class PlacedPeptide:
    """A peptide at its place: residues `start` to `end` of the protein, counted from 0, the end not included.

    `row` is its place in the peptides table, `lane` the line under the sequence that it is drawn on, `modifications` the residue of the
    protein (from 0) and the name of each.
    """

    row: int
    peptide: str
    start: int
    end: int
    lane: int
    n_psms: int
    q_value: float
    modifications: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Coverage:
    """A protein and its peptides.

    Attributes
    ----------
    title, description : of the protein. sequence : its n residues.
    peptides : by their first residue. covered : (n,) bool. modified : names of modifications by residue, from 0.
    """

    title: str
    sequence: str
    peptides: tuple[PlacedPeptide, ...]
    covered: NDArray[np.bool_]
    modified: dict[int, tuple[str, ...]]
    description: str = ""

    @property
    def fraction(self) -> float:
        """Part of the residues that is covered."""
        return float(self.covered.mean()) if len(self.covered) else 0.0


def cover(title: str, sequence: str, peptides: Iterable[Mapping[str, Any]], description: str = "") -> Coverage:
    """Place peptides in a protein, at every place where they fit; leucine and isoleucine, of equal mass, are the same.

    Parameters
    ----------
    peptides : with ``row``, ``peptide``, ``sequence``, ``n_psms`` and ``q_value``.

    Examples
    --------
    >>> peptide = {"row": 0, "peptide": "LEK", "sequence": "LEK", "n_psms": 2, "q_value": 0.001}
    >>> found = cover("P1", "MAIEKR", [peptide])
    >>> [(one.start, one.end) for one in found.peptides], found.fraction
    ([(2, 5)], 0.5)
    """
    alike = sequence.replace("I", "L")
    found: list[tuple[int, int, Mapping[str, Any]]] = []
    for peptide in peptides:
        wanted = str(peptide["sequence"]).replace("I", "L")
        # A look-ahead finds places that overlap, too.
        found += [(match.start(), match.start() + len(wanted), peptide) for match in re.finditer(f"(?={re.escape(wanted)})", alike)]
    found.sort(key=lambda one: (one[0], -one[1]))
    covered = np.zeros(len(sequence), np.bool_)
    modified: dict[int, list[str]] = {}
    lanes: list[int] = []
    placed = []
    for start, end, peptide in found:
        covered[start:end] = True
        changes = _modifications(str(peptide["peptide"]), start, end)
        for residue, name in changes:
            if name not in modified.setdefault(residue, []):
                modified[residue].append(name)
        # The first lane whose last peptide ended before; one residue stays free between two.
        lane = next((i for i, last in enumerate(lanes) if last < start), len(lanes))
        lanes[lane : lane + 1] = [end]
        q_value = peptide["q_value"]
        placed.append(
            PlacedPeptide(
                int(peptide["row"]), str(peptide["peptide"]), start, end, lane, int(peptide["n_psms"]),
                float("nan") if q_value is None else float(q_value), changes,
            )
        )  # fmt: skip
    return Coverage(title, sequence, tuple(placed), covered, {residue: tuple(names) for residue, names in modified.items()}, description)


def _modifications(peptide: str, start: int, end: int) -> tuple[tuple[int, str], ...]:
    try:
        placed = parse(peptide).modifications
    except ParameterError:
        return ()
    # Those of the ends are drawn at the first and the last residue.
    return tuple((min(max(start + position - 1, start), end - 1), name) for position, name, _ in placed)
