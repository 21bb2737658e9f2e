"""Chains superposed as the rows of their hits say."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.views.traces import Trace, moved, superpose_hit, transformation
from tests.engine.views.trace_examples import chain, fold, query_and_hits


def test_a_hit_is_moved_as_its_row_says_and_without_that_by_least_squares() -> None:
    query, (hit,) = query_and_hits(1, noise=0.0)
    assert hit.pairs is not None and hit.pairs.distance.max() < 1e-4
    target = hit.source
    for broken in ({"rotation": ""}, {"rotation": "1,0,0"}, {"translation": "nan,0,0"}, {"rotation": None}):
        found = superpose_hit({**hit.hit, **broken}, query.source, target)
        assert np.allclose(found.position, hit.position, atol=1e-3)


def test_too_few_pairs_are_moved_and_not_turned() -> None:
    one, other = chain("one", fold(12)), chain("other", fold(12) + np.array([5.0, 6.0, 7.0]))
    pairs = np.array([[3, 3]], np.int32)
    rotation, translation = transformation({}, one.chains.position, other.chains.position, pairs)
    assert (rotation == np.eye(3)).all() and translation == pytest.approx([-5, -6, -7], abs=1e-4)
    assert (transformation({}, one.chains.position, other.chains.position, pairs[:0])[1] == 0).all()


def test_what_is_no_place_is_nowhere() -> None:
    found = moved(np.array([[1.0, 2, 3], [1e9, 0, 0], [np.inf, 0, 0]]), np.eye(3), np.ones(3))
    assert found[0].tolist() == [2, 3, 4] and np.isnan(found[1:]).all()


def test_a_residue_is_called_by_its_name_and_the_authors_number() -> None:
    query, _ = query_and_hits(1)
    label = query.label(4)
    assert label.endswith(" 45") and len(label) == 6
    assert isinstance(query, Trace) and query.label(0).endswith(" 41")
