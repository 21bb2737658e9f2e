"""Peptides and database features along a protein."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.modifications import annotated_modification
from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.features import FEATURE_GROUPS, FEATURE_KINDS
from proteoscope.engine.matches.fixed_modifications import C_END, N_END, NONE_FIXED, FixedModifications

__all__ = [
    "CarriedModification",
    "Coverage",
    "PlacedPeptide",
    "ProteinFeature",
    "cover",
    "covered_by",
    "feature_lanes",
    "protein_features",
    "with_found_modifications",
]

LANES_OF_GROUP = 3
_GROUP_OF_KIND = {kind.name: kind.group for kind in FEATURE_KINDS}


@dataclass(frozen=True)
class PlacedPeptide:
    """Peptide at the residues `start` to `end` (exclusive) of a protein, counted from 0.

    `row` is the row of the peptide in the table of peptides, `lane` is the line below the sequence in which the peptide is drawn, and
    `modifications` contains the protein residue (from 0) and the name of each modification.
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
class ProteinFeature:
    """Annotated feature of a protein, such as a domain or a modified residue.

    Attributes
    ----------
    start, end
        First residue from 0, and end residue (exclusive).
    group
        Group of the feature's `kind`, one of `proteoscope.engine.formats.features.FEATURE_GROUPS`.
    is_found
        True for a modification that a peptide carries at this residue.
    """

    kind: str
    group: str
    start: int
    end: int
    description: str
    is_found: bool = False

    @property
    def text(self) -> str:
        """Description and position in one line."""
        position = f"residue {self.end}" if self.end == self.start + 1 else f"residues {self.start + 1} to {self.end}"
        result = ", found" if self.is_found else ""
        return f"{self.kind}{f': {self.description}' if self.description else ''} ({position}{result})"


@dataclass(frozen=True)
class Coverage:
    """Protein of n residues with its peptides and features.

    Attributes
    ----------
    title, description, accession
        Name, description and accession of the protein.
    sequence
        Residues of the protein.
    peptides
        Peptides, sorted by start position.
    covered : ndarray of bool, shape (n,)
        True for residues that a peptide covers.
    modified
        Names of the modifications by index of the modified residue, from 0.
    features
        Features annotated in the database.
    """

    title: str
    sequence: str
    peptides: tuple[PlacedPeptide, ...]
    covered: NDArray[np.bool_]
    modified: dict[int, tuple[str, ...]]
    description: str = ""
    features: tuple[ProteinFeature, ...] = ()
    accession: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups of the features, in the order of `FEATURE_GROUPS`."""
        there = {feature.group for feature in self.features}
        return tuple(group for group in FEATURE_GROUPS if group in there)

    @property
    def fraction(self) -> float:
        """Fraction of the residues that is covered, 0 to 1."""
        return float(self.covered.mean()) if len(self.covered) else 0.0


def cover(
    title: str, sequence: str, peptides: Iterable[Mapping[str, Any]], description: str = "", fixed: FixedModifications = NONE_FIXED
) -> Coverage:
    """Return the coverage of a protein by peptides, each at all positions at which it occurs; leucine and isoleucine count as equal.

    Parameters
    ----------
    peptides
        Peptides, each with ``row``, ``peptide``, ``sequence``, ``n_psms`` and ``q_value``.
    fixed
        Fixed modifications, which are not shown.

    Examples
    --------
    >>> peptide = {"row": 0, "peptide": "LEK", "sequence": "LEK", "n_psms": 2, "q_value": 0.001}
    >>> coverage = cover("P1", "MAIEKR", [peptide])
    >>> [(peptide.start, peptide.end) for peptide in coverage.peptides], coverage.fraction
    ([(2, 5)], 0.5)
    """
    alike = sequence.replace("I", "L")
    result: list[tuple[int, int, Mapping[str, Any]]] = []
    for peptide in peptides:
        wanted = str(peptide["sequence"]).replace("I", "L")
        # A look-ahead also finds overlapping matches.
        result += [(match.start(), match.start() + len(wanted), peptide) for match in re.finditer(f"(?={re.escape(wanted)})", alike)]
    return covered_by(title, sequence, result, description, lambda modification: (modification.name, modification.where) not in fixed)


class CarriedModification(NamedTuple):
    """Modification of a peptide in a protein: protein residue (from 0), name, mass (Da) and carrier.

    The carrier is a residue symbol or an end of the peptide (`proteoscope.engine.matches.fixed_modifications`).
    """

    residue: int
    name: str
    mass: float
    where: str


def _is_any(modification: CarriedModification) -> bool:
    return True


def covered_by(
    title: str,
    sequence: str,
    peptides: Iterable[tuple[int, int, Mapping[str, Any]]],
    description: str = "",
    is_shown: Callable[[CarriedModification], bool] = _is_any,
) -> Coverage:
    """Return the coverage of a protein by peptides at known positions.

    Parameters
    ----------
    peptides
        First residue (from 0), end (exclusive) and peptide (see `cover`) of each position.
    is_shown
        Function that selects the modifications to mark.
    """
    covered = np.zeros(len(sequence), np.bool_)
    modified: dict[int, list[str]] = {}
    lanes: list[int] = []
    placed = []
    for start, end, peptide in sorted(peptides, key=lambda placed: (placed[0], -placed[1])):
        covered[start:end] = True
        changes = tuple(
            (modification.residue, modification.name)
            for modification in _modifications(str(peptide["peptide"]), start, end)
            if is_shown(modification)
        )
        for residue, name in changes:
            if name not in modified.setdefault(residue, []):
                modified[residue].append(name)
        # Use the first lane whose last peptide leaves at least one residue free before this peptide.
        lane = next((i for i, last in enumerate(lanes) if last < start), len(lanes))
        lanes[lane : lane + 1] = [end]
        q_value = peptide["q_value"]
        placed.append(
            PlacedPeptide(
                int(peptide["row"]),
                str(peptide["peptide"]),
                start,
                end,
                lane,
                int(peptide["n_psms"]),
                float("nan") if q_value is None else float(q_value),
                changes,
            )
        )
    modified_residues = {residue: tuple(names) for residue, names in modified.items()}
    return Coverage(title, sequence, tuple(placed), covered, modified_residues, description, accession=title)


def protein_features(rows: Iterable[Mapping[str, Any]], length: int) -> tuple[ProteinFeature, ...]:
    """Return the features in rows of a table; features of unknown kinds, and features outside the residues 1 to `length`, are omitted."""
    return tuple(
        ProteinFeature(row["kind"], _GROUP_OF_KIND[row["kind"]], row["first"] - 1, row["last"], row["description"])
        for row in rows
        if row["kind"] in _GROUP_OF_KIND and 1 <= row["first"] <= row["last"] <= length
    )


def with_found_modifications(coverage: Coverage) -> Coverage:
    """Return the coverage, with `is_found` True for annotated modifications that a peptide carries at the same residue.

    >>> phosphorylation = ProteinFeature("modified residue", "modification", 2, 3, "Phosphoserine; by PKA")
    >>> peptide = {"row": 0, "peptide": "S[Phospho]EK", "sequence": "SEK", "n_psms": 2, "q_value": 0.001}
    >>> coverage = with_found_modifications(replace(cover("P1", "MASEKR", [peptide]), features=(phosphorylation,)))
    >>> coverage.features[0].text
    'modified residue: Phosphoserine; by PKA (residue 3, found)'
    """

    def is_found(feature: ProteinFeature) -> bool:
        named = annotated_modification(feature.description, coverage.sequence[feature.start]) if feature.end == feature.start + 1 else None
        return named is not None and named.name in coverage.modified.get(feature.start, ())

    features = (
        replace(feature, is_found=True) if feature.group == "modification" and is_found(feature) else feature
        for feature in coverage.features
    )
    return replace(coverage, features=tuple(features))


def feature_lanes(features: Collection[ProteinFeature], groups: Collection[str]) -> list[tuple[int, ProteinFeature]]:
    """Return the features of the given groups, each with the line of the drawing (lane, from 0) in which it is drawn.

    Each group has separate lanes, at most `LANES_OF_GROUP`; in the last lane of a group, features may overlap.

    >>> chain, helix = ProteinFeature("chain", "chain", 0, 9, ""), ProteinFeature("helix", "secondary structure", 2, 4, "")
    >>> [(lane, feature.kind) for lane, feature in feature_lanes([helix, chain, chain], FEATURE_GROUPS)]
    [(0, 'chain'), (1, 'chain'), (2, 'helix')]
    """
    placed: list[tuple[int, ProteinFeature]] = []
    n_lanes = 0
    for group in (group for group in FEATURE_GROUPS if group in groups):
        ends: list[int] = []
        for feature in sorted(
            (feature for feature in features if feature.group == group), key=lambda feature: (feature.start, -feature.end)
        ):
            lane = next((i for i, end in enumerate(ends) if end <= feature.start), len(ends))
            ends[lane : lane + 1] = [feature.end]
            placed.append((n_lanes + min(lane, LANES_OF_GROUP - 1), feature))
        n_lanes += min(len(ends), LANES_OF_GROUP)
    return placed


def _modifications(peptide: str, start: int, end: int) -> list[CarriedModification]:
    try:
        parsed = parse(peptide)
    except ParameterError:
        return []
    n = len(parsed.sequence)
    # Terminal modifications are drawn at the first or last residue.
    return [
        CarriedModification(
            min(max(start + at - 1, start), end - 1), name, mass, N_END if at < 1 else C_END if at > n else parsed.sequence[at - 1]
        )
        for at, name, mass in parsed.modifications
    ]
