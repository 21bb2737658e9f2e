"""Tests of the content of a scene in three dimensions, and of its drawn parts."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.structures.colouring import CHAIN_COLOURS, SCHEMES
from proteoscope.engine.structures.residue_atoms import Atoms
from proteoscope.engine.views.traces import create_query_trace, superpose_hit
from proteoscope.gui.structure.scene import MAXIMUM_HITS, STYLES, Pick, Scene, _detail
from tests.engine.views.trace_examples import chain, fold, hit_row, query_and_hits
from tests.gui.structure.examples import scene_of


def triangles(scene: Scene) -> int:
    return sum(len(body.mesh.triangles) for body in scene.bodies(300_000))


def test_scene_replaces_the_selected_hit_and_retains_pinned_hits() -> None:
    query, hits = query_and_hits(4)
    scene = Scene()
    scene.show(query, hits[0])
    scene.show(query, hits[1])
    assert [hit.trace for hit in scene.hits] == [hits[1]] and scene.chosen is scene.hits[0]
    scene.hits[0].is_pinned = True
    scene.show(query, hits[2])
    assert [(hit.trace, hit.number) for hit in scene.hits] == [(hits[1], 1), (hits[2], 2)]
    # The same hit again is the existing one, with its colour.
    scene.show(query, hits[1])
    assert [(hit.trace, hit.number) for hit in scene.hits] == [(hits[1], 1)]
    # The same query read again is the same.
    scene.show(create_query_trace(query.source), hits[3])
    assert scene.query is query and len(scene.hits) == 2
    scene.unpin_others()
    assert [hit.trace for hit in scene.hits] == [hits[3]]
    other = create_query_trace(chain("another", fold(30)))
    scene.show(other, None)
    assert scene.query is other and scene.hits == [] and scene.chosen is None


def test_scene_shows_at_most_twenty_hits_in_different_colours() -> None:
    query, hits = query_and_hits(23, 40)
    scene = Scene()
    scene.show(query, hits[0])
    assert scene.add(hits) == 3 and len(scene.hits) == MAXIMUM_HITS
    tones = [tuple(colour[0]) for colour in scene.coloured("partner").colours]
    assert len(set(tones)) == 21 and tones[0] == CHAIN_COLOURS[0]
    # A removed hit frees its colour for the next, and the others retain theirs.
    gone = scene.hits.pop(4)
    before = {hit.trace: hit.number for hit in scene.hits}
    scene.add([hits[22]])
    assert scene.hits[-1].number == gone.number and {hit.trace: hit.number for hit in scene.hits[:-1]} == before


def test_scene_does_not_draw_hidden_hits_and_reuses_other_meshes() -> None:
    scene = scene_of(3)
    first = scene.bodies(100_000)
    assert len(first) == 4 and all(a is b for a, b in zip(first, scene.bodies(100_000), strict=True))
    scene.hits[1].is_shown = False
    second = scene.bodies(100_000)
    assert [any(trace is other for other in second) for trace in first] == [True, True, False, True]
    assert len(scene._meshes) == len(scene._bodies) == 3


@pytest.mark.parametrize("style", STYLES)
def test_scene_can_show_only_aligned_residues(style: str) -> None:
    scene = scene_of(1)
    scene.style = style
    whole = triangles(scene)
    scene.extent = "residues"
    assert scene.query is not None and 0 < triangles(scene) < whole
    hit = scene.hits[0].trace
    assert hit.pairs is not None
    mask = scene.mask(scene.query)
    assert mask is not None and mask.sum() == len(hit.pairs) and not mask[10]
    shown = {int(row) for row in np.unique(scene.bodies(100_000)[0].mesh.residue)}
    assert shown == set(hit.pairs.rows[:, 0].tolist())
    assert len(scene.points()) == 2 * len(hit.pairs)


@pytest.mark.parametrize("scheme", [scheme.name for scheme in SCHEMES])
def test_every_colour_scheme_colours_every_residue(scheme: str) -> None:
    scene = scene_of(2)
    scene.scheme = scheme
    coloured_scene = scene.coloured()
    assert [len(colour) for colour in coloured_scene.colours] == [len(trace) for trace in scene.traces] and coloured_scene.legend.title
    assert len(scene.bodies(100_000)) == 3


def test_scene_draws_many_residues_with_fewer_triangles_each() -> None:
    few, many = (sum(len(body.mesh.triangles) for body in scene_of(n, 60).bodies(60_000)) for n in (1, 19))
    assert few > many / 10 * 2 and many <= 60_000
    assert _detail("ribbon", 10**7, 1000) == _detail("ribbon", 10**9, 1000)


def test_copied_scene_does_not_change_with_the_original() -> None:
    scene = scene_of(2)
    copied = scene.copied()
    scene.hits[0].is_shown = False
    scene.show(create_query_trace(chain("another", fold(30))), None)
    assert copied.query is not None and copied.query.name == "query"
    assert all(hit.is_shown for hit in copied.hits) and copied.chosen is copied.hits[0] and len(copied.bodies(100_000)) == 3


HOSTILE = {
    "none is a number": np.full((9, 3), np.nan),
    "some are no numbers": np.where(np.arange(30)[:, None] % 7 == 0, np.nan, fold(30)),
    "beyond all bounds": fold(30) * 1e30,
    "one far away": np.vstack([fold(29), [[9e4, 9e4, -9e4]]]),
    "all in one place": np.zeros((20, 3)),
    "a single residue": np.ones((1, 3)),
    "two residues": np.array([[0.0, 0, 0], [3.8, 0, 0]]),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("style", STYLES)
def test_scene_with_invalid_coordinates_is_drawn_where_possible(case: str, style: str) -> None:
    place = HOSTILE[case]
    query, target = chain("query", place), chain("target", place)
    pairs = np.repeat(np.arange(len(place), dtype=np.int32)[:, None], 2, axis=1)
    scene = Scene()
    with np.errstate(all="raise", under="ignore"):
        scene.show(create_query_trace(query), superpose_hit(hit_row(query, target, pairs), query, target))
        scene.style = style
        scene.pick([Pick(scene.traces[0], 0)])
        for body in scene.bodies(100_000):
            assert np.isfinite(body.mesh.vertices).all() and np.isfinite(body.mesh.normals).all()
        sphere = scene.sphere()
    assert np.isfinite(sphere.centre).all() and np.isfinite(sphere.radius)
    assert all(np.isfinite(pick.position).all() for pick in scene.picks)


def test_scene_draws_ligands_if_present() -> None:
    scene = scene_of()
    assert scene.query is not None
    n_before = len(scene.bodies(100_000))
    place = scene.query.position[3] + np.float32(2.0)
    scene.ligands[scene.query] = Atoms(
        ("HEM FE", "HEM O"), ("FE", "O"), np.stack([place, place + 1.5]), np.zeros(2, np.int32), np.array([[0, 1]], np.int32)
    )
    bodies = scene.bodies(100_000)
    assert len(bodies) == n_before + 1
    assert np.abs(bodies[-1].mesh.vertices - place).max() < 2.5
    assert len(scene.copied().bodies(100_000)) == n_before + 1
    scene.shows_ligands = False
    assert len(scene.bodies(100_000)) == n_before


def test_scene_returns_the_nearest_atoms_of_two_picked_residues() -> None:
    scene = scene_of()
    assert scene.query is not None
    first, second = Pick(scene.query, 3), Pick(scene.query, 8)
    scene.pick([first, second])
    assert scene.nearest_atoms(first, second) is None
    bonds, owner = np.array([[0, 1]], np.int32), np.zeros(2, np.int32)
    scene.atoms[first.trace, first.row] = Atoms(("CA", "CB"), ("C", "C"), np.array([[0, 0, 0], [1, 0, 0]], np.float32), owner, bonds)
    scene.atoms[second.trace, second.row] = Atoms(("CA", "NZ"), ("C", "N"), np.array([[9, 0, 0], [4, 4, 0]], np.float32), owner, bonds)
    assert scene.nearest_atoms(first, second) == ("CB", "NZ", 5.0)
