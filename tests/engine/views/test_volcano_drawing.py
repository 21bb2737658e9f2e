"""Tests of the volcano plot against the rows: counts on both sides, cuts, names and their places."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from proteoscope.engine.sequences.protein_labels import protein_label
from proteoscope.engine.views.drawings import Label, Points, Stroke, text_width
from proteoscope.engine.views.quantities import Volcano
from proteoscope.engine.views.quantity_drawings import draw_names
from proteoscope.engine.views.quantity_figures import draw_volcano


def random_volcano(n: int = 400, seed: int = 0) -> Volcano:
    """Return a comparison whose q-values follow from the p-values by Benjamini and Hochberg's definition."""
    rng = np.random.default_rng(seed)
    fold_change = np.where(rng.random(n) < 0.2, rng.normal(0.4, 2.0, n), rng.normal(0, 0.3, n))
    p_value = 2 * norm.sf(np.abs(fold_change) / 0.3)
    q_value = np.array([min(p * n / (p_value <= p).sum() for p in p_value[p_value >= least]) for least in p_value])
    names = tuple(f"GENE{i}" for i in range(n))
    return Volcano("heat / control", np.arange(n) + 7, names, fold_change, p_value, np.minimum(q_value, 1.0), names)


@pytest.mark.parametrize(("q_value", "fold_change"), [(0.01, 0.0), (0.05, 1.0), (0.0001, 2.5), (1.0, 0.0), (1.0, 0.7)])
def test_volcano_counts_of_both_sides_equal_table_rows(q_value, fold_change):
    volcano = random_volcano()
    up = down = 0
    for change, q in zip(volcano.fold_change.tolist(), volcano.q_value.tolist(), strict=True):
        if q <= q_value and abs(change) >= fold_change:
            up, down = up + (change > 0), down + (change < 0)
    drawing = draw_volcano(volcano, q_value, fold_change)
    texts = [shape.text for shape in drawing.shapes if isinstance(shape, Label)]
    assert f"{up} up" in texts and f"{down} down" in texts
    assert drawing.title == f"heat / control: {up} up, {down} down, of 400 tested proteins"
    drawn = {shape.ink: len(shape.targets) for shape in drawing.shapes if isinstance(shape, Points)}
    assert drawn[0] == down and drawn[1] == up and sum(drawn.values()) == 400


def test_volcano_line_separates_accepted_rows_at_any_q_value():
    volcano = random_volcano()
    rng = np.random.default_rng(1)
    for q_value in [*rng.uniform(0, 1, 40), *10 ** rng.uniform(-12, 0, 40), *volcano.q_value[::40], 0.0]:
        height = volcano.height_at(q_value)
        accepted = volcano.q_value <= q_value
        assert (volcano.height[accepted] >= height - 1e-9).all() and (volcano.height[~accepted] < height).all(), q_value
        again = volcano.q_value_at(height)
        assert again == pytest.approx(q_value, rel=1e-6, abs=1e-299)
    heights = np.linspace(0, 30, 300)
    assert (np.diff([volcano.q_value_at(height) for height in heights]) <= 0).all()
    empty = Volcano("a / b", np.zeros(0, np.int64), (), *(np.zeros(0) for _ in range(3)), ())
    assert empty.q_value_at(2.0) == pytest.approx(0.01) and empty.height_at(0.01) == pytest.approx(2.0)


def test_volcano_handles_lie_on_and_return_the_thresholds():
    volcano = random_volcano()
    drawing = draw_volcano(volcano, 0.05, 1.25, 600, 500)
    q_value, low, high = drawing.handles
    assert (q_value.name, low.name, high.name) == ("q_value", "fold_change", "fold_change")
    assert q_value.value(q_value.at) == 0.05 and low.value(low.at) == high.value(high.at) == 1.25
    lines = [shape for shape in drawing.shapes if isinstance(shape, Stroke) and shape.is_dashed]
    assert {round(line.y1, 6) for line in lines if line.y1 == line.y2} == {round(q_value.at, 6)}
    assert {round(line.x1, 6) for line in lines if line.x1 == line.x2} == {round(low.at, 6), round(high.at, 6)}
    # Higher means fewer false changes; outwards means larger changes.
    assert q_value.value(q_value.at - 40) < 0.05 < q_value.value(q_value.at + 10) and high.value(high.at + 30) > 1.25
    dots = [shape for shape in drawing.shapes if isinstance(shape, Points) and shape.ink in (0, 1)]
    assert all((shape.y <= q_value.at + 1e-6).all() for shape in dots)
    assert all(((shape.x <= low.at + 1e-6) | (shape.x >= high.at - 1e-6)).all() for shape in dots)
    # A single line in the middle without a cut, and lines at the edges beyond all proteins.
    assert len(draw_volcano(volcano, 0.05, 0.0).handles) == 2
    beyond = draw_volcano(volcano, 0.0, 90.0, 600, 500)
    assert all(handle.start <= 600 and 0 < handle.at < 600 for handle in beyond.handles)


@pytest.mark.parametrize("size", [(240.0, 180.0, 8.0), (400.0, 320.0, 8.0), (900.0, 700.0, 11.0)])
def test_volcano_labels_overlap_neither_labels_nor_points(size):
    volcano = random_volcano(2000)
    drawing = draw_volcano(volcano, 0.01, 1.0, *size)
    names = [shape for shape in drawing.shapes if isinstance(shape, Label) and shape.text in volcano.label]
    assert len(names) >= 4
    boxes = [(label, text_width(label.text, size[2]), size[2]) for label in names]
    places = [(label.x - width / 2, label.y - 0.85 * tall, label.x + width / 2, label.y + 0.2 * tall) for label, width, tall in boxes]
    for at, box in enumerate(places):
        assert all(box[2] <= other[0] or other[2] <= box[0] or box[3] <= other[1] or other[3] <= box[1] for other in places[:at])
        for shape in drawing.shapes:
            if isinstance(shape, Points):
                inside = (shape.x > box[0]) & (shape.x < box[2]) & (shape.y > box[1]) & (shape.y < box[3])
                assert not inside.any()


@pytest.mark.parametrize("x", [20.0, 200.0, 398.0])
def test_volcano_labels_do_not_cover_the_ring_of_a_selected_dot(x):
    """The window draws a ring around a selected dot; `outer` is its outer radius for the largest dots, which are those of samples."""
    outer = (7.0 + 2) / 2 + 2 + 1
    ys = np.array([30.0, 150.0, 270.0])
    dots = np.column_stack((np.full(3, x), ys))
    shapes = draw_names(["GAPDH"] * 3, dots[:, 0], ys, dots, (10.0, 10.0, 400.0, 300.0), 8.0)
    labels = [shape for shape in shapes if isinstance(shape, Label)]
    assert len(labels) == 3
    for label, (dot_x, dot_y) in zip(labels, dots.tolist(), strict=True):
        half = text_width(label.text, 8.0) / 2
        gap = np.hypot(max(abs(dot_x - label.x) - half, 0), max(label.y - 6 - dot_y, dot_y - label.y, 0))
        assert gap >= outer


def test_volcano_labels_are_genes_or_accessions():
    assert protein_label("sp|P02769|ALBU_BOVIN", "Albumin OS=Bos taurus OX=9913 GN=ALB PE=1 SV=4") == "ALB"
    assert protein_label("sp|P02769|ALBU_BOVIN", "Albumin OS=Bos taurus GN=HLA A PE=1") == "HLA A"
    assert protein_label("tr|Q1|X", "no gene, AGN=3") == "Q1" and protein_label("NP_1", "albumin [gene=Alb] [x=y]") == "Alb"
    assert protein_label("ENSP1", "pep gene_symbol:ALB description:x") == "ALB" and protein_label("P1", "") == "P1"
