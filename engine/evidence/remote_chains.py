"""Chains with the fold of a protein's nearest chain, found by structure search and mapped through the nearest chain.

A protein residue is mapped onto the residue of the remote chain that is aligned with the same residue of the nearest chain.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow, ProteinRow
from proteoscope.engine.evidence.identified_peptides import ProteinEntry
from proteoscope.engine.evidence.nearest_chains import SimilarChain, nearest_chains
from proteoscope.engine.evidence.parameters import EvidenceParameters
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structure_search.candidates import Comparison, query_batches
from proteoscope.engine.structure_search.hits import query_hits
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.scoring import build_workload
from proteoscope.engine.structure_search.structures import DescribedChains, described
from proteoscope.engine.structure_search.superposing import build_superposition_workload
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.outputs import AlignedChains

__all__ = ["near_chains"]

_FEWEST_PAIRS = 20  # residue pairs; with fewer, an alignment through another chain is not significant


def near_chains(
    proteins: Sequence[ProteinEntry], chains: Chains, remote: DescribedChains | None, parameters: EvidenceParameters, resources: Resources
) -> tuple[list[SimilarChain], str]:
    """Return the similar chains of each protein, first those found by sequence, then those found by fold; and the names of the devices.

    Parameters
    ----------
    proteins : sequence of ProteinEntry
        Proteins of the run.
    chains : Chains
        Chains to search.
    remote : DescribedChains or None
        The same chains with descriptors of their structure; None unless remote chains are searched.
    parameters : EvidenceParameters
        Parameters of the run.
    resources : Resources
        Devices, threads and progress of the run.

    Raises
    ------
    Cancelled
        If the user cancelled the search.
    """
    near, devices = nearest_chains(proteins, chains, parameters.chains_per_protein, parameters.maximum_e_value, resources)
    if remote is not None:
        near = _with_remote_chains(near, proteins, remote, parameters.remote_chains, parameters.minimum_tm_score, resources)
    return near, "+".join(devices)


def _with_remote_chains(
    near: Sequence[SimilarChain],
    proteins: Sequence[ProteinEntry],
    chains: DescribedChains,
    n: int,
    minimum_tm_score: float,
    resources: Resources,
) -> list[SimilarChain]:
    """Return the similar chains of each protein, followed by up to `n` chains with the fold of the nearest chain.

    Parameters
    ----------
    near : sequence of SimilarChain
        Similar chains of the proteins.
    proteins : sequence of ProteinEntry
        Proteins of the run.
    chains : DescribedChains
        Searched chains; indices are those of `near`.
    n : int
        Maximum number of remote chains per protein.
    minimum_tm_score : float
        Minimum TM-score, normalised by the length of the nearest chain.
    resources : Resources
        Devices, threads and progress of the run.

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    nearest = {similar.protein: similar for similar in near if similar.rank == 1}
    through = np.unique([similar.chain for similar in nearest.values()]).astype(np.int64)
    if not len(through):
        return list(near)
    of_protein: dict[ProteinRow, list[SimilarChain]] = {}
    for similar in near:
        of_protein.setdefault(similar.protein, []).append(similar)
    # The best hits include the chain itself, and may include other near chains.
    most = 1 + n + max(len(some) for some in of_protein.values())
    queries = described(chains.chains.taken(through), threads=resources.threads)
    wanted = StructureSearchParameters(hits_per_query=most)
    alike: dict[ChainRow, list[AlignedChains]] = {}
    numbers: list[ChainRow] = through.tolist()
    with (
        resources.clock.stage("score"),
        Executor(resources).session(build_workload(chains.arrays)) as session,
        Executor(resources).session(build_superposition_workload()) as superposing,
    ):
        comparison = Comparison(queries, chains, wanted, session, resources, superposing)
        for result in chain.from_iterable(query_hits(comparison, batch) for batch in query_batches(queries, wanted, resources)):
            is_alike = result.hits["tm_score_query"].to_numpy() >= minimum_tm_score
            alike[numbers[result.index]] = [aligned for aligned, is_one in zip(result.aligned, is_alike.tolist(), strict=True) if is_one]
    every = []
    for protein, some in sorted(of_protein.items()):
        every += some
        present = {similar.chain for similar in some}
        first = nearest[protein]
        remote = [aligned for aligned in alike[first.chain] if aligned.target_number not in present]
        mapped = (_map_remote_chain(first, proteins[protein], aligned) for aligned in remote)
        fitting = [similar for similar in mapped if len(similar.pairs) >= _FEWEST_PAIRS][:n]
        every += [replace(similar, rank=len(some) + k) for k, similar in enumerate(fitting, 1)]
    return every


def _map_remote_chain(first: SimilarChain, protein: ProteinEntry, aligned: AlignedChains) -> SimilarChain:
    """Return the remote chain in `aligned` as a similar chain of the protein.

    Its residues are paired with those residues of the protein that are aligned with the same residues of the similar chain `first`.
    """
    pairs = _align_through(first.pairs, aligned.pairs)
    symbols = np.frombuffer(protein.sequence.encode(), np.uint8)[pairs[:, 0]]
    codes = aligned.target.residue[aligned.target.rows(aligned.target_number)][pairs[:, 1]]
    is_same = (symbols == np.frombuffer(SYMBOLS.encode(), np.uint8)[codes]) & (symbols != ord("X"))
    gaps = int((np.diff(pairs, axis=0) - 1).sum()) if len(pairs) else 0
    return SimilarChain(
        first.protein,
        aligned.target_number,
        0,
        pairs,
        float(is_same.mean()) if len(pairs) else 0.0,
        gaps,
        tm_score=float(aligned.superpositions.tm_score_query[aligned.k]),
        through=first.chain,
    )


def _align_through(near: NDArray[np.int64], aligned: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return pairs of a protein residue and a residue of a third chain, both aligned with the same residue of a chain, (k, 2), ascending.

    Parameters
    ----------
    near : ndarray of int64, shape (m, 2)
        Aligned residues of the protein and the chain, from 0.
    aligned : ndarray of int, shape (n, 2)
        Aligned residues of the chain and the third chain, from 0.
    """
    _, here, other = np.intersect1d(near[:, 1], aligned[:, 0], return_indices=True)
    return np.stack([near[here, 0], aligned[other, 1].astype(np.int64)], axis=1)
