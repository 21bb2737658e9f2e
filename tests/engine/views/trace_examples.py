"""Made-up chains: bundles of helices and strands, and relatives of them that are superposed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structure_search.hit_chains import FoundChain
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.outputs import cigar
from proteoscope.engine.views.traces import Trace, create_query_trace, superpose_hit
from proteoscope.kernels.cpu.secondary_structure import states_by_distances
from tests.engine.views.structure_projects import bundle

TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
"""By which the targets are turned out of the query's frame."""


def chain(name: str, position: NDArray[np.floating], seed: int = 0, first_number: int = 1) -> FoundChain:
    """A chain with these Cα, whose residues are drawn at random."""
    n = len(position)
    places = np.ascontiguousarray(position, np.float32)
    finite = np.where(np.isfinite(places), places, 0.0).astype(np.float32)
    residue = np.random.default_rng(seed).integers(0, 20, n).astype(np.int8)
    numbers = np.arange(n, dtype=np.int32)
    chains = Chains(
        (name,),
        ("",),
        np.array([0, n]),
        places,
        residue,
        states_by_distances(finite),
        np.full(n, np.nan, np.float32),
        numbers + first_number,
        np.zeros(n, np.uint8),
        numbers + 1,
    )
    assert set(chains.sequence(0)) <= set(SYMBOLS)
    return FoundChain(chains, Path(f"/nowhere/{name}.pdb"))


def fold(n_residues: int, seed: int = 1) -> NDArray[np.float64]:
    """(n, 3) Cα of helices and strands beside each other."""
    return bundle(seed, n_elements=max(2, n_residues // 8))[:n_residues]


def hit_row(query: FoundChain, target: FoundChain, pairs: NDArray[np.int32], **more: Any) -> dict[str, Any]:
    """The row of a hit whose target lies on the query when it is turned back."""
    back = TURN.T
    return {
        "query": query.chains.names[0],
        "target": target.chains.names[0],
        "query_index": 0,
        "target_index": 0,
        "tm_score_query": 0.8,
        "cigar": cigar(pairs, len(query.chains.position), len(target.chains.position)),
        "rotation": back.ravel().tolist(),
        "translation": "0,0,0",
        **more,
    }


def query_and_hits(n_hits: int = 1, n_residues: int = 60, noise: float = 0.6) -> tuple[Trace, list[Trace]]:
    """A query, and hits that lie beside it; each lacks another residue of it."""
    query = chain("query", fold(n_residues), first_number=41)
    traces = []
    for k in range(n_hits):
        random = np.random.default_rng(k)
        left_out = 10 + k
        kept = np.delete(np.arange(n_residues), left_out)
        place = query.chains.position[kept] + random.normal(0, noise, (n_residues - 1, 3))
        target = chain(f"hit{k}", place @ TURN.T, seed=k % 3, first_number=1)
        pairs = np.stack([kept, np.arange(n_residues - 1)], axis=1).astype(np.int32)
        traces.append(superpose_hit(hit_row(query, target, pairs, target_index=k), query, target))
    return create_query_trace(query), traces
