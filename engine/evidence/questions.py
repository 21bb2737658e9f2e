"""Analyses of evidence on structures: modified sites, possible contacts, uncovered residues and paralogues."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, row_mask, take_segments
from proteoscope.engine.chemistry.enzymes import ENZYMES, cleavage_sites
from proteoscope.engine.chemistry.masses import RESIDUE_MASS, WATER_MASS
from proteoscope.engine.evidence.identified_peptides import IdentifiedPeptides, ProteinEntry
from proteoscope.engine.evidence.mapped_residues import MappedChain, MappedRows
from proteoscope.engine.evidence.peptide_positions import PeptidePositions, ResidueEvidence, Sites
from proteoscope.engine.jobs.progress import Progress

__all__ = [
    "MappedSites",
    "Pairs",
    "SharedPeptides",
    "UncoveredRanges",
    "mapped_sites",
    "near_pairs",
    "shared_peptides",
    "uncovered_ranges",
]

_PEPTIDE_LENGTHS = 7, 30
_PEPTIDE_MASS = 4600.0  # Da, maximum mass of peptides that usually fragment well
_NO_CUT = ("no cleavage", "unspecific cleavage", "peptidase K")
_EQUIVALENT_ENZYMES = (
    "Trypsin/P",
    "Lys-C/P",
    "V8-E",
)  # these are variants of other enzymes in the list
_MAXIMUM_HOLDERS = 100  # proteins per peptide; a peptide in more proteins does not distinguish them
_MAXIMUM_OF_A_PROTEIN = 400  # modified residues and lysines per protein whose pairs are measured
_BLOCK = 1 << 20  # distances computed in one batch


@dataclass(frozen=True, eq=False)
class MappedSites:
    """Modified residues (n), each on the nearest chain that contains the residue.

    Attributes
    ----------
    row : ndarray of int64, shape (n,)
        Row of the residue in `MappedRows`, -1 if no chain has it.
    nearest_site : ndarray of int64, shape (n,)
        Protein position of the nearest other modified residue on the same chain, or -1.
    site_distance : ndarray of float64, shape (n,)
        Distance in Å between the Cα atoms of both modified residues, or NaN.
    ligand : tuple of str, length n
        Nearest ligand in the file of the chain, or ''.
    ligand_distance : ndarray of float64, shape (n,)
        Distance in Å between the nearest atoms of residue and ligand, or NaN.
    """

    row: NDArray[np.int64]
    nearest_site: NDArray[np.int64]
    site_distance: NDArray[np.float64]
    ligand: tuple[str, ...]
    ligand_distance: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of residues on one chain, n of them; each residue is modified or a lysine.

    Attributes
    ----------
    first, second : ndarray of int64, shape (n,)
        Rows of the two residues in `MappedRows`.
    is_modified : ndarray of bool, shape (n,)
        True if at least one residue is modified.
    alpha_distance : ndarray of float64, shape (n,)
        Distance between the Cα atoms in Å.
    atom_distance : ndarray of float64, shape (n,)
        Distance between the nearest atoms in Å, NaN if unknown.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    is_modified: NDArray[np.bool_]
    alpha_distance: NDArray[np.float64]
    atom_distance: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UncoveredRanges:
    """Ranges of protein residues without peptides, n of them.

    Attributes
    ----------
    protein : ndarray of int64, shape (n,)
        Index of the protein.
    start, end : ndarray of int64, shape (n,)
        First residue from 0, and one past the last.
    n_mapped : ndarray of int64, shape (n,)
        Number of residues of the range that are mapped onto the nearest chain.
    exposure : ndarray of float64, shape (n,)
        Mean known exposure of these residues, or NaN.
    enzyme : ndarray of int64, shape (n, k)
        Indices in `enzymes` of the enzymes whose completely digested peptides would cover the largest part of the range, best first.
    n_seen : ndarray of int64, shape (n, k)
        Number of residues that the peptides of each of these enzymes would cover, or 0.
    enzymes : tuple of str
        Names of the proposed enzymes.
    """

    protein: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    n_mapped: NDArray[np.int64]
    exposure: NDArray[np.float64]
    enzyme: NDArray[np.int64]
    n_seen: NDArray[np.int64]
    enzymes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SharedPeptides:
    """Pairs of proteins that share peptides, n of them, with the numbers of shared peptides and of peptides of only one of the proteins.

    Peptides in more than a hundred proteins are skipped.
    """

    protein: NDArray[np.int64]
    other: NDArray[np.int64]
    n_shared: NDArray[np.int64]
    n_own: NDArray[np.int64]
    n_of_other: NDArray[np.int64]


def mapped_sites(
    sites: Sites, residues: ResidueEvidence, mapped: Sequence[MappedChain], rows: MappedRows, progress: Progress
) -> MappedSites:
    """Map each modified residue onto the most similar chain that contains it."""
    position = residues.offsets[sites.protein] + sites.position
    row = rows.first_of(len(residues.residue))[position]
    n = len(sites)
    nearest, apart, to_ligand = np.full(n, -1, np.int64), np.full(n, np.nan), np.full(n, np.nan)
    ligand = [""] * n
    is_site = row_mask(len(residues.residue), sites.residues_in(residues.offsets))
    placed = np.flatnonzero(row >= 0)
    chain = rows.chain[row[placed]]
    progress.stage("Measuring distances of sites", len(np.unique(chain)))
    for number, members in _groups(chain):
        some = placed[members]
        first, last = int(rows.offsets[number]), int(rows.offsets[number + 1])
        # Include sites that are assigned to a nearer chain.
        others = first + np.flatnonzero(is_site[rows.protein_residue[first:last]])
        which, distance = _nearest(rows.alpha[row[some]], rows.alpha[others], row[some][:, None] == others[None])
        is_there = np.isfinite(distance)
        nearest[some[is_there]] = rows.position[others[which[is_there]]]
        apart[some[is_there]] = distance[is_there]
        mapped_chain = mapped[number]
        if len(mapped_chain.ligands.position):
            names, to_ligand[some] = _nearest_ligands(mapped_chain, rows.row[row[some]])
            for at, name in zip(some.tolist(), names, strict=True):
                ligand[at] = name
        progress.advance(1)
    return MappedSites(row, nearest, apart, tuple(ligand), to_ligand)


def _groups(key: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct key with the indices at which it occurs."""
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    for members in np.split(order, cuts) if len(order) else ():
        yield int(key[members[0]]), members


def _nearest(
    points: NDArray[np.float64], other: NDArray[np.float64], is_left_out: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return, for each of n points, the index of the nearest point in `other`, and the distance; infinite if there is none.

    Pairs for which `is_left_out` (n, others) is True are ignored.
    """
    if not len(other):
        return np.zeros(len(points), np.int64), np.full(len(points), np.inf)
    which, apart = np.zeros(len(points), np.int64), np.empty(len(points))
    step = max(1, _BLOCK // len(other))
    for first in range(0, len(points), step):
        some = slice(first, first + step)
        distance = np.linalg.norm(points[some, None] - other[None], axis=2)
        if is_left_out is not None:
            distance[is_left_out[some]] = np.inf
        which[some] = distance.argmin(axis=1)
        apart[some] = distance.min(axis=1)
    return which, apart


def _select_atoms(chain: MappedChain, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the positions of the heavy atoms of the residues `rows`, and the index in `rows` of each atom's residue, ascending.

    A residue without known heavy atoms is represented by its Cα position.
    """
    alpha = chain.chains.position[rows].astype(np.float64)
    if chain.atoms is None:
        return alpha, np.arange(len(rows))
    first, last = np.searchsorted(chain.atoms.residue, (rows, rows + 1))
    is_bare = first == last
    spans, atoms = ranges(first, last)
    position = np.concatenate((chain.atoms.position[atoms], alpha[is_bare]))
    owner = np.concatenate((np.repeat(np.arange(len(rows)), np.diff(spans)), np.flatnonzero(is_bare)))
    order = np.argsort(owner, kind="stable")
    return position[order], owner[order]


def _nearest_ligands(chain: MappedChain, rows: NDArray[np.int64]) -> tuple[list[str], NDArray[np.float64]]:
    """Return the name and the distance in Å of the ligand nearest to each residue."""
    position, owner = _select_atoms(chain, rows)
    which, apart = _nearest(position, chain.ligands.position)
    order = np.lexsort((apart, owner))
    best = order[np.unique(owner[order], return_index=True)[1]]
    return [chain.ligands.names[number] for number in chain.ligands.ligand[which[best]].tolist()], apart[best]


def near_pairs(
    residues: ResidueEvidence,
    sites: Sites,
    mapped: Sequence[MappedChain],
    rows: MappedRows,
    distance: float,
    separation: int,
    progress: Progress,
) -> Pairs:
    """Return pairs of residues, each modified or a lysine, on the nearest chain of each protein, at most `distance` apart (Cα).

    Pairs are ordered by protein, then by modification (pairs with a modified residue first), then by distance. If a chain has too many such
    residues, only the first ones are used, and a message reports it.

    Parameters
    ----------
    residues : ResidueEvidence
        Evidence of each residue.
    sites : Sites
        Modified residues.
    mapped : sequence of MappedChain
        Chains mapped onto the proteins.
    rows : MappedRows
        Mapped residues of these chains.
    distance : float
        Maximum distance between Cα atoms in Å.
    separation : int
        Minimum distance in the protein sequence in residues.
    progress : Progress
        Progress of the run.

    Returns
    -------
    Pairs
    """
    is_site = row_mask(len(residues.residue), sites.residues_in(residues.offsets))
    is_wanted = (residues.residue == ord("K")) | is_site
    nearest = [number for number, chain in enumerate(mapped) if chain.near.rank == 1]
    parts, n_cut = [], 0
    progress.stage("Measuring possible contacts", len(nearest))
    for number in nearest:
        first, last = int(rows.offsets[number]), int(rows.offsets[number + 1])
        every = first + np.flatnonzero(is_wanted[rows.protein_residue[first:last]])
        some = every[:_MAXIMUM_OF_A_PROTEIN]
        n_cut += len(some) < len(every)
        apart = np.linalg.norm(rows.alpha[some, None] - rows.alpha[None, some], axis=2)
        along = np.abs(rows.position[some, None] - rows.position[None, some])
        a, b = np.nonzero(np.triu((apart <= distance) & (along >= separation), 1))
        is_modified = is_site[rows.protein_residue[some]]
        order = np.lexsort((b, a, apart[a, b], ~(is_modified[a] | is_modified[b])))
        a, b = a[order], b[order]
        parts.append((some[a], some[b], apart[a, b], _atom_distances(mapped[number], rows.row[some], a, b)))
        progress.advance(1)
    if n_cut:
        chains = f"{n_cut} {'chain has' if n_cut == 1 else 'chains have'}"
        progress.message(
            f"{chains} more than {_MAXIMUM_OF_A_PROTEIN} modified residues and lysines: contacts are only computed for the first ones"
        )
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    first_rows, other, alpha, atoms = (np.concatenate(column) for column in zip(none, *parts, strict=True))
    return Pairs(first_rows, other, is_site[rows.protein_residue[first_rows]] | is_site[rows.protein_residue[other]], alpha, atoms)


def _atom_distances(chain: MappedChain, rows: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distance in Å between the nearest atoms of `rows[a]` and `rows[b]`; NaN if atoms of either residue are missing."""
    result = np.full(len(a), np.nan)
    if chain.atoms is None or not len(a):
        return result
    position, owner = _select_atoms(chain, rows)
    begins = np.unique(owner, return_index=True)[1]
    ends = np.append(begins[1:], len(owner))
    for k in np.unique(a).tolist():
        of_residue = a == k
        apart = np.linalg.norm(position[begins[k] : ends[k], None] - position[None], axis=2).min(axis=0)
        result[of_residue] = np.minimum.reduceat(apart, begins)[b[of_residue]]
    result[~(chain.atoms.is_whole[rows[a]] & chain.atoms.is_whole[rows[b]])] = np.nan
    return result


def uncovered_ranges(
    proteins: Sequence[ProteinEntry],
    residues: ResidueEvidence,
    mapped: Sequence[MappedChain],
    rows: MappedRows,
    progress: Progress,
    n_enzymes: int = 3,
) -> UncoveredRanges:
    """Return the residue ranges without peptides, and for each range the enzymes (up to `n_enzymes`) whose peptides would cover it best."""
    is_missed = residues.n_peptides == 0
    is_end = row_mask(len(is_missed) + 1, residues.offsets)
    first = np.flatnonzero(is_missed & (is_end[:-1] | ~np.append(False, is_missed[:-1])))
    last = np.flatnonzero(is_missed & (is_end[1:] | ~np.append(is_missed[1:], False))) + 1
    protein = residues.protein[first]
    is_nearest = np.array([chain.near.rank == 1 for chain in mapped], np.bool_)[rows.chain]
    row = rows.first_of(len(is_missed), is_nearest)
    exposure = np.where(row >= 0, np.append(rows.exposure, np.nan)[row], np.nan)
    is_known = np.isfinite(exposure)
    n_known = _sums(is_known, first, last)
    with np.errstate(invalid="ignore"):
        mean = _sums(np.where(is_known, exposure, 0.0), first, last) / np.where(n_known > 0, n_known, np.nan)
    names = tuple(name for name in ENZYMES if name not in (*_NO_CUT, *_EQUIVALENT_ENZYMES))
    # A separator between proteins, which is not a residue, prevents peptides across them.
    text = "*".join(protein.sequence for protein in proteins)
    masses = np.append(RESIDUE_MASS, np.nan)[np.minimum(np.frombuffer(text.encode(), np.uint8) - ord("A"), 26)]
    in_text = np.arange(len(is_missed)) + residues.protein
    progress.stage("Digesting uncovered regions", len(names))
    n_seen = np.zeros((len(first), len(names)), np.int64)
    for k, name in enumerate(names):
        seen = _are_visible(text, masses, name)[in_text]
        n_seen[:, k] = _sums(seen, first, last)
        progress.advance(1)
    best = np.argsort(-n_seen, axis=1, kind="stable")[:, :n_enzymes]
    start = residues.offsets[protein]
    return UncoveredRanges(
        protein,
        first - start,
        last - start,
        _sums(row >= 0, first, last).astype(np.int64),
        np.clip(mean, 0.0, 1.0),
        best,
        np.take_along_axis(n_seen, best, axis=1),
        names,
    )


def _sums(values: NDArray[np.number] | NDArray[np.bool_], first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of the values in each range from `first` to `last` (exclusive)."""
    sums = np.concatenate((np.zeros(1), np.cumsum(values)))
    differences: NDArray[np.float64] = sums[last] - sums[first]
    return differences


def _are_visible(text: str, masses: NDArray[np.float64], name: str) -> NDArray[np.bool_]:
    """Return True for each residue in a peptide of typical length and mass after complete digestion with the enzyme `name`.

    `text` is the sequences of all proteins joined by ``*``, and `masses` the mass of each character.
    """
    is_between = np.frombuffer(text.encode(), np.uint8) == ord("*")
    between = np.flatnonzero(is_between)
    bounds = np.unique(np.concatenate(([0], cleavage_sites(text, ENZYMES[name]), between, between + 1, [len(text)])))
    lengths = np.diff(bounds)
    # NaN for peptides with an unknown residue, such as the separator.
    of_peptide = np.add.reduceat(masses, bounds[:-1]) + WATER_MASS
    is_seen = (lengths >= _PEPTIDE_LENGTHS[0]) & (lengths <= _PEPTIDE_LENGTHS[1]) & (of_peptide <= _PEPTIDE_MASS)
    seen: NDArray[np.bool_] = np.repeat(is_seen, lengths)
    return seen


def shared_peptides(peptides: IdentifiedPeptides, positions: PeptidePositions, n_proteins: int) -> SharedPeptides:
    """Return the pairs of proteins that share peptides; peptides that differ only in leucine and isoleucine are the same."""
    numbers: dict[str, int] = {}
    of_form = np.array([numbers.setdefault(sequence.replace("I", "L"), len(numbers)) for sequence in peptides.sequences], np.int64)
    held = (
        np.unique(np.stack([of_form[positions.peptide], positions.protein], axis=1), axis=0)
        if len(positions)
        else np.zeros((0, 2), np.int64)
    )
    begins = np.flatnonzero(np.diff(held[:, 0], prepend=-1))
    n_holders = np.diff(np.append(begins, len(held)))
    counted = np.flatnonzero(n_holders <= _MAXIMUM_HOLDERS)
    holders, offsets = take_segments(held[:, 1], np.append(begins, len(held)), counted)
    n_own = np.bincount(holders, minlength=n_proteins)
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for size in np.unique(n_holders[counted]).tolist():
        starts = offsets[:-1][np.diff(offsets) == size]
        a, b = np.triu_indices(size, 1)
        step = max(1, _BLOCK // max(1, len(a)))
        for first in range(0, len(starts), step):
            together = holders[starts[first : first + step, None] + np.arange(size)]
            more = (together[:, a] * n_proteins + together[:, b]).ravel()
            keys, key = np.unique(np.concatenate((keys, more)), return_inverse=True)
            counts = np.bincount(key, np.concatenate((counts, np.ones(len(more)))), len(keys)).astype(np.int64)
    protein, other = np.divmod(keys, max(1, n_proteins))
    return SharedPeptides(protein, other, counts, n_own[protein] - counts, n_own[other] - counts)
