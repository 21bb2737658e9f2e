"""Secondary structure as figures in the literature have it: a wave for a helix, an arrow for a strand, a line for coil."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from proteoscope.engine.views.drawings import Area, Curve, Shape, Stroke
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.engine.views.sheets import Region

__all__ = ["INK_OF_STATE", "draw_helix", "draw_states", "draw_strand"]

INK_OF_STATE: dict[str, Ink] = {"H": Ion("z"), "E": Ion("a"), "C": "faint"}
"""Colours of helices, strands and coil, which their shapes distinguish too."""
_TURN = 3.6
"""Residues in a turn of a helix."""
_STEPS = 6  # of the drawn wave, for each residue


def draw_states(states: str, start: int, stop: int, left: float, top: float, cell: float, height: float) -> list[Shape]:
    """Draw the states of columns `start` to `stop` (not included) from a corner, `cell` wide each; nothing in gaps (``-``).

    The wave of a helix continues from one line to the next, and a strand has its head where it ends, not where the line does.
    """
    codes = np.frombuffer(states[start:stop].encode("ascii"), np.uint8)
    shapes: list[Shape] = []
    for first, end in pairwise([0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]):
        area = Region(left + first * cell, top, (end - first) * cell, height)
        match chr(codes[first]):
            case "H":
                shapes.append(draw_helix(area, cell, phase=(start + first) / _TURN))
            case "E":
                shapes.append(draw_strand(area, cell, has_head=states[start + end :].lstrip("-")[:1] != "E"))
            case "C":
                middle = top + height / 2
                shapes.append(Stroke(area.left, middle, area.right, middle, INK_OF_STATE["C"], max(1.0, height * 0.07)))
    return shapes


def draw_helix(area: Region, cell: float, phase: float = 0.0) -> Curve:
    """A wave of a turn for each 3.6 residues."""
    x = np.linspace(0.0, area.width, max(2, round(area.width / cell * _STEPS) + 1))
    y = area.top + area.height * (0.5 - 0.36 * np.sin(2 * np.pi * (phase + x / cell / _TURN)))
    return Curve(area.left + x, y, INK_OF_STATE["H"], max(1.2, area.height * 0.13))


def draw_strand(area: Region, cell: float, *, has_head: bool = True) -> Area:
    """An arrow to the right; a bar where it continues in the next line."""
    head = min(area.width, 1.6 * cell) if has_head else 0.0
    neck, half, wide = area.right - head, 0.16 * area.height, 0.38 * area.height
    x = np.array([area.left, neck, neck, area.right, neck, neck, area.left])
    return Area(x, area.top + area.height / 2 + np.array([-half, -half, -wide, 0.0, wide, half, half]), INK_OF_STATE["E"])
