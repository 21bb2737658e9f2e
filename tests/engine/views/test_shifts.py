"""Mass shifts counted in bars, compared with their definition."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from proteoscope.engine.views.shifts import Shifts, bar_edges

NAMES = ("Oxidation", "Phospho", "+12.35")


MASSES = (15.994915, 79.966331, 12.3456)


@pytest.fixture
def shifts() -> Shifts:
    return random_shifts()


def random_shifts() -> Shifts:
    """Return shifts of unmodified matches, of two named modifications and of an unnamed one."""
    random = np.random.default_rng(5)
    row = random.choice([-1, 0, 1, 2], 4000, p=[0.7, 0.15, 0.1, 0.05])
    mass = np.array([*MASSES, 0.0])[row] + random.normal(0, 0.002, 4000)
    return Shifts.from_columns(mass, row != 2, row, NAMES)


@pytest.mark.parametrize(("low", "high"), [(-155.0, 505.0), (-1.0, 90.0), (15.99, 16.0), (0.0, 0.0101)])
@pytest.mark.parametrize("n_most", [1, 7, 400])
def test_mass_shift_bars_cover_the_range_in_round_steps(low: float, high: float, n_most: int) -> None:
    edges = bar_edges(low, high, n_most)
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    assert edges[0] <= low < edges[1] and edges[-2] < high <= edges[-1] + 1e-9
    assert len(edges) - 1 <= n_most + 2
    assert f"{width:.0e}"[0] in "125"
    np.testing.assert_allclose(np.diff(edges), width, rtol=1e-6)


@pytest.mark.parametrize("ends", [(-155.0, 505.0), (15.98, 16.01)])
def test_mass_shift_bars_equal_the_definition(shifts: Shifts, ends: tuple[float, float]) -> None:
    edges = bar_edges(*ends, 200)
    bars = shifts.bars(edges, {0, 2})
    for counts, selected in (
        (bars.counts, np.ones(len(shifts), bool)),
        (bars.explained, shifts.is_explained),
        (bars.marked, np.isin(shifts.modification, (0, 2))),
    ):
        expected = [int((selected & (shifts.shift >= low) & (shifts.shift < high)).sum()) for low, high in pairwise(edges)]
        assert counts.tolist() == expected


def test_mass_shift_bar_is_named_after_the_most_frequent_shift(shifts: Shifts) -> None:
    assert [shifts.name(mass - 0.5, mass + 0.5) for mass in (0.0, *MASSES, 300.0)] == ["no shift", *NAMES, ""]


@pytest.mark.parametrize("ends", [(-155.0, 505.0), (12.0, 16.5), (200.0, 300.0)])
def test_mass_shift_bar_counts_psms_by_shift_name(shifts: Shifts, ends: tuple[float, float]) -> None:
    inside = (shifts.shift >= ends[0]) & (shifts.shift < ends[1])
    expected = Counter("no shift" if row < 0 else NAMES[row] for row in shifts.modification[inside].tolist())
    counts = shifts.counts_by_name(*ends)
    assert dict(counts) == expected and [number for _, number in counts] == sorted(expected.values(), reverse=True)
