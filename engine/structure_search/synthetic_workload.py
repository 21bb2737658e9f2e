"""Synthetic chains for measuring the speed of devices."""

import numpy as np

from proteoscope.engine.arrays import read_only, segment_offsets
from proteoscope.engine.execution.workload import Sample
from proteoscope.engine.structure_search.scoring import build_workload
from proteoscope.engine.structure_search.superposing import build_superposition_workload
from proteoscope.engine.structures.rewards import GapCosts, Weights, sensitive_rewards, sensitive_tables
from proteoscope.kernels.structure_layouts import ANGLE_STEPS, ChainPairs, StructureArrays

__all__ = ["sample_pairs", "sample_structures"]

_CHAINS, _QUERY, _PAIRS = 40_000, 300, 2000
_CODES = 20
_RESIDUES_OF_ELEMENT = 8
_STEP = 3.8  # Å between two Cα
_DRAWN = 1 << 20  # maximum number of random numbers, which are then repeated: drawing more takes longer than the alignment


def _chains(lengths: np.ndarray, rng: np.random.Generator) -> StructureArrays:
    n, elements = int(lengths.sum()), 1 + lengths // _RESIDUES_OF_ELEMENT
    n_elements, n_drawn = int(elements.sum()), min(n, _DRAWN)
    state = np.zeros(n_drawn, np.uint32)
    for shift in range(0, 30, 5):
        state |= rng.integers(0, _CODES, n_drawn, np.uint32) << np.uint32(shift)

    def drawn(low: int, high: int, dtype: type, size: int) -> np.ndarray:
        return np.resize(rng.integers(low, high, min(size, _DRAWN)).astype(dtype), size)

    return StructureArrays(
        read_only(segment_offsets(lengths)),
        read_only(np.resize(state, n)),
        read_only(drawn(1500, 4500, np.uint16, n)),
        read_only(drawn(0, ANGLE_STEPS, np.uint16, n)),
        segment_offsets(elements),
        drawn(0, 3, np.uint8, n_elements),
        drawn(3, 20, np.int32, n_elements),
    )


def sample_structures(size: float, seed: int) -> Sample:
    """Return a synthetic query and database; phase 1 is skipped, since it would reject most of these unrelated chains."""
    rng = np.random.default_rng(seed)
    lengths = np.sort(np.clip(rng.lognormal(5.3, 0.55, max(10, round(_CHAINS * size))), 20, 3000).astype(np.int64))
    query = _chains(np.array([_QUERY]), rng)
    rewards, _ = sensitive_rewards(query, sensitive_tables(), Weights(), GapCosts(6.7, 0.7, 0.5, 0.25))
    return Sample(build_workload(_chains(lengths, rng)), [{"query": query._asdict(), "rewards": rewards._asdict(), "least": 0}])


def sample_pairs(size: float, seed: int) -> Sample:
    """Return synthetic pairs of chains: one chain is a random walk, the other a section of this walk with random errors."""
    rng = np.random.default_rng(seed)
    n = max(4, round(_PAIRS * size))
    lengths = rng.integers(80, 350, n)
    chunks = (lengths * rng.uniform(0.7, 1.0, n)).astype(np.int64)
    steps = rng.normal(size=(int(lengths.sum()), 3)) + np.repeat(rng.normal(size=(n, 3)), lengths, axis=0)
    walks = np.cumsum(steps * (_STEP / np.linalg.norm(steps, axis=1, keepdims=True)), axis=0)
    starts = segment_offsets(lengths)
    chosen = np.repeat(starts[:-1] - segment_offsets(chunks)[:-1], chunks) + np.arange(int(chunks.sum()))
    perturbed = walks[chosen] + rng.normal(size=(len(chosen), 3)) * 0.5
    position = np.concatenate((walks, perturbed))
    offsets = np.concatenate((starts, starts[-1] + segment_offsets(chunks)[1:]))
    aligned = np.arange(len(chosen)) - np.repeat(segment_offsets(chunks)[:-1], chunks)
    pairs = ChainPairs(
        position, offsets, np.arange(n), np.arange(n, 2 * n), np.stack([aligned, aligned], axis=1).astype(np.int32), segment_offsets(chunks)
    )
    return Sample(build_superposition_workload(), [pairs._asdict()])
