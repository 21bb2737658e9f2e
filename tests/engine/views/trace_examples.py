"""Synthetic chains: bundles of helices and strands, and superposed relatives of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structure_search.hit_chains import ChainInFile
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.outputs import cigar
from proteoscope.engine.views.traces import Trace, create_query_trace, superpose_hit
from proteoscope.kernels.cpu.secondary_structure import states_by_distances
from tests.engine.views.structure_projects import bundle

TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
"""Rotation of the targets relative to the query."""


def chain(name: str, position: NDArray[np.floating], seed: int = 0, first_number: int = 1) -> ChainInFile:
    """Return a chain with these Cα and random residues."""
    n = len(position)
    coordinates = np.ascontiguousarray(position, np.float32)
    finite = np.where(np.isfinite(coordinates), coordinates, 0.0).astype(np.float32)
    residue = np.random.default_rng(seed).integers(0, 20, n).astype(np.int8)
    numbers = np.arange(n, dtype=np.int32)
    chains = Chains(
        (name,),
        ("",),
        np.array([0, n]),
        coordinates,
        residue,
        states_by_distances(finite),
        np.full(n, np.nan, np.float32),
        numbers + first_number,
        np.zeros(n, np.uint8),
        numbers + 1,
    )
    assert set(chains.sequence(0)) <= set(SYMBOLS)
    return ChainInFile(chains, Path(f"/nowhere/{name}.pdb"))


def fold(n_residues: int, seed: int = 1) -> NDArray[np.float64]:
    """Return the Cα (n, 3) of adjacent helices and strands."""
    return bundle(seed, n_elements=max(2, n_residues // 8))[:n_residues]


def hit_row(query: ChainInFile, target: ChainInFile, pairs: NDArray[np.int32], **more: Any) -> dict[str, Any]:
    """Return the row of a hit whose transformation moves the target onto the query."""
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
    """Return a query and superposed hits, each without a different residue of the query."""
    query = chain("query", fold(n_residues), first_number=41)
    traces = []
    for k in range(n_hits):
        random = np.random.default_rng(k)
        left_out = 10 + k
        remaining = np.delete(np.arange(n_residues), left_out)
        coordinates = query.chains.position[remaining] + random.normal(0, noise, (n_residues - 1, 3))
        target = chain(f"hit{k}", coordinates @ TURN.T, seed=k % 3, first_number=1)
        pairs = np.stack([remaining, np.arange(n_residues - 1)], axis=1).astype(np.int32)
        traces.append(superpose_hit(hit_row(query, target, pairs, target_index=k), query, target))
    return create_query_trace(query), traces
