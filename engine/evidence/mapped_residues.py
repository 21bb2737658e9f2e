"""Mapping of protein residues onto similar chains: numbering, secondary structure, exposure and neighbourhood.

Residues are mapped by the sequence alignment. If the numbering of the chain skips exactly as many residues as the protein has between two
mapped residues, these protein residues belong to the sequence of the chain, but have no coordinates. Otherwise, it is unknown whether they
belong to the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow, row_range, segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.evidence.identified_peptides import ProteinEntry
from proteoscope.engine.evidence.nearest_chains import SimilarChain
from proteoscope.engine.evidence.peptide_positions import ResidueEvidence
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.structure_search.structures import ChainFiles
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.exposure import GREATEST_AREA, ChainAtoms, Ligands, read_chain_atoms, residue_areas

__all__ = ["NO_ATOMS", "MappedChain", "MappedRows", "mapped_chains"]

_MAXIMUM_ERRORS_SHOWN = 5
_FARTHEST_SHIFT = 8  # maximum residues by which a gap is moved to a break in the chain's numbering
NO_ATOMS = Ligands(np.zeros((0, 3)), np.zeros(0, np.int64), ())


@dataclass(frozen=True)
class MappedChain:
    """Chain similar to a protein, with residue information from its structure file; r is the number of its residues.

    Attributes
    ----------
    near : SimilarChain
        Chain and its alignment with the protein.
    chains : Chains
        Columns of this chain only.
    path : Path
        Structure file of the chain.
    exposure : ndarray of float64, shape (r,)
        Fraction of each residue's maximum solvent-accessible area, NaN if unknown.
    atoms : ChainAtoms or None
        Heavy atoms of the chain; None if the file could not be read.
    unseen : ndarray of int64, shape (u,)
        Protein residues (from 0) that are in the sequence of the chain but have no coordinates.
    error : str
        Reason why the atoms could not be read, or ''.
    """

    near: SimilarChain
    chains: Chains
    path: Path
    exposure: NDArray[np.float64]
    atoms: ChainAtoms | None
    unseen: NDArray[np.int64]
    error: str = ""

    @property
    def ligands(self) -> Ligands:
        """Ligands in the structure file of the chain."""
        return NO_ATOMS if self.atoms is None else self.atoms.ligands


@dataclass(frozen=True, eq=False)
class MappedRows:
    """Protein residues mapped onto similar chains, m of them, ordered by chain and residue.

    Attributes
    ----------
    chain : ndarray of int64, shape (m,)
        Index of the mapped chain.
    protein_residue : ndarray of int64, shape (m,)
        Index of the protein residue among the residues of all proteins.
    position : ndarray of int64, shape (m,)
        Position in the protein, from 0.
    row : ndarray of int64, shape (m,)
        Index of the residue in the chain, from 0.
    exposure : ndarray of float64, shape (m,)
        Fraction of the residue's maximum solvent-accessible area, NaN if unknown.
    alpha : ndarray of float64, shape (m, 3)
        Cα position, Å.
    offsets : ndarray of int64, shape (chains + 1,)
        First row of each chain, followed by m.
    """

    chain: NDArray[np.int64]
    protein_residue: NDArray[np.int64]
    position: NDArray[np.int64]
    row: NDArray[np.int64]
    exposure: NDArray[np.float64]
    alpha: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @classmethod
    def from_chains(cls, mapped: Sequence[MappedChain], residues: ResidueEvidence) -> MappedRows:
        """Return the protein residues mapped onto the given chains; `residues` are the residues of all proteins."""
        lengths = np.array([len(chain.near.pairs) for chain in mapped], np.int64)
        pairs = np.concatenate([np.zeros((0, 2), np.int64), *(chain.near.pairs for chain in mapped)])
        chain = np.repeat(np.arange(len(mapped)), lengths)
        protein = np.array([chain.near.protein for chain in mapped], np.int64)
        return cls(
            chain,
            residues.offsets[protein[chain]] + pairs[:, 0],
            pairs[:, 0],
            pairs[:, 1],
            np.concatenate([np.zeros(0), *(chain.exposure[chain.near.pairs[:, 1]] for chain in mapped)]),
            np.concatenate([np.zeros((0, 3)), *(chain.chains.position[chain.near.pairs[:, 1]] for chain in mapped)]).astype(np.float64),
            segment_offsets(lengths),
        )

    def __len__(self) -> int:
        return len(self.row)

    def first_of(self, n_residues: int, wanted: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the row of each of `n_residues` protein residues on the nearest chain that has the residue, or -1.

        With the mask `wanted` (m,), only rows for which it is True count.
        """
        rows = np.arange(len(self)) if wanted is None else np.flatnonzero(wanted)
        result = np.full(n_residues, -1, np.int64)
        # Assignment in reverse order: the first row of each residue is written last.
        result[self.protein_residue[rows[::-1]]] = rows[::-1]
        return result


def mapped_chains(
    near: Sequence[SimilarChain], proteins: Sequence[ProteinEntry], source: ChainFiles, resources: Resources
) -> list[MappedChain]:
    """Return the similar chains with the exposure of residues, and their atoms and ligands; warn about unreadable files.

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    wanted = np.unique([similar.chain for similar in near]) if near else np.zeros(0, np.int64)
    taken = source.chains.taken(wanted)
    alone = {chain: taken.alone(position) for position, chain in zip(row_range(ChainRow, len(taken)), wanted.tolist(), strict=True)}
    by_file: dict[int, list[ChainRow]] = {}
    for chain in wanted.tolist():
        by_file.setdefault(int(source.file[chain]), []).append(chain)
    files = list(by_file.items())

    def read(chains_of_file: tuple[int, list[ChainRow]]) -> list[tuple[ChainRow, ChainAtoms | InputError, NDArray[np.float64]]]:
        file, chains = chains_of_file
        none = [np.full(len(alone[chain].residue), np.nan) for chain in chains]
        try:
            atoms = read_chain_atoms(source.paths[file], [alone[chain] for chain in chains])
        except InputError as error:
            return [(chain, error, blank) for chain, blank in zip(chains, none, strict=True)]
        good = [(position, atom) for position, atom in enumerate(atoms) if not isinstance(atom, InputError)]
        areas = residue_areas([chain_atoms for _, chain_atoms in good], [len(none[position]) for position, _ in good])
        for (position, _), area in zip(good, areas, strict=True):
            none[position] = np.minimum(1.0, area / GREATEST_AREA[alone[chains[position]].residue])
        return list(zip(chains, atoms, none, strict=True))

    resources.progress.stage("Reading the structures", len(files))
    result = {
        chain: (atoms, exposure)
        for some in run_on_threads(read, files, resources.threads, resources.progress)
        for chain, atoms, exposure in some
    }
    mapped, problems = [], list[str]()
    for similar in near:
        atoms, exposure = result[similar.chain]
        problem = str(atoms) if isinstance(atoms, InputError) else ""
        if problem and problem not in problems:
            problems.append(problem)
        chain_columns = alone[similar.chain]
        pairs = _with_gaps_at_breaks(similar.pairs, chain_columns, proteins[similar.protein].sequence)
        mapped.append(
            MappedChain(
                replace(similar, pairs=pairs),
                chain_columns,
                source.paths[int(source.file[similar.chain])],
                exposure,
                None if isinstance(atoms, InputError) else atoms,
                _missing_residues(pairs, chain_columns),
                problem,
            )
        )
    for text in problems[:_MAXIMUM_ERRORS_SHOWN]:
        resources.progress.message(f"Exposure and distances are not known: {text}", "warning")
    if len(problems) > _MAXIMUM_ERRORS_SHOWN:
        resources.progress.message(f"The atoms of {len(problems) - _MAXIMUM_ERRORS_SHOWN:,} more files could not be read", "warning")
    return mapped


def _with_gaps_at_breaks(pairs: NDArray[np.int64], chains: Chains, sequence: str) -> NDArray[np.int64]:
    """Return aligned pairs in which gaps of the chain are moved to nearby breaks in its residue numbering.

    A gap is moved only if the same number of residues match afterwards; the alignment places it arbitrarily among such positions.
    """
    missing = np.diff(pairs[:, 0]) - 1
    gaps = np.flatnonzero((missing > 0) & (np.diff(pairs[:, 1]) == 1))
    if not len(gaps):
        return pairs
    settled, number = pairs.copy(), chains.author_number.astype(np.int64)
    for k in gaps.tolist():
        length = int(missing[k])
        around = slice(max(0, k - _FARTHEST_SHIFT), k + _FARTHEST_SHIFT + 2)
        before = settled[around, 0].copy()
        for step in (1, -1):
            at = k
            for _ in range(_FARTHEST_SHIFT):
                rows = settled[at : at + 2, 1]
                if len(rows) < 2 or number[rows[1]] - number[rows[0]] - 1 == length:
                    break
                # Move the pair next to the gap to its other side, where the protein has the same residue.
                moved = at + 1 if step > 0 else at
                position, other = int(settled[moved, 0]), int(settled[moved, 0]) - step * length
                beyond = moved + step
                is_next = 0 <= beyond < len(settled) and settled[beyond, 1] == settled[moved, 1] + step
                if not is_next or settled[beyond, 0] != position + step or sequence[other] != sequence[position]:
                    at = -1
                    break
                settled[moved, 0] = other
                at += step
            rows = settled[at : at + 2, 1] if at >= 0 else settled[:0, 1]
            if len(rows) == 2 and number[rows[1]] - number[rows[0]] - 1 == length:
                break
            # No break found: restore the pairs.
            settled[around, 0] = before
    return settled


def _missing_residues(pairs: NDArray[np.int64], chains: Chains) -> NDArray[np.int64]:
    """Return the protein residues for which the chain has no coordinates, but a gap of the right length in its residue numbering."""
    before, after = pairs[:-1], pairs[1:]
    missing = after[:, 0] - before[:, 0] - 1
    is_gap = (missing > 0) & (after[:, 1] == before[:, 1] + 1)
    apart = [number[after[:, 1]].astype(np.int64) - number[before[:, 1]] - 1 for number in (chains.label_number, chains.author_number)]
    is_gap &= (apart[0] == missing) | ((apart[1] == missing) & (chains.insertion[after[:, 1]] == 0) & (chains.insertion[before[:, 1]] == 0))
    result = [np.arange(before[k, 0] + 1, after[k, 0]) for k in np.flatnonzero(is_gap).tolist()]
    return np.concatenate([np.zeros(0, np.int64), *result])
