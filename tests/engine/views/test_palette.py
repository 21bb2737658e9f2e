"""Tests that readers with any colour vision distinguish the colours of figures."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from proteoscope.engine.structures import colouring
from proteoscope.engine.views.palette import (
    ION_KINDS,
    PAPER,
    SERIES_COLOURS,
    Ion,
    OnCell,
    Palette,
    cell_colours,
    contrast,
    has_dark_text,
    opacity_below_text,
    rgb_of,
)
from proteoscope.engine.views.shown_peaks import SHARED, SHIFTED, UNMATCHED
from tests.engine.colour_vision import VISIONS, ciede2000, lab, linear

SURFACES = {"paper": PAPER, "dark": Palette("#16181c", "#e6e8eb", "#a7aeb9", "#757c87"), "dark panel": Palette("#2a2e35", "#fff", "", "")}
HIGH_CONTRAST = Palette("#000000", "#ffffff", "#e0e0e0", "#a6a6a6")
LEAST = 10.0
"""Colours differ at a glance from about this CIEDE2000 on; next to each other they are just distinguishable at 1."""


def test_ciede2000_matches_published_pairs():
    """Pairs 1, 7, 14 and 25 of table 1 of Sharma, Wu & Dalal (2005)."""
    first = np.array([[50, 2.6772, -79.7751], [50, 0, 0], [50, 2.5, 0], [60.2574, -34.0099, 36.2677]])
    second = np.array([[50, 0, -82.7485], [50, -1, 2], [50, 0, -2.5], [60.4626, -34.1751, 39.4387]])
    assert ciede2000(first, second) == pytest.approx([2.0425, 2.3669, 4.3065, 1.2644], abs=1e-4)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("surface", SURFACES)
def test_series_colours_differ_for_any_colour_vision(vision, surface):
    inks = [*range(len(SERIES_COLOURS)), Ion(UNMATCHED)]
    colours = linear(np.array([rgb_of(ink, SURFACES[surface]) for ink in inks]))
    seen = lab(np.clip(colours @ VISIONS[vision].T, 0, 1))
    for first, second in combinations(range(len(inks)), 2):
        assert ciede2000(seen[first], seen[second]) >= LEAST, (inks[first], inks[second])


@pytest.mark.parametrize("surface", SURFACES)
def test_series_colours_contrast_with_the_surface(surface):
    def luminance(ink):
        return float(linear(np.array([rgb_of(ink, SURFACES[surface])]))[0] @ [0.2126, 0.7152, 0.0722])

    back = luminance("background")
    for ink in (*range(len(SERIES_COLOURS)), Ion(UNMATCHED)):
        low, high = sorted((luminance(ink), back))
        assert (high + 0.05) / (low + 0.05) >= 3, ink


@pytest.mark.parametrize("surface", SURFACES)
def test_ion_series_have_colours_of_the_palette(surface):
    palette = SURFACES[surface]
    series = {rgb_of(number, palette): number for number in range(len(SERIES_COLOURS))}
    # Shared and shifted peaks are drawn in mirrors, without the ions that have the same colours.
    kinds = [kind for kind in ION_KINDS if kind not in (SHARED, SHIFTED, UNMATCHED)]
    assert len({series[rgb_of(Ion(kind), palette)] for kind in kinds}) == len(kinds)
    assert rgb_of("target", palette) == rgb_of(0, palette) and rgb_of("decoy", palette) == rgb_of(1, palette)


def test_evidence_on_structures_has_colours_of_the_palette():
    assert rgb_of(0) == colouring.OBSERVED and rgb_of("mark") == colouring.MODIFIED and rgb_of("grid") == colouring.NOT_OBSERVED


@pytest.mark.parametrize(("palette", "least"), [(PAPER, 4.5), (SURFACES["dark"], 4.5), (HIGH_CONTRAST, 7.0)])
def test_text_on_heat_map_cells_contrasts_with_every_colour(palette, least):
    steps = np.array([0, 51, 102, 153, 204, 255], np.uint8)
    colours = np.stack([*np.meshgrid(steps, steps, steps), np.full((6, 6, 6), 255, np.uint8)], axis=-1).reshape(6, 36, 4)
    drawn, is_dark = cell_colours(colours, palette), has_dark_text(colours)
    assert drawn.shape == colours.shape and drawn.dtype == np.uint8
    for colour, dark in zip(drawn.reshape(-1, 4).tolist(), is_dark.ravel().tolist(), strict=True):
        assert contrast(tuple(colour[:3]), rgb_of(OnCell(dark), palette)) >= least, colour


def test_high_contrast_cell_colours_differ_and_retain_opacity():
    colours = np.array([[[255, 0, 0, 255], [0, 0, 255, 255], [0, 0, 0, 0]]], np.uint8)
    red, blue, none = cell_colours(colours, HIGH_CONTRAST)[0].tolist()
    assert red[0] > red[2] and blue[2] > blue[0] and none[3] == 0
    assert cell_colours(colours, PAPER) is colours


@pytest.mark.parametrize("ink", ["target", "decoy", "mark", Ion("a")])
@pytest.mark.parametrize(("palette", "least"), [(PAPER, 4.5), (SURFACES["dark"], 4.5), (HIGH_CONTRAST, 7.0)])
def test_translucent_areas_of_figures_leave_text_readable(ink, palette, least):
    shares = [opacity_below_text(ink, opacity, palette) for opacity in (0.1, 0.35, 0.6, 0.99)]
    assert shares[:2] == [0.1, 0.35] and opacity_below_text(ink, 1.0, palette) == 1.0
    for share in shares:
        mixed = (round(back + (top - back) * share) for back, top in zip(rgb_of("background", palette), rgb_of(ink, palette), strict=True))
        assert contrast(tuple(mixed), rgb_of("text", palette)) >= least
