"""Tests that names that look like HTML are shown as text in labels, cells and tooltips."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import gemmi
import pytest
from PySide6 import QtGui
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.drawings import Bar, Drawing
from proteoscope.gui.forms.editors import ModificationsEditor, RunEditor
from proteoscope.gui.forms.file_inspection import SearchedRun
from proteoscope.gui.labels import tip_text
from proteoscope.gui.plots.drawing_view import DrawingView
from proteoscope.gui.results.evidence_view import EvidenceView
from proteoscope.gui.results.quantity_filter import QuantityFilterBar
from proteoscope.gui.spectrum.spectrum_view import SpectrumView
from proteoscope.gui.structure.hit_list import HitList
from tests.engine.evidence.evidence_projects import write_albumin, write_identification
from tests.gui.result_views import click_row, opened, settle

MARKUP = "<img/src='x.png'>"


def check_texts(widget: QWidget) -> int:
    """Check that no label or tooltip of a widget has the name as markup; return how many have it as text."""
    n = 0
    for child in (widget, *widget.findChildren(QWidget)):
        assert MARKUP not in child.toolTip(), child
        n += "img/src" in child.toolTip()
        if isinstance(child, QLabel) and MARKUP in child.text():
            assert child.textFormat() is Qt.TextFormat.PlainText, child
            n += 1
    return n


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Project with a protein and its nearest chain, both named like an HTML image; the chain's file has a second one."""
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


def test_names_like_html_are_shown_as_text_in_evidence_views(project: Project, qtbot: QtBot) -> None:
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


def test_tooltips_of_hits_and_bars_show_names_like_html_as_text(qtbot: QtBot) -> None:
    hits = HitList()
    qtbot.addWidget(hits)
    hits._add(MARKUP, "stored", 1, None)
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


@pytest.mark.parametrize("name", [MARKUP, "&lt;b&gt;x", "a & b", "plain"])
def test_tip_text_escapes_entities_and_tags(name: str, qtbot: QtBot) -> None:
    shown = QLabel(tip_text(name))
    qtbot.addWidget(shown)
    document = QTextDocument()
    if QtGui.Qt.mightBeRichText(shown.text()):
        document.setHtml(shown.text())
    else:
        document.setPlainText(shown.text())
    assert document.toPlainText() == name


def test_tooltips_of_boxes_and_lists_show_html_names_as_text(qtbot: QtBot) -> None:
    bar = QuantityFilterBar()
    qtbot.addWidget(bar)
    bar.open([f"{MARKUP} / B"], 0.01)
    run = RunEditor()
    qtbot.addWidget(run)
    run.offer([SearchedRun("identify-0001", datetime(2026, 1, 1, tzinfo=UTC), (f"{MARKUP}.mgf",))])
    lines = ModificationsEditor(IdentificationParameters.describe()[0])
    qtbot.addWidget(lines)
    lines.append([MARKUP])
    tips = [
        bar.comparison.itemData(0, Qt.ItemDataRole.ToolTipRole),
        run.findChildren(QComboBox)[0].itemData(1, Qt.ItemDataRole.ToolTipRole),
    ]
    for tip in (*tips, lines.lines.item(0).toolTip()):
        assert MARKUP not in tip
        assert "img/src" in tip


def test_ion_table_shows_modification_names_like_html_as_text(qtbot: QtBot) -> None:
    view = SpectrumView()
    qtbot.addWidget(view)
    view.show_text(MARKUP)
    assert view.findChildren(QLabel)
    check_texts(view)
    model = view.ion_table.model()
    spectrum = SimpleNamespace(
        is_matched=[False], name=lambda ion: "b", shift=SimpleNamespace(name=MARKUP), carries_shift=[True], ions=SimpleNamespace(mz=[1.0])
    )
    assert MARKUP not in model._of_ion(spectrum, 0, Qt.ItemDataRole.ToolTipRole)
    ions = SimpleNamespace(modifications=((MARKUP,),), residue=lambda row: "A")
    assert MARKUP not in model._of_residue(ions, 0, Qt.ItemDataRole.ToolTipRole)
