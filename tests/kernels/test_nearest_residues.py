"""The table of nearest residues equals its definition, and is bounded for chains of any extent."""

import numpy as np
import pytest

from proteoscope.kernels.cpu.nearest_residues import MAXIMUM_CELLS, nearest_residues, nearness
from tests.shim.chain_inputs import random_chain

UNMOVED = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def test_nearest_residue_table_equals_its_definition():
    chain = random_chain(np.random.default_rng(1), 80)
    table = nearest_residues(np.ascontiguousarray((chain - chain.mean(axis=0)).T))
    centred = chain - chain.mean(axis=0)
    centres = table.low + (np.stack(np.unravel_index(np.arange(len(table.residues)), table.counts), axis=1) + 0.5) * table.cell
    apart = np.linalg.norm(centres[:, None] - centred[None], axis=2)
    expected = np.where(apart.min(axis=1) < 8.0, apart.argmin(axis=1), -1)
    assert (table.residues >= 0).any() and (table.residues < 0).any()
    np.testing.assert_array_equal(table.residues, expected)


@pytest.mark.parametrize("extent", [1e2, 1e4, 1e9, 1e30])
def test_nearest_residue_table_is_bounded_for_any_chain_extent(extent):
    rng = np.random.default_rng(2)
    chain = np.ascontiguousarray(rng.uniform(-extent, extent, (3, 50)))
    table = nearest_residues(chain)
    assert (table.counts >= 1).all()
    assert len(table.residues) == table.counts.prod() <= MAXIMUM_CELLS
    assert 0.0 <= nearness(table, chain, chain, UNMOVED, 5.0, np.empty(50, np.int64), np.empty(50)) <= 50.0


def test_nearness_score_equals_its_definition():
    rng = np.random.default_rng(3)
    x, y = (np.ascontiguousarray((chain - chain.mean(axis=0)).T) for chain in (random_chain(rng, 61), random_chain(rng, 90)))
    table, rotation, shift = nearest_residues(y), np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([4.0, -3.0, 2.0])
    moved = rotation @ x + shift[:, None]
    cells = np.floor((moved - table.low[:, None]) / table.cell).astype(np.int64)
    is_inside = ((cells >= 0) & (cells < table.counts[:, None])).all(axis=0)
    residues = np.full(61, -1)
    residues[is_inside] = table.residues[np.ravel_multi_index(cells[:, is_inside], table.counts)]
    expected = (1 / (1 + ((moved - y[:, residues]) ** 2).sum(axis=0) / 25))[residues >= 0].sum()
    assert 0 < (residues >= 0).sum() < 61  # residues near y and residues far from it
    actual = nearness(table, x, y, np.concatenate([rotation.ravel(), shift]), 5.0, np.empty(61, np.int64), np.empty(61))
    assert actual == pytest.approx(expected, abs=1e-6)
