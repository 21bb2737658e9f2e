"""Names in strangers' files that look like HTML are shown letter by letter: no label, cell or tooltip takes them for markup."""

from __future__ import annotations

from pathlib import Path

import gemmi
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.drawings import Bar, Drawing
from proteoscope.gui.plots.drawing_view import DrawingView
from proteoscope.gui.results.evidence_view import EvidenceView
from proteoscope.gui.structure.hit_list import HitList
from tests.engine.evidence.evidence_projects import write_albumin, write_identification
from tests.gui.result_views import click_row, opened, settle

MARKUP = "<img/src='x.png'>"


def check_texts(widget: QWidget) -> int:
    """No label and no tooltip of a widget and what is in it has the name as markup; how many have it as text."""
    n = 0
    for one in (widget, *widget.findChildren(QWidget)):
        assert MARKUP not in one.toolTip(), one
        n += "img/src" in one.toolTip()
        if isinstance(one, QLabel) and MARKUP in one.text():
            assert one.textFormat() is Qt.TextFormat.PlainText, one
            n += 1
    return n


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A protein and the chain that it is nearest to, both called like a picture; the chain's file has a second one."""
    structure = gemmi.read_structure(str(write_albumin(tmp_path)))
    sequence = read_structure(tmp_path / "1ao6_A.pdb").chains.sequence(0)
    other = structure[0][0].clone()
    other.name = "B"
    while len(other) > 100:
        del other[-1]
    structure[0].add_chain(other)
    structure.setup_entities()
    structure.info["_struct.title"] = f"title {MARKUP}"
    document = structure.make_mmcif_document()
    names = document.sole_block().find_values("_atom_site.auth_asym_id")
    for row, name in enumerate(names):
        names[row] = gemmi.cif.quote(MARKUP) if name == "A" else name
    document.write_file(str(tmp_path / "named.cif"))
    folder = write_identification(tmp_path, {MARKUP: sequence})
    run_search("evidence", {"project": [folder], "structures": [tmp_path / "named.cif"]}, device="cpu", threads=2)
    return Project.open(folder)


def test_a_protein_and_a_chain_called_like_markup_are_shown_as_text(project: Project, qtbot: QtBot) -> None:
    view = EvidenceView(EVIDENCE)
    opened(view, project, qtbot)
    click_row(view.proteins, 0, qtbot)
    settle(view, qtbot)
    fold = view._fold
    assert fold is not None and MARKUP in fold.near.values["chain"] and view._protein is not None and view._protein.accession == MARKUP
    for tab in range(view.tabs.count()):
        view.tabs.setCurrentIndex(tab)
    click_row(view.peptides, 2, qtbot)
    settle(view, qtbot)
    n = check_texts(view)
    for name in ("proteins", "chains", "sites", "peptide_places"):
        model = view.panels[name].model
        for column in range(model.columnCount()):
            tip = model.data(model.index(0, column), Qt.ItemDataRole.ToolTipRole) or ""
            assert MARKUP not in tip, (name, column)
            n += "img/src" in tip
    assert n > 3


def test_hits_and_bars_called_like_markup_have_tips_of_text(qtbot: QtBot) -> None:
    hits = HitList()
    qtbot.addWidget(hits)
    hits._add(MARKUP, "kept", 1, None)
    assert "&lt;img/src" in hits.item(0).toolTip() and MARKUP not in hits.item(0).toolTip()
    view = DrawingView("Bars", "bars")
    qtbot.addWidget(view)
    view.resize(300, 200)
    view.show_drawing(lambda width, height, font: Drawing(width, height, "bars", (Bar(0, 0, width, height, 1, tip=MARKUP),)))
    view.show()
    qtbot.waitUntil(lambda: bool(view._shapes))
    QTest.mouseMove(view, QPoint(10, 10))
    QTest.mouseMove(view, QPoint(60, 60))
    qtbot.waitUntil(lambda: "img/src" in QToolTip.text())
    assert MARKUP not in QToolTip.text()
    QToolTip.hideText()
