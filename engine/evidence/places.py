"""Places of peptides in proteins, and what is known of each residue by them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.arrays import offsets_of
from engine.evidence.identified_peptides import IdentifiedPeptides, ProteinEntry

__all__ = ["Places", "ResidueEvidence", "Site", "places_of", "residue_evidence", "sites_of"]

_SEED = 4
"""Letters by which places are looked for; no peptide is shorter, or it is looked for by itself."""


@dataclass(frozen=True)
class Places:
    """p places: `peptide` (p,) of `IdentifiedPeptides`, `protein` (p,), `start` and `end` (p,) residues from 0, the end not included; by
    protein, start and peptide."""

    peptide: NDArray[np.int64]
    protein: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.peptide)


@dataclass(frozen=True)
class ResidueEvidence:
    """Of each residue of all proteins, one after another (`offsets` (proteins + 1,)): n_peptides, n_psms (r,) int64 and the least q-value
    (r,) float64, NaN where no peptide lies."""

    offsets: NDArray[np.int64]
    n_peptides: NDArray[np.int64]
    n_psms: NDArray[np.int64]
    q_value: NDArray[np.float64]


@dataclass(frozen=True)
class Site:
    """A modified residue: of `protein`, at `position` from 0, with what it carries, from which peptidoforms.

    `n_psms`: of the peptidoforms that carry it there. `probability`: of the surest, NaN where nobody computed one.
    """

    protein: int
    position: int
    name: str
    mass: float
    n_psms: int
    n_peptides: int
    q_value: float
    probability: float


def places_of(peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry]) -> Places:
    """Every place of every peptide in every protein; leucine and isoleucine, of equal mass, are the same."""
    # All proteins are one text, between whose parts stands what no peptide has.
    text = "\0".join(one.sequence for one in proteins).replace("I", "L")
    starts = offsets_of(np.array([len(one.sequence) + 1 for one in proteins], np.int64))[:-1]
    of_sequence: dict[str, list[int]] = {}
    for number, sequence in enumerate(peptides.sequences):
        of_sequence.setdefault(sequence.replace("I", "L"), []).append(number)
    found = _occurrences(text, of_sequence)
    peptide = np.array([number for wanted, _ in found for number in of_sequence[wanted]], np.int64)
    place = np.array([at for wanted, at in found for _ in of_sequence[wanted]], np.int64)
    length = np.array([len(wanted) for wanted, _ in found for _ in of_sequence[wanted]], np.int64)
    protein = np.searchsorted(starts, place, side="right") - 1
    start = place - starts[protein] if len(place) else place
    order = np.lexsort((peptide, start, protein))
    return Places(peptide[order], protein[order], start[order], (start + length)[order])


def _occurrences(text: str, wanted: dict[str, list[int]]) -> list[tuple[str, int]]:
    """Where texts stand in one, overlapping ones too, in one pass: by their first letters, then by their lengths, whole."""
    by_seed: dict[str, dict[int, set[str]]] = {}
    found = []
    for one in wanted:
        if len(one) < _SEED:
            found += [(one, match.start()) for match in re.finditer(f"(?={re.escape(one)})", text)] if one else []
        else:
            by_seed.setdefault(one[:_SEED], {}).setdefault(len(one), set()).add(one)
    for at in range(len(text) - _SEED + 1):
        for length, some in by_seed.get(text[at : at + _SEED], {}).items():
            part = text[at : at + length]
            if part in some:
                found.append((part, at))
    return found


def residue_evidence(peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], places: Places) -> ResidueEvidence:
    """What lies on each residue."""
    offsets = offsets_of(np.array([len(one.sequence) for one in proteins], np.int64))
    first, last = offsets[places.protein] + places.start, offsets[places.protein] + places.end
    counts = []
    for weight in (np.ones(len(places), np.int64), peptides.n_psms[places.peptide]):
        steps = np.zeros(int(offsets[-1]) + 1, np.int64)
        np.add.at(steps, first, weight)
        np.subtract.at(steps, last, weight)
        counts.append(np.cumsum(steps)[:-1])
    q_value = np.full(int(offsets[-1]), np.nan)
    # The worst first, so that the best stays.
    for k in np.argsort(-peptides.q_value[places.peptide], kind="stable").tolist():
        q_value[first[k] : last[k]] = peptides.q_value[places.peptide[k]]
    return ResidueEvidence(offsets, counts[0], counts[1], q_value)


def sites_of(
    peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], places: Places, fixed: Collection[tuple[str, str]] = ()
) -> list[Site]:
    """Modified residues, by protein, position and name. What an end of a peptide carries is at its first or last residue.

    `fixed`: names with residues that all carry them, which say nothing of one of these, and are left out.
    """
    found: dict[tuple[int, int, str], list[tuple[int, float, float]]] = {}
    for peptide, protein, start, end in zip(*(column.tolist() for column in vars(places).values()), strict=True):
        for one in peptides.modifications[peptide]:
            position = min(max(start + one.position - 1, start), end - 1)
            if (one.name, proteins[protein].sequence[position]) in fixed:
                continue
            found.setdefault((protein, position, one.name), []).append((peptide, one.mass, one.probability))
    sites = []
    for (protein, position, name), own in sorted(found.items()):
        rows = np.unique([peptide for peptide, _, _ in own])
        known = [probability for _, _, probability in own if np.isfinite(probability)]
        sites.append(
            Site(
                protein, position, name, own[0][1], int(peptides.n_psms[rows].sum()), len(rows), float(peptides.q_value[rows].min()),
                max(known, default=float("nan")),
            )
        )  # fmt: skip
    return sites
