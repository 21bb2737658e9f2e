"""Positions of peptides in proteins, and the evidence of each residue."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, ranges, segment_offsets
from proteoscope.engine.evidence.identified_peptides import IdentifiedPeptides, ProteinEntry, known_sums
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fixed_modifications import C_END, N_END, NONE_FIXED, FixedModifications
from proteoscope.engine.peptides.occurrences import find_occurrences

__all__ = [
    "PeptidePositions",
    "ResidueEvidence",
    "Sites",
    "find_modified_residues",
    "find_peptide_positions",
    "proven_proteins",
    "residue_evidence",
]


@dataclass(frozen=True, eq=False)
class PeptidePositions:
    """Positions of peptides in proteins, p of them, ordered by protein, start and peptide.

    Attributes
    ----------
    peptide : ndarray of int64, shape (p,)
        Row of the peptide in `IdentifiedPeptides`.
    protein : ndarray of int64, shape (p,)
        Index of the protein.
    start, end : ndarray of int64, shape (p,)
        First residue from 0, and one past the last.
    """

    peptide: NDArray[np.int64]
    protein: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.peptide)


@dataclass(frozen=True, eq=False)
class ResidueEvidence:
    """Evidence of the r residues of all proteins, concatenated.

    Attributes
    ----------
    offsets : ndarray of int64, shape (proteins + 1,)
        Start of each protein in the other columns, followed by r.
    residue : ndarray of uint8, shape (r,)
        Amino acid as ASCII code.
    n_peptides, n_psms : ndarray of int64, shape (r,)
        Numbers of peptides that cover the residue, and of PSMs of these peptides.
    q_value : ndarray of float64, shape (r,)
        Minimum q-value of these peptides, NaN without peptides.
    """

    offsets: NDArray[np.int64]
    residue: NDArray[np.uint8]
    n_peptides: NDArray[np.int64]
    n_psms: NDArray[np.int64]
    q_value: NDArray[np.float64]

    @property
    def protein(self) -> NDArray[np.int64]:
        """Index of the protein of each residue, shape (r,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def share_of(self, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the fraction of the residues of each protein for which the mask `mask` (r,) is True; (proteins,) float64."""
        sums = np.concatenate(([0], np.cumsum(mask)))[self.offsets]
        return np.diff(sums) / np.maximum(1, np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Sites:
    """Modified residues, n of them, ordered by protein, position and name.

    Attributes
    ----------
    protein : ndarray of int64, shape (n,)
        Index of the protein.
    position : ndarray of int64, shape (n,)
        Position in the protein, from 0.
    name : ndarray of int64, shape (n,)
        Index of the modification's name in `names`.
    mass : ndarray of float64, shape (n,)
        Mass of the modification in dalton.
    n_psms, n_peptides : ndarray of int64, shape (n,)
        Number of spectra and of peptidoforms with the modified residue.
    q_value : ndarray of float64, shape (n,)
        Minimum q-value of these spectra.
    probability : ndarray of float64, shape (n,)
        Highest localisation probability, NaN if not computed.
    is_alternative : ndarray of bool, shape (n,)
        True if all peptidoforms have the modification at another, more likely site.
    intensity : ndarray of float64, shape (n,)
        Sum of precursor intensities, NaN if unknown.
    names : tuple of str
        Names of the modifications.
    """

    protein: NDArray[np.int64]
    position: NDArray[np.int64]
    name: NDArray[np.int64]
    mass: NDArray[np.float64]
    n_psms: NDArray[np.int64]
    n_peptides: NDArray[np.int64]
    q_value: NDArray[np.float64]
    probability: NDArray[np.float64]
    is_alternative: NDArray[np.bool_]
    intensity: NDArray[np.float64]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.protein)

    def residues_in(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the residues of the sites, without alternatives, as indices in the concatenated residues of all proteins.

        Protein i begins at residue ``offsets[i]``.
        """
        return (offsets[self.protein] + self.position)[~self.is_alternative]


def find_peptide_positions(
    peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], progress: Progress | None = None
) -> PeptidePositions:
    """Return all positions of each peptide in all proteins; leucine and isoleucine match each other.

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    lengths = np.array([len(protein.sequence) for protein in proteins], np.int64)
    residues = "".join(protein.sequence for protein in proteins).replace("I", "L").encode()
    numbers: dict[str, int] = {}
    of_form = np.array([numbers.setdefault(sequence.replace("I", "L"), len(numbers)) for sequence in peptides.sequences], np.int64)
    result = find_occurrences([number.encode() for number in numbers], residues, segment_offsets(lengths), progress or Progress())
    # Peptidoforms with equal sequences have the same positions.
    by_sequence = np.argsort(of_form, kind="stable")
    first, last = (np.searchsorted(of_form[by_sequence], result.peptide, side) for side in ("left", "right"))
    offsets, forms = ranges(first, last)
    peptide = by_sequence[forms]
    protein, start = (np.repeat(column, np.diff(offsets)) for column in (result.sequence, result.start))
    end = start + np.array([len(sequence) for sequence in peptides.sequences], np.int64)[peptide]
    order = np.lexsort((peptide, start, protein))
    return PeptidePositions(peptide[order], protein[order], start[order], end[order])


def proven_proteins(peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], progress: Progress) -> list[ProteinEntry]:
    """Return the proteins, except those that have neither a q-value nor an identified peptide."""
    unrated = [protein for protein in proteins if isnan(protein.q_value)]
    holding = (
        {id(unrated[number]) for number in np.unique(find_peptide_positions(peptides, unrated, progress).protein).tolist()}
        if unrated
        else ()
    )
    return [protein for protein in proteins if not isnan(protein.q_value) or id(protein) in holding]


def residue_evidence(peptides: IdentifiedPeptides, proteins: Sequence[ProteinEntry], positions: PeptidePositions) -> ResidueEvidence:
    """Return the evidence of each residue."""
    symbols = np.frombuffer("".join(protein.sequence for protein in proteins).encode(), np.uint8)
    offsets = segment_offsets(np.array([len(protein.sequence) for protein in proteins], np.int64))
    first, last = offsets[positions.protein] + positions.start, offsets[positions.protein] + positions.end
    n = len(symbols)
    counts = []
    for weight in (np.ones(len(positions), np.int64), peptides.n_psms[positions.peptide]):
        steps = np.zeros(n + 1, np.int64)
        np.add.at(steps, first, weight)
        np.subtract.at(steps, last, weight)
        counts.append(np.cumsum(steps)[:-1])
    # Descending q-values, so that the smallest is written last.
    order = np.argsort(-peptides.q_value[positions.peptide], kind="stable")
    spans, covered = ranges(first[order], last[order])
    q_value = np.full(n, np.nan)
    q_value[covered] = np.repeat(peptides.q_value[positions.peptide[order]], np.diff(spans))
    return ResidueEvidence(offsets, symbols, counts[0], counts[1], q_value)


def find_modified_residues(
    peptides: IdentifiedPeptides, residues: ResidueEvidence, positions: PeptidePositions, fixed: FixedModifications = NONE_FIXED
) -> Sites:
    """Return the modified residues; terminal modifications belong to the first or last residue.

    The modifications in `fixed` are excluded.
    """
    carried = peptides.modifications
    spans, rows = ranges(carried.offsets[positions.peptide], carried.offsets[positions.peptide + 1])
    index = np.repeat(np.arange(len(positions)), np.diff(spans))
    start, end = positions.start[index], positions.end[index]
    position = np.clip(start + carried.position[rows] - 1, start, end - 1)
    protein, name = positions.protein[index], carried.name[rows]
    is_fixed = np.zeros((len(carried.names) + 1, 256), np.bool_)
    number = {name: k for k, name in enumerate(carried.names)}
    ends = {N_END: 0, C_END: 1}  # codes that no residue has
    for text, where in fixed:
        is_fixed[number.get(text, len(carried.names)), ends[where] if where in ends else ord(where)] = True
    inside = start + carried.position[rows] - 1
    residue_at = residues.residue[residues.offsets[protein] + position]
    retained = np.flatnonzero(~is_fixed[name, np.where(inside < start, 0, np.where(inside >= end, 1, residue_at))])
    protein, position, name, rows, peptide = (
        protein[retained],
        position[retained],
        name[retained],
        rows[retained],
        positions.peptide[index[retained]],
    )
    is_alternative = carried.is_alternative[rows]
    order = np.lexsort((peptide, is_alternative, name, position, protein))
    is_first = is_group_start(protein[order], position[order], name[order])
    # If the site of one peptidoform is an alternative in another peptidoform, the evidence of the latter is not counted.
    of_alternative = is_alternative[order][np.flatnonzero(is_first)][np.cumsum(is_first) - 1]
    order = order[is_alternative[order] == of_alternative]
    protein, position, name, rows, peptide = protein[order], position[order], name[order], rows[order], peptide[order]
    is_first = is_group_start(protein, position, name)
    # A peptidoform may carry the same modification at a terminus and at its residue.
    is_new = is_group_start(protein, position, name, peptide)
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
        carried.is_alternative[rows[begins]],
        sums,
        carried.names,
    )
