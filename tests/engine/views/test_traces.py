"""Chains superposed by the transformation of their hits."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.views.traces import Trace, moved, superpose_hit, transformation
from tests.engine.views.trace_examples import chain, fold, query_and_hits


def test_hit_trace_without_transformation_uses_least_squares() -> None:
    query, (hit,) = query_and_hits(1, noise=0.0)
    assert hit.pairs is not None and hit.pairs.distance.max() < 1e-4
    target = hit.source
    for broken in ({"rotation": ""}, {"rotation": "1,0,0"}, {"translation": "nan,0,0"}, {"rotation": None}):
        trace = superpose_hit({**hit.hit, **broken}, query.source, target)
        assert np.allclose(trace.position, hit.position, atol=1e-3)


def test_hit_trace_with_few_pairs_is_only_translated() -> None:
    query, target = chain("one", fold(12)), chain("other", fold(12) + np.array([5.0, 6.0, 7.0]))
    pairs = np.array([[3, 3]], np.int32)
    rotation, translation = transformation({}, query.chains.position, target.chains.position, pairs)
    assert (rotation == np.eye(3)).all() and translation == pytest.approx([-5, -6, -7], abs=1e-4)
    assert (transformation({}, query.chains.position, target.chains.position, pairs[:0])[1] == 0).all()


def test_moved_trace_replaces_positions_out_of_range_with_nan() -> None:
    positions = moved(np.array([[1.0, 2, 3], [1e9, 0, 0], [np.inf, 0, 0]]), np.eye(3), np.ones(3))
    assert positions[0].tolist() == [2, 3, 4] and np.isnan(positions[1:]).all()


def test_hit_trace_label_has_residue_name_and_author_number() -> None:
    query, _ = query_and_hits(1)
    label = query.label(4)
    assert label.endswith(" 45") and len(label) == 6
    assert isinstance(query, Trace) and query.label(0).endswith(" 41")
