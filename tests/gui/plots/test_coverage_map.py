"""The coverage map, and hits along their query, with what the database knows of the protein."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from proteoscope.engine.formats.features import FEATURE_GROUPS, FEATURE_KINDS
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


def test_features_that_lie_outside_or_are_of_no_known_kind_are_not_drawn() -> None:
    rows = [
        {"kind": "chain", "first": 1, "last": 121, "description": ""},
        {"kind": "a stranger's", "first": 1, "last": 2, "description": ""},
    ]
    assert protein_features([*rows, ROWS[0]], len(SEQUENCE)) == protein_features([ROWS[0]], len(SEQUENCE))


def test_groups_lie_below_each_other_and_no_two_features_overlap_but_in_the_last_line() -> None:
    features = [ProteinFeature(kind.name, kind.group, at, at + 9, "") for kind in FEATURE_KINDS for at in range(0, 40, 3)]
    placed = feature_lanes(features, FEATURE_GROUPS)
    assert sorted(map(id, features)) == sorted(id(feature) for _, feature in placed)
    lanes = {group: sorted({lane for lane, one in placed if one.group == group}) for group in FEATURE_GROUPS}
    assert [lane for group in FEATURE_GROUPS for lane in lanes[group]] == list(range(3 * len(FEATURE_GROUPS)))
    for group in FEATURE_GROUPS:
        for lane in lanes[group][:-1]:
            spans = sorted((one.start, one.end) for at, one in placed if at == lane)
            assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert not [one for _, one in feature_lanes(features, {"site"}) if one.group != "site"]


@pytest.mark.parametrize("kind", [row["kind"] for row in ROWS])
def test_the_tip_of_a_span_tells_its_feature(shown: CoverageMap, coverage: Coverage, kind: str) -> None:
    feature = of_kind(coverage, kind)
    place = shown.canvas.place_of_feature(feature)
    assert feature.told in shown.canvas.text_at(place.center()).splitlines()


def test_the_tip_of_a_residue_tells_all_that_is_known_of_it(shown: CoverageMap) -> None:
    peptide = shown.canvas.place_of(shown.canvas.coverage.peptides[0])  # type: ignore[union-attr]
    assert "LVNELTEFAK" in shown.canvas.text_at(peptide.center())
    layout = shown.canvas._layout
    assert layout is not None
    told = shown.canvas.text_at(layout.residue(59).center()).splitlines()
    assert told == [
        "chain: Albumin (residues 19 to 120)",
        "domain: Albumin 1 (residues 19 to 110)",
        "disulfide bond (residues 58 to 77)",
        "variant: F -> L (residue 60)",
        "variant: F -> S (residue 60)",
    ]


def test_a_click_on_a_group_hides_it_and_the_menu_shows_it_again(shown: CoverageMap, coverage: Coverage) -> None:
    assert [group for group, action in shown.group_actions.items() if action.isVisible()] == list(coverage.groups)
    height = shown.canvas.height()
    place = shown.canvas.place_of_group("variant").center().toPoint()
    QTest.mouseClick(shown.canvas, Qt.MouseButton.LeftButton, pos=QPoint(place.x(), place.y()))
    assert shown.group_actions.shown == frozenset(FEATURE_GROUPS) - {"variant"}
    assert shown.canvas.height() <= height
    assert "show" in shown.canvas.text_at(QPointF(place))
    with pytest.raises(StopIteration):
        shown.canvas.place_of_feature(of_kind(coverage, "variant"))
    shown.group_actions["variant"].trigger()
    assert shown.group_actions.shown == frozenset(FEATURE_GROUPS)
    shown.canvas.place_of_feature(of_kind(coverage, "variant"))


def test_a_map_without_features_is_as_it_was(shown: CoverageMap, coverage: Coverage, tmp_path: Path) -> None:
    shown.show_coverage(replace(coverage, features=()))
    bare = shown.canvas.grab().toImage()
    other = CoverageMap()
    other.resize(shown.size())
    other.show_coverage(cover("P02769", SEQUENCE, [PEPTIDE]))
    other.show()
    QTest.qWaitForWindowExposed(other)
    assert other.canvas.grab().toImage() == bare
    assert not any(action.isVisible() for action in other.group_actions.values())
    other.close()
    other.deleteLater()


def test_a_figure_has_the_groups_by_name(shown: CoverageMap, tmp_path: Path) -> None:
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


def test_features_of_the_query_lie_below_it_and_those_of_hits_are_told(bars: HitBars, coverage: Coverage) -> None:
    layout = bars._layout()
    assert len(layout.features) == len(ROWS)
    for lane, feature in layout.features:
        span = layout.span(lane, feature)
        assert span.left() == layout.x(feature.start + 1) and span.bottom() < layout.key[0][1].top() < layout.top
        assert feature.told in bars.text_at(span.center()).splitlines()
    first, second = (bars.box_of(row) for row in (3, 4))
    assert first is not None and second is not None
    assert bars.text_at(first.center()).splitlines()[-1] == of_kind(coverage, "domain").told
    assert bars.text_at(second.center()).splitlines()[-1] == "residues 11 to 100 of the query"


def test_a_click_hides_a_group_of_the_query(bars: HitBars) -> None:
    layout = bars._layout()
    place = dict(layout.key)["domain"].center()
    QTest.mouseClick(bars.viewport(), Qt.MouseButton.LeftButton, pos=place.toPoint())
    assert "domain" not in bars.group_actions.shown and all(one.group != "domain" for _, one in bars._layout().features)
    assert bars.chosen is None and dict(bars._layout().key).keys() == dict(layout.key).keys()
