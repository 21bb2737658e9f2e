"""Tests of the heat map: distances by their definition, the clustering of a small example by hand and by scipy, and the drawing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import pdist

from proteoscope.engine.views.drawings import Bar, Cells, Curve, Label, svg
from proteoscope.engine.views.heat_map import draw_heat_map
from proteoscope.engine.views.palette import PAPER, Palette, Shade, rgb_of
from proteoscope.engine.views.paper import pdf, png
from proteoscope.engine.views.quantities import Samples, principal_components, sample_correlations
from proteoscope.engine.views.quantity_clusters import cluster_quantities, pairwise_distances
from proteoscope.engine.views.quantity_drawings import draw_components, draw_correlations, draw_missing, draw_profile


def samples_of(log2: np.ndarray) -> Samples:
    n, s = log2.shape
    names = tuple(f"P{i}" for i in range(n))
    conditions = tuple("xy"[k % 2] for k in range(s))
    return Samples(tuple(f"s{k}" for k in range(s)), conditions, names, names, log2, np.zeros((n, s), np.int8), names)


def random_log2(n: int = 60, s: int = 7, missing: float = 0.25, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    log2 = rng.normal(20, 3, (n, 1)) + rng.normal(0, 1, (n, s))
    log2[rng.random((n, s)) < missing] = np.nan
    return log2


def test_heat_map_distances_equal_the_definition():
    values = random_log2()
    distance = pairwise_distances(values)
    for i in range(len(values)):
        for j in range(len(values)):
            pairs = [(a, b) for a, b in zip(values[i].tolist(), values[j].tolist(), strict=True) if a == a and b == b]
            if pairs and i != j:
                assert distance[i, j] == pytest.approx((sum((a - b) ** 2 for a, b in pairs) / len(pairs)) ** 0.5, abs=1e-6)
    apart = pairwise_distances(np.array([[0.0, np.nan], [3.0, np.nan], [np.nan, 1.0]]))
    assert apart.tolist() == [[0, 3, 3], [3, 0, 3], [3, 3, 0]]


def test_heat_map_clusters_equal_a_hand_computed_example():
    """Rows less their medians: A (-1, 0, 1), B (-1, 0, 1.2), C (1, 0, -1), D (3, 0, -3).

    Root mean squares: AB √(0.04/3) = 0.115, AC √(8/3) = 1.633, BC √(8.84/3) = 1.717, CD √(8/3) = 1.633, AD √(32/3) = 3.266,
    BD √(33.64/3) = 3.349. A and B merge first; C is then (1.633 + 1.717) / 2 = 1.675 from both, and CD merge at 1.633. Both
    pairs merge at the mean of AC, BC, AD and BD, 2.491.
    """
    log2 = np.array([[19.0, 20.0, 21.0], [11.0, 10.0, 9.0], [4.0, 5.0, 6.2], [33.0, 30.0, 27.0]])
    heat = cluster_quantities(log2)
    assert heat is not None and heat.n_eligible == 4
    assert heat.row_tree[:, 2] == pytest.approx([0.1155, 1.6330, 2.4910], abs=1e-4)
    assert [set(pair) for pair in heat.row_tree[:, :2].tolist()] == [{0, 2}, {1, 3}, {4, 5}]
    order = heat.rows.tolist()
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}
    assert heat.values.tolist() == [pytest.approx(log2[row, heat.columns] - np.median(log2[row])) for row in order]


def test_heat_map_order_equals_scipy_on_complete_quantities():
    log2 = random_log2(30, 8, missing=0.0)
    heat = cluster_quantities(log2)
    centred = log2 - np.median(log2, axis=1, keepdims=True)
    assert heat is not None
    assert heat.rows.tolist() == leaves_list(linkage(pdist(centred), "average")).tolist()
    assert heat.columns.tolist() == leaves_list(linkage(pdist(centred.T), "average")).tolist()


def test_heat_map_selects_the_most_variable_rows():
    log2 = random_log2(90, 6)
    log2[:, 0][5] = 400.0
    log2[7, 1:] = np.nan
    heat = cluster_quantities(log2, most=20)
    assert heat is not None and len(heat.rows) == 20 and 7 not in heat.rows.tolist()
    spread = {}
    for row in range(90):
        values = [value for value in log2[row].tolist() if value == value]
        if len(values) >= 2:
            mean = sum(values) / len(values)
            spread[row] = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    assert heat.n_eligible == len(spread)
    assert set(heat.rows.tolist()) == set(sorted(spread, key=lambda row: -spread[row])[:20])


def test_heat_map_drawing_has_cells_trees_and_description():
    log2 = random_log2(40, 7)
    heat, samples = cluster_quantities(log2, 30), samples_of(log2)
    assert heat is not None
    drawing = draw_heat_map(heat, samples, 420, 480)
    (cells,) = [shape for shape in drawing.shapes if isinstance(shape, Cells)]
    assert cells.targets.tolist() == heat.rows.tolist() and cells.values.shape == (30, 7)
    texts = [shape.text for shape in drawing.shapes if isinstance(shape, Label)]
    assert drawing.title == "Heat map: the 30 most variable of 40 proteins in 7 samples"
    assert "average linkage of root mean square differences" in " ".join(texts) and "no quantity" in texts
    upright = [shape.text for shape in drawing.shapes if isinstance(shape, Label) and shape.is_upright]
    assert upright == [f"s{column}" for column in heat.columns.tolist()]
    assert sum(isinstance(shape, Curve) for shape in drawing.shapes) == 29 + 6
    x, y = cells.x + cells.width * 1.5 / 7, cells.y + cells.height * 2.5 / 30
    assert cells.cell_at(x, y) == (2, 1) and cells.cell_at(cells.x - 1, y) is None
    row, column = int(heat.rows[2]), int(heat.columns[1])
    value = log2[row, column]
    assert cells.tip(2, 1).startswith(f"P{row} in s{column}: " + ("no quantity" if value != value else f"{value:.2f} log2"))
    assert b"<image" in svg(drawing) and pdf(drawing) == pdf(drawing) and png(drawing)


def test_conditions_have_one_colour_in_all_figures():
    samples = samples_of(random_log2(missing=0.0))
    inks: list[dict[str, object]] = []
    for drawing in (
        draw_heat_map(cluster_quantities(samples.log2), samples),
        draw_profile(samples, samples, "P3"),
        draw_components(principal_components(samples), samples),
        draw_correlations(sample_correlations(samples), samples),
        draw_missing(samples, "proteins"),
    ):
        named = [(label.text, bar.ink) for bar, label in pairwise(drawing.shapes) if isinstance(bar, Bar) and isinstance(label, Label)]
        inks.append({text: ink for text, ink in named if text in samples.conditions})
        assert set(inks[-1]) == {"x", "y"}
    assert all(each == inks[0] for each in inks) and inks[0]["x"] != inks[0]["y"]


@pytest.mark.parametrize("palette", [PAPER, Palette("#16181c", "#e6e8eb", "#a7aeb9", "#454b55")])
def test_heat_map_cells_have_the_colours_of_the_scale(palette):
    parts = np.array([[-2.0, -0.5, 0.0], [0.25, 1.0, np.nan]])
    cells = Cells(0, 0, 30, 20, parts, ("grid",), scale=2)
    pixels, enlarged = cells.pixels(palette), cells.image().pixels
    assert pixels.shape == (2, 3, 4) and (pixels[..., 3] == 255).all()
    assert enlarged.shape == (4, 6, 4) and (enlarged[1::2, ::2] == cells.pixels()).all()
    for row in range(2):
        for column in range(3):
            part = float(parts[row, column])
            wanted = rgb_of("grid" if part != part else Shade(part), palette)
            assert np.abs(pixels[row, column, :3].astype(int) - wanted).max() <= 1


def test_heat_map_explains_too_few_or_too_many_quantities():
    assert cluster_quantities(random_log2(1, 5)) is None and cluster_quantities(random_log2(9, 1)) is None
    drawing = draw_heat_map(None, samples_of(random_log2(1, 5)))
    assert any("two proteins" in shape.text for shape in drawing.shapes if isinstance(shape, Label))
    wide = random_log2(5, 1001)
    heat = cluster_quantities(wide)
    assert heat is not None and heat.columns.tolist() == list(range(1001)) and not len(heat.column_tree)
    texts = " ".join(shape.text for shape in draw_heat_map(heat, samples_of(wide)).shapes if isinstance(shape, Label))
    assert "Columns are in the order of the design." in texts
