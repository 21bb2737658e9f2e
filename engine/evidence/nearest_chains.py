"""The nearest chains of each protein: exhaustive Smith-Waterman over the sequences that structures were seen with, and the alignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.arrays import Texts, offsets_of
from engine.evidence.identified_peptides import ProteinEntry
from engine.evidence.parameters import EvidenceParameters
from engine.execution.executor import Executor
from engine.execution.resources import Resources
from engine.sequence_search.hit_search import SequenceHitSearch
from engine.sequence_search.parameters import SequenceSearchParameters
from engine.sequence_search.scoring import work_of
from engine.sequences.database import SequenceDatabase
from engine.sequences.matrices import encode, read_matrix
from engine.sequences.scheme import ScoringScheme
from engine.structures.chains import Chains

__all__ = ["NearChain", "nearest_chains"]

_GAP = ord("-")


@dataclass(frozen=True)
class NearChain:
    """A chain that is near a protein.

    Attributes
    ----------
    protein : its number. chain : of `ChainFiles`. rank : from 1.
    pairs : (k, 2) int64, residues of the protein and of the chain that are aligned, from 0, ascending.
    identity : share of the pairs that are the same residue. gaps : residues of either that stand against none, between the first pair and
        the last.
    """

    protein: int
    chain: int
    rank: int
    pairs: NDArray[np.int64]
    identity: float
    gaps: int
    e_value: float
    bit_score: float


def nearest_chains(
    proteins: Sequence[ProteinEntry], chains: Chains, parameters: EvidenceParameters, resources: Resources
) -> tuple[list[NearChain], tuple[str, ...]]:
    """The nearest chains of each protein, by protein and rank; and the names of the devices that scored.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    if not len(proteins) or not len(chains):
        return [], ()
    matrix = read_matrix("BLOSUM62")
    wanted = SequenceSearchParameters(maximum_e_value=parameters.maximum_e_value, hits_per_query=parameters.chains_per_protein)
    scheme = ScoringScheme(matrix, wanted.gap_open, wanted.gap_extend)
    queries = _as_database(proteins)
    subjects = SequenceDatabase(
        np.asarray(chains.residue), np.asarray(chains.offsets), np.arange(len(chains), dtype=np.uint32), *_names(len(chains)),
        *_names(len(chains)), 0, 0,
    )  # fmt: skip
    with Executor(resources).session(work_of(subjects.residues, subjects.offsets, scheme)) as session:
        search = SequenceHitSearch(queries, subjects, scheme, wanted, session, resources)
        found = [near for batch in search.score(0) for near in _near(batch.found.hits)]
        devices = tuple(share.device for share in session.shares()) or session.devices
    return found, devices


def _as_database(proteins: Sequence[ProteinEntry]) -> SequenceDatabase:
    """Queries, the shortest first."""
    lengths = np.array([len(one.sequence) for one in proteins], np.int64)
    order = np.argsort(lengths, kind="stable")
    letters = "".join(proteins[k].sequence for k in order.tolist()).encode()
    residues = encode(np.frombuffer(letters, np.uint8))
    return SequenceDatabase(
        residues, offsets_of(lengths[order]), order.astype(np.uint32), *_names(len(proteins)), *_names(len(proteins)), 0, 0
    )


def _names(n: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """No names: queries and subjects are known by their numbers."""
    return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64)


def _near(hits: object) -> Iterator[NearChain]:
    columns = vars(hits)
    lines: tuple[Texts, Texts] = columns["aligned_query"], columns["aligned_subject"]
    starts = columns["query_start"], columns["subject_start"]
    for k in range(len(columns["score"])):
        query, subject = (one.letters[one.offsets[k] : one.offsets[k + 1]] for one in lines)
        is_residue = query != _GAP, subject != _GAP
        is_pair = is_residue[0] & is_residue[1]
        places = [int(start[k]) - 1 + np.cumsum(own) - 1 for start, own in zip(starts, is_residue, strict=True)]
        pairs = np.stack([place[is_pair] for place in places], axis=1).astype(np.int64)
        # X is like nothing.
        is_same = (query == subject) & is_pair & (query != ord("X"))
        yield NearChain(
            int(columns["query_index"][k]), int(columns["subject_index"][k]), int(columns["rank"][k]), pairs,
            float(is_same.sum() / max(1, len(pairs))), int(len(is_pair) - is_pair.sum()), float(columns["e_value"][k]),
            float(columns["bit_score"][k]),
        )  # fmt: skip
