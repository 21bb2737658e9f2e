"""The centre of log ratios equals that of the unchanged proteins of a simulation."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.quantification.normalised import unchanged_centre


def mixture(seed: int, share: float, error: float, n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Return differences around 0.7, a share of them increased by 1.5 to 4 times, and their errors."""
    rng = np.random.default_rng(seed)
    errors = error * np.sqrt(8 / rng.chisquare(8, n))
    fold = np.where(np.arange(n) < share * n, rng.uniform(np.log2(1.5), 2, n), 0.0)
    return 0.7 + fold + rng.normal(0, errors), errors


@pytest.mark.parametrize("error", [0.08, 0.25])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_unchanged_centre_is_correct_with_one_sided_changes(error, share):
    centres = [unchanged_centre(*mixture(seed, share, error)) for seed in range(5)]
    assert all(centre.is_determined for centre in centres)
    assert max(abs(centre.shift - 0.7) for centre in centres) < 0.03
    assert np.mean([centre.unchanged_fraction for centre in centres]) == pytest.approx(1 - share, abs=0.1)


def test_centre_is_undetermined_if_half_of_the_proteins_change():
    rng = np.random.default_rng(1)
    difference = np.concatenate([rng.normal(0, 0.1, 500), rng.normal(1, 0.1, 480)])
    centre = unchanged_centre(difference, np.full(980, 0.1))
    assert not centre.is_determined and centre.other == pytest.approx(1, abs=0.1)
    assert not unchanged_centre(*mixture(2, 0.65, 0.1)).is_determined


@pytest.mark.parametrize(("up", "down", "is_determined"), [(0.4, 0.0, False), (0.0, 0.4, False), (0.2, 0.2, True), (0.0, 0.0, True)])
def test_small_one_sided_changes_leave_centre_undetermined(up, down, is_determined):
    centres = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        place, errors = np.arange(2000) / 2000, 0.25 * np.sqrt(8 / rng.chisquare(8, 2000))
        side = np.where(place < up, 1, np.where(place < up + down, -1, 0))
        fold = side * rng.uniform(np.log2(1.2), np.log2(1.5), 2000)
        centres.append(unchanged_centre(fold + rng.normal(0, errors), errors))
    assert sum(centre.is_determined == is_determined for centre in centres) >= 5
    assert up == down or all(np.sign(centre.excess) in (0, np.sign(up - down)) for centre in centres)


def test_unchanged_centre_is_zero_for_few_proteins():
    centre = unchanged_centre(np.full(19, 0.5), np.full(19, 0.1))
    assert centre.shift == 0 and np.isnan(centre.unchanged_fraction) and not centre.is_determined


def test_unchanged_centre_follows_shift_and_sign_of_ratios():
    difference, error = mixture(3, 0.3, 0.2)
    difference[::50] = np.nan
    centre, mirrored = unchanged_centre(difference, error), unchanged_centre(-difference - 2, error)
    assert mirrored.shift == pytest.approx(-centre.shift - 2, abs=1e-3)
