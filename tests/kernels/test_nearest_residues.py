"""The table of nearest residues equals its definition, and is bounded for chains of any extent."""

import numpy as np
import pytest

from proteoscope.kernels.cpu.nearest_residues import MAXIMUM_CELLS, nearest_residues, nearness
from tests.shim.chain_inputs import random_chain

UNMOVED = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def test_each_cell_has_the_residue_nearest_to_its_centre():
    chain = random_chain(np.random.default_rng(1), 80)
    table = nearest_residues(np.ascontiguousarray((chain - chain.mean(axis=0)).T))
    centred = chain - chain.mean(axis=0)
    centres = table.low + (np.stack(np.unravel_index(np.arange(len(table.residues)), table.counts), axis=1) + 0.5) * table.cell
    apart = np.linalg.norm(centres[:, None] - centred[None], axis=2)
    expected = np.where(apart.min(axis=1) < 8.0, apart.argmin(axis=1), -1)
    assert (table.residues >= 0).any() and (table.residues < 0).any()
    np.testing.assert_array_equal(table.residues, expected)


@pytest.mark.parametrize("extent", [1e2, 1e4, 1e9, 1e30])
def test_table_of_a_chain_of_any_extent_has_a_bounded_number_of_cells(extent):
    rng = np.random.default_rng(2)
    chain = np.ascontiguousarray(rng.uniform(-extent, extent, (3, 50)))
    table = nearest_residues(chain)
    assert (table.counts >= 1).all()
    assert len(table.residues) == table.counts.prod() <= MAXIMUM_CELLS
    assert 0.0 <= nearness(table, chain, chain, UNMOVED, 5.0, 1) <= 50.0
