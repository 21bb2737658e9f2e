"""Tests of the coverage map, and of hits along their query, with the features of the protein."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtTest import QTest

from proteoscope.engine.formats.features import FEATURE_GROUPS, FEATURE_KINDS
from proteoscope.engine.views import drawings
from proteoscope.engine.views.coverage import Coverage, ProteinFeature, cover, feature_lanes, protein_features
from proteoscope.engine.views.hits import Bar, QueryBars
from proteoscope.gui.plots.coverage_map import CoverageMap
from proteoscope.gui.plots.hit_bars import HitBars

SEQUENCE = "MKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVKLVNELTEFAKTCVADESHAGCEKSLHTLFGDELCKVASLRETYGDMADCCEKQEP"
PEPTIDE = {"row": 4, "peptide": "LVNELTEFAK", "sequence": "LVNELTEFAK", "n_psms": 3, "q_value": 0.001}
ROWS = [
    {"kind": "signal peptide", "first": 1, "last": 18, "description": ""},
    {"kind": "chain", "first": 19, "last": 120, "description": "Albumin"},
    {"kind": "domain", "first": 19, "last": 110, "description": "Albumin 1"},
    {"kind": "binding site", "first": 27, "last": 27, "description": "Cu cation"},
    {"kind": "modified residue", "first": 29, "last": 29, "description": "Phosphoserine"},
    {"kind": "disulfide bond", "first": 58, "last": 77, "description": ""},
    {"kind": "variant", "first": 60, "last": 60, "description": "F -> L"},
    {"kind": "variant", "first": 60, "last": 60, "description": "F -> S"},
    {"kind": "helix", "first": 40, "last": 55, "description": ""},
]


@pytest.fixture
def coverage() -> Coverage:
    return replace(cover("P02769", SEQUENCE, [PEPTIDE]), features=protein_features(ROWS, len(SEQUENCE)))


@pytest.fixture
def shown(qapp: object, coverage: Coverage) -> Iterator[CoverageMap]:
    view = CoverageMap()
    view.resize(900, 600)
    view.show_coverage(coverage)
    view.show()
    QTest.qWaitForWindowExposed(view)
    yield view
    view.close()
    view.deleteLater()


def of_kind(coverage: Coverage, kind: str) -> ProteinFeature:
    return next(feature for feature in coverage.features if feature.kind == kind)


def test_protein_features_out_of_range_or_unknown_are_skipped() -> None:
    rows = [
        {"kind": "chain", "first": 1, "last": 121, "description": ""},
        {"kind": "an unknown kind", "first": 1, "last": 2, "description": ""},
    ]
    assert protein_features([*rows, ROWS[0]], len(SEQUENCE)) == protein_features([ROWS[0]], len(SEQUENCE))


def test_protein_features_overlap_only_in_the_last_line_of_group() -> None:
    features = [ProteinFeature(kind.name, kind.group, at, at + 9, "") for kind in FEATURE_KINDS for at in range(0, 40, 3)]
    placed = feature_lanes(features, FEATURE_GROUPS)
    assert sorted(map(id, features)) == sorted(id(feature) for _, feature in placed)
    lanes = {group: sorted({lane for lane, feature in placed if feature.group == group}) for group in FEATURE_GROUPS}
    assert [lane for group in FEATURE_GROUPS for lane in lanes[group]] == list(range(3 * len(FEATURE_GROUPS)))
    for group in FEATURE_GROUPS:
        for lane in lanes[group][:-1]:
            spans = sorted((feature.start, feature.end) for at, feature in placed if at == lane)
            assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert not [feature for _, feature in feature_lanes(features, {"site"}) if feature.group != "site"]


def place_of(view: CoverageMap | HitBars, target: object) -> QRectF:
    """Return the position of the first bar of a target on the viewport."""
    assert view.drawing is not None
    bar = next(shape for shape in view.drawing.shapes if isinstance(shape, drawings.Bar) and shape.target == target)
    return QRectF(bar.x, bar.y, bar.width, bar.height).translated(0, -view.in_sight.top)


@pytest.mark.parametrize("kind", [row["kind"] for row in ROWS])
def test_coverage_map_tooltip_describes_the_protein_feature(shown: CoverageMap, coverage: Coverage, kind: str) -> None:
    feature = of_kind(coverage, kind)
    assert feature.text in shown.text_at(place_of(shown, feature).center()).splitlines()


def test_coverage_map_tooltip_lists_peptides_and_features(shown: CoverageMap) -> None:
    assert shown.coverage is not None and shown._sheet is not None
    assert "LVNELTEFAK" in shown.text_at(place_of(shown, shown.coverage.peptides[0]).center())
    lines = shown.text_at(QRectF(*shown._sheet.residue(59)).center()).splitlines()
    assert lines == [
        "chain: Albumin (residues 19 to 120)",
        "domain: Albumin 1 (residues 19 to 110)",
        "disulfide bond (residues 58 to 77)",
        "variant: F -> L (residue 60)",
        "variant: F -> S (residue 60)",
    ]


def test_legend_hides_a_feature_group_and_menu_shows_it_again(shown: CoverageMap, coverage: Coverage) -> None:
    assert [group for group, action in shown.group_actions.items() if action.isVisible()] == list(coverage.groups)
    assert shown._sheet is not None
    height = shown._sheet.size[1]
    place = QRectF(*shown._sheet.key.boxes["variant"]).center().toPoint()
    QTest.mouseClick(shown.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert shown.group_actions.shown == frozenset(FEATURE_GROUPS) - {"variant"}
    assert shown._sheet.size[1] < height
    assert "show" in shown.text_at(QPointF(place))
    with pytest.raises(StopIteration):
        place_of(shown, of_kind(coverage, "variant"))
    shown.group_actions["variant"].trigger()
    assert shown.group_actions.shown == frozenset(FEATURE_GROUPS)
    place_of(shown, of_kind(coverage, "variant"))


def test_coverage_map_without_features_has_no_feature_lines(shown: CoverageMap, coverage: Coverage, tmp_path: Path) -> None:
    shown.show_coverage(replace(coverage, features=()))
    bare = shown.viewport().grab().toImage()
    other = CoverageMap()
    other.resize(shown.size())
    other.show_coverage(cover("P02769", SEQUENCE, [PEPTIDE]))
    other.show()
    QTest.qWaitForWindowExposed(other)
    assert other.viewport().grab().toImage() == bare
    assert not any(action.isVisible() for action in other.group_actions.values())
    other.close()
    other.deleteLater()


def test_exported_coverage_figure_has_the_feature_groups(shown: CoverageMap, tmp_path: Path) -> None:
    shown.export_action.write(tmp_path / "coverage.svg")
    text = (tmp_path / "coverage.svg").read_text()
    assert "disulfide bond" in text and "secondary structure" in text


@pytest.fixture
def bars(qapp: object, coverage: Coverage) -> Iterator[HitBars]:
    view = HitBars()
    view.resize(700, 400)
    hit = Bar(3, "S1", "a protein", 11, 100, 90.0, 1e-9, 0.5, (of_kind(coverage, "domain"),))
    view.show_bars(QueryBars("Q", len(SEQUENCE), (hit, replace(hit, row=4, features=())), 2, coverage.features))
    view.show()
    QTest.qWaitForWindowExposed(view)
    yield view
    view.close()
    view.deleteLater()


def test_hit_bars_show_features_of_query_and_hits(bars: HitBars, coverage: Coverage) -> None:
    sheet = bars._sheet
    assert sheet is not None and len(sheet.features) == len(ROWS)
    left, right = (sheet._x(residue) for residue in (1, len(SEQUENCE) + 1))
    for _, feature in sheet.features:
        span = place_of(bars, feature)
        assert span.left() == pytest.approx(left + feature.start / len(SEQUENCE) * (right - left))
        assert span.bottom() < sheet.key.boxes["domain"].top < sheet.top
        assert feature.text in bars.text_at(span.center()).splitlines()
    first, second = (bars.on_viewport(sheet.box(place)) for place in (0, 1))
    assert bars.text_at(first.center()).splitlines()[-1] == of_kind(coverage, "domain").text
    assert bars.text_at(second.center()).splitlines()[-1] == "residues 11 to 100 of the query"


def test_click_on_legend_of_hit_bars_hides_a_feature_group(bars: HitBars) -> None:
    assert bars._sheet is not None
    groups = list(bars._sheet.key.boxes)
    place = QRectF(*bars._sheet.key.boxes["domain"]).center()
    QTest.mouseClick(bars.viewport(), Qt.MouseButton.LeftButton, pos=place.toPoint())
    assert "domain" not in bars.group_actions.shown and all(feature.group != "domain" for _, feature in bars._sheet.features)
    assert bars.chosen is None and list(bars._sheet.key.boxes) == groups
