"""Ion look-ups in batches against single look-ups, with the instructions of every family of CPUs."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from proteoscope.kernels.cpu import ion_lookup, vectors

START, SIGN, INVERSE, SHIFT, EDGE = 900.25, -0.5, 50.0, 0.4, 30_000


@pytest.fixture(params=["as here", "AVX2", "any"])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Look up ions of a block, with the instructions of this CPU, of AVX2, and of no particular CPU."""
    if request.param != "as here":
        features = {"avx2"} & vectors.FEATURES if request.param == "AVX2" else set()
        monkeypatch.setattr(vectors, "FEATURES", features)
        monkeypatch.setattr(ion_lookup, "IONS_AT_ONCE", 8)
    return ion_lookup.IONS_AT_ONCE


@pytest.fixture
def masses() -> np.ndarray:
    """Generate sums of masses, some with ions below zero, above all bins, and out of range."""
    drawn = np.random.default_rng(5).uniform(-400.0, 3000.0, 4096)
    drawn[::97] = ion_lookup.OUT_OF_REACH
    return drawn


def test_matching_ions_of_a_block_equal_single_look_ups(lanes: int, masses: np.ndarray) -> None:
    @njit
    def look_up(masses, words, out):
        for i in range(len(out)):
            out[i] = ion_lookup.matching_ions(masses, i * lanes, START, SIGN, INVERSE, words, EDGE)

    words = np.random.default_rng(6).integers(0, 1 << 32, EDGE // 32 + 1, np.uint32)
    words[EDGE // 32] &= ~np.uint32(1 << EDGE % 32)
    actual = np.zeros(len(masses) // lanes, np.uint64)
    look_up(masses, words, actual)
    for i, mass in enumerate(masses.tolist()):
        b = int((START + SIGN * mass) * INVERSE)
        expected = 0 <= b < EDGE and int(words[b // 32]) >> b % 32 & 1
        assert int(actual[i // lanes]) >> i % lanes & 1 == expected
    assert not (actual >> np.uint64(lanes)).any()


def test_sum_of_bins_of_a_block_equals_single_look_ups(lanes: int, masses: np.ndarray) -> None:
    @njit
    def sums(masses, heights, out):
        for i in range(len(out)):
            out[i] = ion_lookup.sum_of_bins(masses, i * lanes, START, SIGN, INVERSE, SHIFT, heights, EDGE)

    heights = np.random.default_rng(7).integers(-(1 << 31), 1 << 31, EDGE + 1).astype(np.int32)  # sums exceed 32 bits
    heights[EDGE] = 0
    actual = np.zeros(len(masses) // lanes, np.int64)
    sums(masses, heights, actual)
    bins = [int((START + SIGN * mass) * INVERSE + SHIFT) for mass in masses.tolist()]
    at = np.array([int(heights[b]) if 0 <= b < EDGE else 0 for b in bins])
    assert np.array_equal(actual, at.reshape(-1, lanes).sum(axis=1))


def test_fill_block_changes_only_the_lanes_of_one_block(lanes: int) -> None:
    @njit
    def fill(masses):
        ion_lookup.fill_block(masses, 3, ion_lookup.OUT_OF_REACH)

    filled = np.zeros((2, 20))
    fill(filled)
    assert np.flatnonzero(filled == ion_lookup.OUT_OF_REACH).tolist() == list(range(3, 3 + lanes))


def test_matching_residues_finds_the_residues_of_a_mask() -> None:
    @njit
    def look_up(residues, mask):
        bits = ion_lookup.matching_residues(residues, 2, mask)
        return bits, ion_lookup.count_bits(bits), ion_lookup.lowest_bit(bits)

    text = "MMAMKPEPTIDEZMCCWYMM"
    bits, count, lowest = look_up(np.frombuffer(text.encode(), np.uint8), np.uint32(1 << 12 | 1 << 25))  # M and Z
    places = [i for i, residue in enumerate(text[2:18]) if residue in "MZ"]
    assert (bits, count, lowest) == (sum(1 << i for i in places), len(places), places[0])
