"""Positions of peptides in proteins, and the evidence of each residue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, run_offsets
from proteoscope.engine.evidence.identified_peptides import IdentifiedPeptides, ProteinEntry, known_sums
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fixed_modifications import C_END, N_END, NONE_FIXED, FixedModifications
from proteoscope.engine.peptides.occurrences import find_occurrences

__all__ = ["Places", "ResidueEvidence", "Sites", "find_modified_residues", "find_peptide_places", "proven_proteins", "residue_evidence"]


@dataclass(frozen=True, eq=False)
class Places:
    """p positions of peptides in proteins, by protein, start and peptide.

    Attributes
    ----------
    peptide : (p,)
        Row of `IdentifiedPeptides`.
    protein : (p,)
        Number of the protein.
    start, end : (p,)
        Residues from 0, the end excluded.
    """

    peptide: NDArray[np.int64]
    protein: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.peptide)


@dataclass(frozen=True, eq=False)
class ResidueEvidence:
    """Evidence of each residue of all proteins, concatenated by `offsets` (proteins + 1,).

    The residue (r,) uint8, n_peptides and n_psms (r,) int64, and the minimum q-value (r,) float64, NaN without peptides.
    """

    offsets: NDArray[np.int64]
    residue: NDArray[np.uint8]
    n_peptides: NDArray[np.int64]
    n_psms: NDArray[np.int64]
    q_value: NDArray[np.float64]

    @property
    def protein(self) -> NDArray[np.int64]:
        """(r,) the protein of each."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def share_of(self, is_so: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(proteins,) which part of each one's residues is so."""
        sums = np.concatenate(([0], np.cumsum(is_so)))[self.offsets]
        return np.diff(sums) / np.maximum(1, np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Sites:
    """n modified residues, by protein, position and name; each (n,).

    Attributes
    ----------
    protein
        Number of the protein.
    position
        From 0.
    name
        Index into `names`.
    mass
        Da.
    n_psms, n_peptides
        Spectra and peptidoforms with it.
    q_value
        Minimum of these.
    probability
        Site probability of the best, NaN if not computed.
    intensity
        Sum of precursor intensities, NaN if unknown.
    """

    protein: NDArray[np.int64]
    position: NDArray[np.int64]
    name: NDArray[np.int64]
    mass: NDArray[np.float64]
    n_psms: NDArray[np.int64]
    n_peptides: NDArray[np.int64]
    q_value: NDArray[np.float64]
    probability: NDArray[np.float64]
    intensity: NDArray[np.float64]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.protein)


def find_peptide_places(peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], progress: Progress | None = None) -> Places:
    """Return every position of every peptide in every protein; leucine and isoleucine, of equal mass, match.

    Raises
    ------
    Cancelled
        The user cancelled.
    """
    lengths = np.array([len(protein.sequence) for protein in proteins], np.int64)
    residues = "".join(protein.sequence for protein in proteins).replace("I", "L").encode()
    numbers: dict[str, int] = {}
    of_form = np.array([numbers.setdefault(sequence.replace("I", "L"), len(numbers)) for sequence in peptides.sequences], np.int64)
    result = find_occurrences([number.encode() for number in numbers], residues, run_offsets(lengths), progress or Progress())
    # Peptidoforms of the same residues lie where these do.
    by_sequence = np.argsort(of_form, kind="stable")
    first, last = (np.searchsorted(of_form[by_sequence], result.peptide, side) for side in ("left", "right"))
    offsets, forms = ranges(first, last)
    peptide = by_sequence[forms]
    protein, start = (np.repeat(column, np.diff(offsets)) for column in (result.sequence, result.start))
    end = start + np.array([len(sequence) for sequence in peptides.sequences], np.int64)[peptide]
    order = np.lexsort((peptide, start, protein))
    return Places(peptide[order], protein[order], start[order], end[order])


def proven_proteins(peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], progress: Progress) -> list[ProteinEntry]:
    """Return the proteins with a q-value, and those without one that hold an identified peptide."""
    unrated = [protein for protein in proteins if isnan(protein.q_value)]
    holding = (
        {id(unrated[number]) for number in np.unique(find_peptide_places(peptides, unrated, progress).protein).tolist()} if unrated else ()
    )
    return [protein for protein in proteins if not isnan(protein.q_value) or id(protein) in holding]


def residue_evidence(peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], places: Places) -> ResidueEvidence:
    """Return what lies on each residue."""
    symbols = np.frombuffer("".join(protein.sequence for protein in proteins).encode(), np.uint8)
    offsets = run_offsets(np.array([len(protein.sequence) for protein in proteins], np.int64))
    first, last = offsets[places.protein] + places.start, offsets[places.protein] + places.end
    n = len(symbols)
    counts = []
    for weight in (np.ones(len(places), np.int64), peptides.n_psms[places.peptide]):
        steps = np.zeros(n + 1, np.int64)
        np.add.at(steps, first, weight)
        np.subtract.at(steps, last, weight)
        counts.append(np.cumsum(steps)[:-1])
    # The worst first, so that the best stays.
    order = np.argsort(-peptides.q_value[places.peptide], kind="stable")
    spans, covered = ranges(first[order], last[order])
    q_value = np.full(n, np.nan)
    q_value[covered] = np.repeat(peptides.q_value[places.peptide[order]], np.diff(spans))
    return ResidueEvidence(offsets, symbols, counts[0], counts[1], q_value)


def find_modified_residues(
    peptides: IdentifiedPeptides, residues: ResidueEvidence, places: Places, fixed: FixedModifications = NONE_FIXED
) -> Sites:
    """Return the modified residues; terminal modifications belong to the first or last residue.

    `fixed` modifications, which all such residues or ends have, are excluded.
    """
    carried = peptides.modifications
    spans, rows = ranges(carried.offsets[places.peptide], carried.offsets[places.peptide + 1])
    place = np.repeat(np.arange(len(places)), np.diff(spans))
    start, end = places.start[place], places.end[place]
    position = np.clip(start + carried.position[rows] - 1, start, end - 1)
    protein, name = places.protein[place], carried.name[rows]
    is_fixed = np.zeros((len(carried.names) + 1, 256), np.bool_)
    number = {name: k for k, name in enumerate(carried.names)}
    ends = {N_END: 0, C_END: 1}  # not residues
    for text, where in fixed:
        is_fixed[number.get(text, len(carried.names)), ends[where] if where in ends else ord(where)] = True
    inside = start + carried.position[rows] - 1
    there = residues.residue[residues.offsets[protein] + position]
    retained = np.flatnonzero(~is_fixed[name, np.where(inside < start, 0, np.where(inside >= end, 1, there))])
    protein, position, name, rows, peptide = (
        protein[retained],
        position[retained],
        name[retained],
        rows[retained],
        places.peptide[place[retained]],
    )
    order = np.lexsort((peptide, name, position, protein))
    protein, position, name, rows, peptide = protein[order], position[order], name[order], rows[order], peptide[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(protein) != 0) | (np.diff(position) != 0) | (np.diff(name) != 0)
    # A peptidoform may carry the same twice where its ends are meant too.
    is_new = is_first.copy()
    is_new[1:] |= np.diff(peptide) != 0
    begins = np.flatnonzero(is_first)
    of_site = np.cumsum(is_first) - 1
    new = of_site[is_new]
    sums = known_sums(new, peptides.intensity[peptide[is_new]], len(begins))
    return Sites(
        protein[begins],
        position[begins],
        name[begins],
        carried.mass[rows[begins]],
        np.bincount(new, peptides.n_psms[peptide[is_new]], len(begins)).astype(np.int64),
        np.bincount(new, minlength=len(begins)),
        np.minimum.reduceat(peptides.q_value[peptide], begins) if len(begins) else np.zeros(0),
        np.fmax.reduceat(carried.probability[rows], begins) if len(begins) else np.zeros(0),
        sums,
        carried.names,
    )
