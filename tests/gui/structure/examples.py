"""Scenes of synthetic chains for tests of the view in three dimensions."""

from __future__ import annotations

from proteoscope.gui.structure.scene import Scene
from tests.engine.views.trace_examples import query_and_hits


def scene_of(n_hits: int = 1, n_residues: int = 60) -> Scene:
    """Return a scene with a query and hits; the first hit is selected."""
    scene = Scene()
    query, hits = query_and_hits(n_hits, n_residues)
    scene.show(query, hits[0] if hits else None)
    scene.add(hits[1:])
    return scene
