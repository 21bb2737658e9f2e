"""Chains most similar to each protein, with alignments, by exhaustive Smith-Waterman search in the observed sequences of structures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow, ProteinRow, segment_offsets
from proteoscope.engine.evidence.identified_peptides import ProteinEntry
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.reported_hits import reported_hits, search_statistics
from proteoscope.engine.sequence_search.scoring import build_workload, query_batches, score_batch
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.hits import Hits, QueryHits
from proteoscope.engine.sequences.matrices import encode, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.structures.chains import Chains

__all__ = ["SimilarChain", "align_proteins", "nearest_chains"]

_GAP = ord("-")
_SAME, _HOMOLOGOUS = 0.95, 0.30


@dataclass(frozen=True, eq=False)
class SimilarChain:
    """Chain that is similar to a protein.

    Attributes
    ----------
    protein : ProteinRow
        Index of the protein.
    chain : ChainRow
        Row of the chain in `ChainFiles`.
    rank : int
        Rank of the chain for the protein, from 1.
    pairs : ndarray of int64, shape (k, 2)
        Indices of the aligned residues of protein and chain, from 0, ascending.
    identity : float
        Fraction of the aligned pairs that are identical.
    gaps : int
        Number of unpaired residues of protein and chain between the first and the last pair.
    e_value, bit_score : float
        E-value and bit score of the sequence alignment; NaN if the chain was found by its fold.
    tm_score : float
        For a remote chain, the TM-score with the chain `through`, normalised by the length of that chain; otherwise NaN.
    through : int
        For a remote chain, the row of the chain through which it was found; otherwise -1.
    """

    protein: ProteinRow
    chain: ChainRow
    rank: int
    pairs: NDArray[np.int64]
    identity: float
    gaps: int
    e_value: float = float("nan")
    bit_score: float = float("nan")
    tm_score: float = float("nan")
    through: int = -1

    @property
    def kind(self) -> str:
        """Relation to the protein: ``same``, ``homologous`` or ``distant`` by identity, or ``remote`` if it was found by fold."""
        if self.through >= 0:
            return "remote"
        return "same" if self.identity >= _SAME else "homologous" if self.identity >= _HOMOLOGOUS else "distant"


def align_proteins(
    proteins: Sequence[ProteinEntry],
    subjects: SequenceDatabase,
    n: int,
    maximum_e_value: float,
    resources: Resources,
    take: Callable[[QueryHits], None],
) -> tuple[str, ...]:
    """Align proteins with sequences exhaustively (BLOSUM62, 11/1).

    Parameters
    ----------
    proteins : sequence of ProteinEntry
        Queries.
    subjects : SequenceDatabase
        Sequences to align with.
    n : int
        Number of hits per protein.
    maximum_e_value : float
        Maximum E-value of hits.
    resources : Resources
        Devices, threads and progress of the run.
    take : callable
        Function that is called with the hits of each batch; `query_index` is the index of the protein.

    Returns
    -------
    tuple of str
        Names of the devices that scored.

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    parameters = SequenceSearchParameters(maximum_e_value=maximum_e_value, hits_per_query=n)
    scheme = ScoringScheme(read_matrix("BLOSUM62"), parameters.gap_open, parameters.gap_extend)
    queries, threads, progress, clock = _as_database(proteins), resources.threads, resources.progress, resources.clock
    with Executor(resources).session(build_workload(subjects.residues, subjects.offsets, scheme)) as session:
        for batch in query_batches(queries, subjects, scheme):
            with clock.stage("score"):
                scores = score_batch(session, queries, batch, subjects, progress)
            with clock.stage("report"):
                statistics = search_statistics(scores, queries.lengths[batch], subjects, scheme, parameters, threads, progress)
                for hits in reported_hits(queries, subjects, scheme, batch, scores, statistics, parameters, threads, progress):
                    take(hits.query_hits)
        return tuple(share.device for share in session.shares()) or session.devices


def nearest_chains(
    proteins: Sequence[ProteinEntry], chains: Chains, n: int, maximum_e_value: float, resources: Resources
) -> tuple[list[SimilarChain], tuple[str, ...]]:
    """Return the n nearest chains of each protein, ordered by protein and rank, and the names of the devices that scored.

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    if not len(proteins) or not len(chains):
        return [], ()
    subjects = SequenceDatabase(
        np.asarray(chains.residue),
        np.asarray(chains.offsets),
        np.arange(len(chains), dtype=np.uint32),
        *_names(len(chains)),
        *_names(len(chains)),
        0,
        0,
    )
    result: list[SimilarChain] = []
    devices = align_proteins(proteins, subjects, n, maximum_e_value, resources, lambda batch: result.extend(_near(batch.hits)))
    return result, devices


def _as_database(proteins: Sequence[ProteinEntry]) -> SequenceDatabase:
    """Return the proteins as a database of queries, shortest first."""
    lengths = np.array([len(protein.sequence) for protein in proteins], np.int64)
    order = np.argsort(lengths, kind="stable")
    symbols = "".join(proteins[k].sequence for k in order.tolist()).encode()
    residues = encode(np.frombuffer(symbols, np.uint8))
    return SequenceDatabase(
        residues, segment_offsets(lengths[order]), order.astype(np.uint32), *_names(len(proteins)), *_names(len(proteins)), 0, 0
    )


def _names(n: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return empty names for n sequences, which are identified by their index."""
    return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64)


def _near(hits: Hits) -> Iterator[SimilarChain]:
    lines = hits.aligned_query, hits.aligned_subject
    starts = hits.query_start, hits.subject_start
    proteins: list[ProteinRow] = hits.query_index.tolist()
    chains: list[ChainRow] = hits.subject_index.tolist()
    for k in range(len(hits)):
        query, subject = (line.characters[line.offsets[k] : line.offsets[k + 1]] for line in lines)
        is_residue = query != _GAP, subject != _GAP
        is_pair = is_residue[0] & is_residue[1]
        positions = [int(start[k]) - 1 + np.cumsum(is_filled) - 1 for start, is_filled in zip(starts, is_residue, strict=True)]
        pairs = np.stack([position[is_pair] for position in positions], axis=1).astype(np.int64)
        # X matches nothing.
        is_same = (query == subject) & is_pair & (query != ord("X"))
        yield SimilarChain(
            proteins[k],
            chains[k],
            int(hits.rank[k]),
            pairs,
            float(is_same.sum() / max(1, len(pairs))),
            int(len(is_pair) - is_pair.sum()),
            float(hits.e_value[k]),
            float(hits.bit_score[k]),
        )
