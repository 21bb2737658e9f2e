"""What a scientist asks of evidence on a structure: where sites lie, what could touch, what was missed, which paralogue is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.arrays import ranges
from engine.chemistry.enzymes import ENZYMES, cleavage_sites
from engine.chemistry.masses import sequence_mass
from engine.evidence.identified_peptides import IdentifiedPeptides, ProteinEntry
from engine.evidence.mapped_residues import MappedChain
from engine.evidence.places import Places, ResidueEvidence, Site

__all__ = ["MissedStretch", "Pair", "PlacedSite", "SharedPeptides", "missed_stretches", "near_pairs", "placed_sites", "shared_peptides"]

_PEPTIDE_LENGTHS = 7, 30
_PEPTIDE_MASS = 4600.0  # Da, about what is fragmented well
_NO_CUT = ("no cleavage", "unspecific cleavage", "peptidase K")
_MAXIMUM_HOLDERS = 100  # proteins of a peptide, beyond which it tells none of them from another
_MAXIMUM_OF_A_PROTEIN = 400  # modified residues and lysines whose pairs are looked at


class PlacedSite(NamedTuple):
    """A modified residue on the nearest chain that has it. `row`: of the chain, -1 where none has it. Distances in Å, NaN where nothing
    else is there: Cα to Cα of the nearest other site, and nearest atoms to a ligand's."""

    site: Site
    chain: int
    row: int
    exposure: float
    nearest_site: int
    site_distance: float
    ligand: str
    ligand_distance: float


class Pair(NamedTuple):
    """Two residues of a chain that are modified or lysines, and Å between their Cα and between their nearest side-chain atoms (NaN where
    these are not known)."""

    chain: int
    first: int
    second: int
    alpha_distance: float
    atom_distance: float


class MissedStretch(NamedTuple):
    """Residues `start` to `end` of a protein (from 0, the end not included) that no peptide covers. `enzymes`: those that would make the
    most of them visible, the best first, with how many residues."""

    protein: int
    start: int
    end: int
    n_mapped: int
    exposure: float
    enzymes: tuple[tuple[str, int], ...]


class SharedPeptides(NamedTuple):
    """Two proteins that share peptides: how many, and how many each has that the other has not."""

    protein: int
    other: int
    n_shared: int
    n_own: int
    n_of_other: int


def placed_sites(sites: Sequence[Site], mapped: Sequence[MappedChain]) -> list[PlacedSite]:
    """Each site on the nearest chain that has its residue."""
    of_protein: dict[int, list[int]] = {}
    for number, one in enumerate(mapped):
        of_protein.setdefault(one.near.protein, []).append(number)
    own_sites: dict[int, list[Site]] = {}
    for site in sites:
        own_sites.setdefault(site.protein, []).append(site)
    found = []
    for site in sites:
        chain, row = next(
            ((number, at) for number in of_protein.get(site.protein, ()) if (at := _row_of(mapped[number], site.position)) >= 0), (-1, -1)
        )
        if row < 0:
            found.append(PlacedSite(site, -1, -1, float("nan"), -1, float("nan"), "", float("nan")))
            continue
        one = mapped[chain]
        others = [
            (at, other.position)
            for other in own_sites[site.protein]
            if other.position != site.position and (at := _row_of(one, other.position)) >= 0
        ]
        nearest, distance = -1, float("nan")
        if others:
            apart = np.linalg.norm(one.chains.position[[at for at, _ in others]].astype(np.float64) - one.chains.position[row], axis=1)
            nearest, distance = others[int(apart.argmin())][1], float(apart.min())
        found.append(PlacedSite(site, chain, row, float(one.exposure[row]), nearest, distance, *_nearest_ligand(one, row)))
    return found


def _row_of(one: MappedChain, position: int) -> int:
    """The chain's residue under one of the protein, -1 where there is none."""
    pairs = one.near.pairs
    at = int(np.searchsorted(pairs[:, 0], position))
    return int(pairs[at, 1]) if at < len(pairs) and pairs[at, 0] == position else -1


def _atoms_of(one: MappedChain, row: int) -> NDArray[np.float64]:
    if one.atoms is None:
        return one.chains.position[row : row + 1].astype(np.float64)
    first, last = np.searchsorted(one.atoms.residue, (row, row + 1))
    own = one.atoms.position[first:last]
    return own if len(own) else one.chains.position[row : row + 1].astype(np.float64)


def _nearest_ligand(one: MappedChain, row: int) -> tuple[str, float]:
    ligands = one.ligands
    if not len(ligands.position):
        return "", float("nan")
    apart = np.linalg.norm(_atoms_of(one, row)[:, None] - ligands.position[None], axis=2).min(axis=0)
    nearest = int(apart.argmin())
    return ligands.names[int(ligands.ligand[nearest])], float(apart[nearest])


def near_pairs(proteins: Sequence[ProteinEntry], sites: Sequence[Site], mapped: Sequence[MappedChain], distance: float) -> list[Pair]:
    """Modified residues and lysines of each nearest chain whose Cα lie within a distance; `first` and `second` are rows of the chain."""
    positions: dict[int, set[int]] = {}
    for site in sites:
        positions.setdefault(site.protein, set()).add(site.position)
    found = []
    for number, one in enumerate(mapped):
        if one.near.rank > 1:
            continue
        letters = np.frombuffer(proteins[one.near.protein].sequence.encode(), np.uint8)
        pairs = one.near.pairs
        is_wanted = (letters[pairs[:, 0]] == ord("K")) | np.isin(pairs[:, 0], list(positions.get(one.near.protein, ())))
        rows = pairs[is_wanted, 1][:_MAXIMUM_OF_A_PROTEIN]
        places = one.chains.position[rows].astype(np.float64)
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        for a, b in zip(*np.nonzero(np.triu(apart <= distance, 1)), strict=True):
            first, second = int(rows[a]), int(rows[b])
            nearest = float("nan")
            if one.atoms is not None and one.atoms.is_whole[first] and one.atoms.is_whole[second]:
                nearest = float(np.linalg.norm(_atoms_of(one, first)[:, None] - _atoms_of(one, second)[None], axis=2).min())
            found.append(Pair(number, first, second, float(apart[a, b]), nearest))
    return found


def missed_stretches(
    proteins: Sequence[ProteinEntry], evidence: ResidueEvidence, mapped: Sequence[MappedChain], n_enzymes: int = 3
) -> list[MissedStretch]:
    """Stretches that no peptide covers, with the enzymes whose peptides, fully cut, would show most of their residues."""
    nearest = {one.near.protein: one for one in reversed(mapped) if one.near.rank == 1}
    found = []
    for number, protein in enumerate(proteins):
        is_missed = evidence.n_peptides[evidence.offsets[number] : evidence.offsets[number + 1]] == 0
        if not is_missed.any():
            continue
        exposure = np.full(len(is_missed), np.nan)
        is_mapped = np.zeros(len(is_missed), np.bool_)
        if number in nearest:
            pairs = nearest[number].near.pairs
            exposure[pairs[:, 0]], is_mapped[pairs[:, 0]] = nearest[number].exposure[pairs[:, 1]], True
        visible = {name: _visible(protein.sequence, name) for name in ENZYMES if name not in _NO_CUT}
        cuts = np.flatnonzero(np.diff(np.concatenate(([0], is_missed.astype(np.int8), [0]))))
        for start, end in cuts.reshape(-1, 2).tolist():
            shown = sorted(((name, int(seen[start:end].sum())) for name, seen in visible.items()), key=lambda one: -one[1])
            best = tuple(one for one in shown[:n_enzymes] if one[1])
            own = exposure[start:end]
            mean = float(np.nanmean(own)) if np.isfinite(own).any() else float("nan")
            found.append(MissedStretch(number, start, end, int(is_mapped[start:end].sum()), mean, best))
    return found


def _visible(sequence: str, name: str) -> NDArray[np.bool_]:
    """Residues that lie in a peptide of a length and mass that are usually seen, when all bonds are cut."""
    sites = cleavage_sites(sequence, ENZYMES[name])
    bounds = np.concatenate(([0], sites, [len(sequence)])).astype(np.int64)
    lengths = np.diff(bounds)
    is_seen = (lengths >= _PEPTIDE_LENGTHS[0]) & (lengths <= _PEPTIDE_LENGTHS[1])
    for k in np.flatnonzero(is_seen).tolist():
        mass = sequence_mass(sequence[bounds[k] : bounds[k + 1]])
        is_seen[k] = bool(mass <= _PEPTIDE_MASS)  # not a number where a residue is unknown
    shown = np.zeros(len(sequence), np.bool_)
    shown[ranges(bounds[:-1][is_seen], bounds[1:][is_seen])[1]] = True
    return shown


def shared_peptides(peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], places: Places) -> list[SharedPeptides]:
    """Proteins with peptides in common, and the sequences that each has alone."""
    bare = {name: number for number, name in enumerate(dict.fromkeys(one.replace("I", "L") for one in peptides.sequences))}
    of_form = np.array([bare[one.replace("I", "L")] for one in peptides.sequences], np.int64)
    sequences: list[set[int]] = [set() for _ in proteins]
    holders: dict[int, set[int]] = {}
    for peptide, protein in zip(places.peptide.tolist(), places.protein.tolist(), strict=True):
        sequences[protein].add(int(of_form[peptide]))
        holders.setdefault(int(of_form[peptide]), set()).add(protein)
    together: dict[tuple[int, int], int] = {}
    for some in holders.values():
        if len(some) > _MAXIMUM_HOLDERS:
            continue
        for a in sorted(some):
            for b in sorted(some):
                if a < b:
                    together[a, b] = together.get((a, b), 0) + 1
    return [
        SharedPeptides(a, b, n, len(sequences[a] - sequences[b]), len(sequences[b] - sequences[a]))
        for (a, b), n in sorted(together.items())
    ]
