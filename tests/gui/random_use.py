"""Random clicks, keys, orders and filters in views, and checks that each part shows what is selected, as in the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QCheckBox, QComboBox, QTabWidget, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.peaks import Peaks
from proteoscope.gui.results.cluster_view import ClusterView
from proteoscope.gui.results.comparison_view import ComparisonView
from proteoscope.gui.results.evidence_view import EvidenceView
from proteoscope.gui.results.explanation_view import ExplanationView
from proteoscope.gui.results.hits_view import HitsView
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.results.library_view import LibraryView
from proteoscope.gui.results.modified_view import ModifiedView
from proteoscope.gui.results.quantity_view import QuantityView
from proteoscope.gui.results.query_hits_view import QueryHitsView
from proteoscope.gui.results.reads_view import ReadsView
from proteoscope.gui.results.spectra_run_view import SpectraRunView
from proteoscope.gui.results.structure_view import StructureView
from proteoscope.gui.tables.panel import TablePanel

BY_SAMPLE = ("proteins", "peptides")
"""Tables of a quantification that the view makes from several, a column for each sample."""
MODIFIERS = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
)
KEYS = (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp, Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Space)
Row = dict[str, Any]


class Tables:
    """Tables of a run, read from its files without the program.

    Parameters
    ----------
    project : Path
        Folder of the project.
    run : str
        Id of the run.
    """

    def __init__(self, project: Path, run: str) -> None:
        results = project / "results"
        # An explanation uses the spectra of the explained run.
        folders = [results / run, *(folder for folder in sorted(results.iterdir()) if folder.name != run)]
        self._paths = {path.stem: path for folder in reversed(folders) for path in folder.glob("*.parquet")}
        self._read: dict[str, list[Row]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._paths

    def __getitem__(self, name: str) -> list[Row]:
        if name not in self._read:
            self._read[name] = pq.read_table(self._paths[name]).to_pylist()
        return self._read[name]


class User:
    """Simulated user who clicks, presses keys, sorts, filters and scrolls at random within the visible area.

    Parameters
    ----------
    view, bar : QWidget
        The view, and the bar with its filter.
    texts : sequence of str
        Texts typed into the filter.
    seed : int or numpy.random.Generator
        Seed of the actions.
    """

    def __init__(self, view: QWidget, bar: QWidget, texts: list[str], seed: int | np.random.Generator) -> None:
        self.view, self._bar, self._texts = view, bar, texts
        self._random = np.random.default_rng(seed)
        self.done: list[str] = []

    def act(self) -> None:
        """Perform one action."""
        ways = (self._click, self._press, self._sort, self._filter, self._turn, self._show_all)
        way = ways[self._random.choice(len(ways), p=(0.5, 0.2, 0.08, 0.12, 0.07, 0.03))]
        self.done.append(f"{way.__name__.strip('_')} {way()}")

    def _one(self, of: list[Any]) -> Any:
        return of[int(self._random.integers(len(of)))] if of else None

    def _panel(self) -> TablePanel | None:
        return self._one([panel for panel in self.view.findChildren(TablePanel) if panel.isVisible()])

    def _click(self) -> str:
        panel = self._panel()
        if panel is None:
            return ""
        area, modifier = panel.view.viewport(), self._one(list(MODIFIERS))
        # This includes clicks below the last row, which clear the selection.
        n_rows = (panel.model.rowCount() + 1) * panel.view.verticalHeader().defaultSectionSize()
        at = QPoint(int(self._random.integers(min(area.width(), 200))), int(self._random.integers(min(area.height(), n_rows))))
        QTest.mouseClick(area, Qt.MouseButton.LeftButton, modifier, at)
        return f"{panel.title} {panel.view.rowAt(at.y())} {modifier.name}"

    def _press(self) -> str:
        panel = self._panel()
        if panel is None:
            return ""
        key, modifier = self._one(list(KEYS)), self._one(list(MODIFIERS))
        QTest.keyClick(panel.view, key, modifier)
        return f"{panel.title} {key.name} {modifier.name}"

    def _sort(self) -> str:
        panel = self._panel()
        if panel is None:
            return ""
        header = panel.view.horizontalHeader()
        at = QPoint(int(self._random.integers(header.viewport().width())), header.height() // 2)
        QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
        return f"{panel.title} {header.logicalIndexAt(at.x())}"

    def _filter(self) -> str:
        kinds = (QComboBox, QCheckBox, QAbstractSpinBox)
        boxes = [box for kind in kinds for box in self._bar.findChildren(kind) if box.isVisible() and box.isEnabled()]
        field = self._one([getattr(self._bar, "text", None), getattr(self._bar, "reset_button", None), *boxes])
        if isinstance(field, QComboBox):
            QTest.keyClick(field, self._one([Qt.Key.Key_Down, Qt.Key.Key_Up]))
        elif isinstance(field, QAbstractSpinBox):
            field.setFocus()
            field.selectAll()
            QTest.keyClicks(field, self._one(["0", "1", "0.01", "2", "20", "100"]))
            QTest.keyClick(field, Qt.Key.Key_Return)
        elif field is not None and field is getattr(self._bar, "text", None):
            field.setText(self._one(["", "", "no row has this", *self._texts]))
            QTest.keyClick(field, Qt.Key.Key_Return)
            return f"text {field.text()!r}"
        elif field is not None:
            QTest.mouseClick(field, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, field.rect().center())
        return "" if field is None else field.accessibleName() or field.text()

    def _turn(self) -> str:
        tabs = self._one([tabs for tabs in self.view.findChildren(QTabWidget) if tabs.isVisible()])
        if tabs is None:
            return ""
        at = self._one([at for at in range(tabs.count()) if tabs.isTabVisible(at)])
        QTest.mouseClick(tabs.tabBar(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, tabs.tabBar().tabRect(at).center())
        return str(tabs.tabText(at))

    def _show_all(self) -> str:
        buttons = [panel.all_button for panel in self.view.findChildren(TablePanel) if panel.all_button.isVisible()]
        button = self._one(buttons)
        if button is not None:
            button.click()
        return "" if button is None else button.accessibleName()


def settle(view: Any, qtbot: QtBot) -> None:
    """Wait until everything is read and shown."""
    quiet = 0
    while quiet < 3:
        QApplication.processEvents()
        quiet = 0 if view.is_busy else quiet + 1
        qtbot.waitUntil(lambda: not view.is_busy)


def chosen_row(panel: TablePanel) -> int | None:
    """Return the row whose details are shown, and check that it is selected."""
    selected, chosen = panel.view.selected, panel.view.chosen
    assert (chosen is None) == (not selected) and (chosen is None or chosen in selected), f"{panel.title}: {chosen} of {selected}"
    return chosen


def shown_rows(panel: TablePanel) -> list[int]:
    return panel.model.rows.tolist()


def values_at(panel: TablePanel, position: int) -> Row:
    """Return the values of a row; a table that was not painted yet reads them on request."""
    while (values := panel.model.values(position)) is None:
        QTest.qWait(1)
    return values


def check_cells(panel: TablePanel, rows: list[Row]) -> None:
    """Check that the cells of the selected row and of another visible row equal the file."""
    chosen = chosen_row(panel)
    for position in {0, 0 if chosen is None else panel.model.position_of(chosen)} if len(panel.model.rows) else ():
        assert position is not None
        values = values_at(panel, position)
        expected = rows[int(panel.model.rows[position])]
        same = [name for name in values if name in expected]
        assert same and all(_is_same(values[name], expected[name]) for name in same), (values, expected)


def _is_same(first: Any, other: Any) -> bool:
    return first == other or (first != first and other != other)


def check_spectrum(shown: Peaks, spectrum: Row) -> None:
    """Check that the peaks equal those of a row of the spectra table, which has them in order of m/z."""
    np.testing.assert_allclose(shown.mz, spectrum["mz"], rtol=1e-6)


def upper(shown: MirroredSpectra | None) -> Peaks:
    assert shown is not None
    return shown.upper.peaks


# ------------------------------------------------------------------------------------------------------- contents of each view


def spectrum_in_sight(view: SpectraRunView, matches: TablePanel, rows: list[Row]) -> tuple[int | None, int | None]:
    """Return the spectrum and the match selected in the visible list."""
    if view._shows_listed_spectrum:
        spectrum = chosen_row(view.spectra.panel.table)
        if spectrum is None:
            return None, None
        values = values_at(view.spectra.panel.table, view.spectra.panel.table.model.position_of(spectrum) or 0)
        match = int(values["psm"]) if values["is_identified"] and values["psm"] is not None else None
        assert match is None or rows[match]["spectrum"] == spectrum
        return spectrum, match
    match = chosen_row(matches)
    sites = getattr(view, "sites", None)
    if sites is not None and view._lists.currentWidget() is sites:
        site = chosen_row(sites.psm_sites)
        match = None if site is None else int(values_at(sites.psm_sites, sites.psm_sites.model.position_of(site) or 0)["psm"])
    return (None, None) if match is None else (int(rows[match]["spectrum"]), match)


def check_identification(view: IdentificationView, tables: Tables) -> None:
    psms, peptides, proteins = tables["psms"], tables["peptides"], tables["proteins"]
    spectrum, match = spectrum_in_sight(view, view.psms, psms)
    assert view.pane.row == match == view.pane.marks.row
    if spectrum is None:
        assert view.pane.spectrum.spectrum is None and view.pane.mirror.spectra is None and view.pane.spectrum.text
    elif match is None:
        assert view.pane.spectrum.spectrum is None
        check_spectrum(upper(view.pane.mirror.spectra), tables["spectra"][spectrum])
    else:
        shown = view.pane.spectrum.spectrum
        assert shown is not None
        check_spectrum(shown.peaks, tables["spectra"][spectrum])
        assert f"m/z {psms[match]['precursor_mz']:.4f} ({psms[match]['charge']}+)" in shown.title
    protein, peptide = chosen_row(view.proteins), chosen_row(view.peptides)
    if protein is None:
        assert view.coverage.coverage is None and view.peptides.scope_text == ""
    else:
        accessions = set(proteins[protein]["accessions"])
        if view.coverage.coverage is not None:
            assert view.coverage.coverage.title.startswith(proteins[protein]["accessions"][0])
        for panel, rows in ((view.peptides, peptides), (view.psms, psms)):
            if panel.scope_text.startswith(f"of {proteins[protein]['accessions'][0]}"):
                assert all(accessions & set(rows[row]["proteins"]) for row in shown_rows(panel))
            elif panel is view.peptides:
                assert panel.scope_text == ""
    assert view.coverage.coverage is None or view.coverage.chosen == peptide
    if peptide is not None and view.psms.scope_text:
        assert view.psms.scope_text == f"of {peptides[peptide]['peptide']}"
        assert all(psms[row]["peptide"] == peptides[peptide]["peptide"] for row in shown_rows(view.psms))


def check_modified(view: ModifiedView, tables: Tables) -> None:
    psms = tables["psms"]
    spectrum, match = spectrum_in_sight(view, view.psms, psms)
    assert view.marks.row == match
    if spectrum is None:
        assert view.mirror.spectra is None and view.spectrum.spectrum is None and view.mirror.text
    else:
        check_spectrum(upper(view.mirror.spectra), tables["spectra"][spectrum])
        assert (view.spectrum.spectrum is None) == (match is None)
        if match is not None:
            assert view.spectrum.spectrum is not None
            check_spectrum(view.spectrum.spectrum.peaks, tables["spectra"][spectrum])
            assert view.mirror.title.startswith(f"{psms[match]['peptide']} ({psms[match]['charge']}+)")
    modifications, protein = [modification.row for modification in view.chosen_modifications], chosen_row(view.proteins)
    chosen_row(view.modifications)
    assert not (modifications and protein is not None), "the PSMs belong to one or the other"
    assert view.histogram.marked == frozenset(modifications)
    shown = [psms[row] for row in shown_rows(view.psms)]
    if view.psms.scope_text and modifications:
        names = {tables["modifications"][row]["name"] for row in modifications}
        assert all(row["modification"] in names for row in shown)
    elif view.psms.scope_text and protein is not None:
        assert all(set(tables["proteins"][protein]["accessions"]) & set(row["proteins"]) for row in shown)
    else:
        assert not (modifications or protein is not None) or view.psms.scope_text == ""


def check_mirrored(view: ExplanationView | LibraryView, tables: Tables) -> None:
    name = "explained" if isinstance(view, ExplanationView) else "matches"
    spectrum, match = spectrum_in_sight(view, view.panels[name], tables[name])
    if spectrum is None:
        assert view.mirror.spectra is None and view.mirror.text
        return
    check_spectrum(upper(view.mirror.spectra), tables["spectra"][spectrum])
    if match is not None and isinstance(view, LibraryView):
        lower = view.mirror.spectra.lower if view.mirror.spectra is not None else None
        assert lower is not None
        check_spectrum(lower.peaks, tables["references"][tables[name][match]["reference"]])


def check_clusters(view: ClusterView, tables: Tables) -> None:
    member, cluster = chosen_row(view.members), chosen_row(view.clusters)
    members = tables["members"]
    if member is None:
        assert view.mirror.spectra is None and view.mirror.text
    else:
        check_spectrum(upper(view.mirror.spectra), tables["spectra"][member])
        assert view.mirror.title.startswith(str(members[member]["title"]))
    if view.members.scope_text:
        assert cluster is not None
        number = tables["clusters"][cluster]["cluster"]
        assert view.members.scope_text == f"of cluster {number}"
        assert all(members[row]["cluster"] == number for row in shown_rows(view.members))
    elif cluster is not None and member is not None:
        position = [row for row, cluster in enumerate(tables["clusters"]) if cluster["cluster"] == members[member]["cluster"]]
        assert not position or cluster in position or view.clusters.model.position_of(position[0]) is None


def check_hits(view: QueryHitsView, tables: Tables) -> None:
    hit, query, hits = chosen_row(view.hits), chosen_row(view.queries), tables["hits"]
    pair, name = view.alignment.plot.pair, "subject" if isinstance(view, HitsView) else "target"
    if hit is None:
        assert pair is None
    else:
        assert pair is not None and (pair.query_name, pair.subject_name) == (hits[hit]["query"], hits[hit][name])
        if isinstance(view, HitsView):
            assert (pair.query, pair.subject) == (hits[hit]["aligned_query"], hits[hit]["aligned_subject"])
        assert query is None or tables["queries"][query]["query_index"] == hits[hit]["query_index"]
    if query is None:
        assert view.hits.scope_text == ""
    elif view.hits.scope_text:
        assert view.hits.scope_text == f"of {tables['queries'][query]['query']}"
        assert all(hits[row]["query_index"] == tables["queries"][query]["query_index"] for row in shown_rows(view.hits))
    if isinstance(view, HitsView):
        _check_figures_of_hits(view, hit, hits)


def _check_figures_of_hits(view: HitsView, hit: int | None, hits: list[Row]) -> None:
    assert view.bars.chosen == hit
    if view.tabs.currentWidget() is view.subject:
        assert (view.subject.subject is None) == (hit is None)
        if hit is not None and view.subject.subject is not None:
            assert (view.subject.subject.name, view.subject.subject.start) == (hits[hit]["subject"], hits[hit]["subject_start"])
    elif view.tabs.currentWidget() is view.stack and view.stack.found is not None:
        stacked, selected = view.stack.found.rows.tolist(), view.hits.view.selected
        assert len(selected) < 2 or set(stacked) <= set(selected)


def check_reads(view: ReadsView, tables: Tables) -> None:
    row, alignments = chosen_row(view.alignments), tables["alignments"]
    pair = view.alignment.plot.pair
    if row is None:
        assert pair is None and view.coverage.marked is None and view.pileup.plot.chosen is None
        return
    values = alignments[row]
    if values["text_start"] is None:
        assert pair is None and values["pattern"] in view.alignment.plot.text
        assert view.coverage.marked is None and view.pileup.plot.chosen is None
        return
    assert pair is not None and (pair.query_name, pair.subject_name) == (values["pattern"], values["text"])
    assert pair.subject_start == values["text_start"]
    assert view.pileup.plot.chosen == row
    if view.references.currentText() == values["text"]:
        assert view.coverage.marked == (values["text_start"], values["text_end"])
    if view.tabs.currentWidget() is view.pileup and view.pileup.plot.pile is not None:
        pile = view.pileup.plot.pile
        assert pile.text.name == values["text"] and row in pile.row
        assert view.alignments.scope_text or set(pile.row.tolist()) <= set(shown_rows(view.alignments))


def check_quantities(view: QuantityView, tables: Tables) -> None:
    changes, proteins = chosen_row(view.changes), chosen_row(view.proteins)
    peptide, ion = chosen_row(view.peptides), chosen_row(view.ions)
    named = {values_of(panel)["accession"] for panel, row in ((view.changes, changes), (view.proteins, proteins)) if row is not None}
    assert len(named) <= 1, named
    drawing = view.profile.drawing
    if not named:
        assert drawing is None and view.peptides.scope_text == ""
    else:
        (accession,) = named
        assert drawing is not None and drawing.title.startswith(f"{accession} and ")
        if view.peptides.scope_text:
            assert view.peptides.scope_text == f"of {accession}"
            assert {values_at(view.peptides, position)["accession"] for position in range(view.peptides.model.rowCount())} <= {accession}
    assert view.profile.marked == peptide
    traces = view.traces.traces
    if ion is None:
        assert traces is None
    else:
        expected = tables["ion_traces"][ion]
        assert traces is not None and (traces.peptide, traces.charge) == (expected["peptide"], expected["charge"])
        assert ion in [trace.row for trace in traces.traces]
    sample = chosen_row(view.samples)
    assert view.plots["components"].marked == view.plots["correlations"].marked == sample


def values_of(panel: TablePanel) -> Row:
    row = panel.view.chosen
    position = None if row is None else panel.model.position_of(row)
    assert position is not None
    return values_at(panel, position)


def check_evidence(view: EvidenceView, tables: Tables) -> None:
    protein = chosen_row(view.proteins)
    if protein is None:
        assert view.coverage.coverage is None and view.alignment.plot.pair is None
        return
    accession = tables["proteins"][protein]["accession"]
    coverage = view.coverage.coverage
    assert coverage is not None and coverage.title.startswith(accession) and coverage.sequence == tables["proteins"][protein]["sequence"]
    for name in ("peptide_places", "sites", "missed", "contacts", "paralogues", "chains", "homologues"):
        panel = view.panels[name]
        if panel.scope_text:
            assert accession in panel.scope_text
            assert all(tables[name][row]["protein"] == protein for row in shown_rows(panel))
    chain, pair = chosen_row(view.chains), view.alignment.plot.pair
    if chain is not None and tables["chains"][chain]["protein"] == protein and tables["chains"][chain]["kind"] == "near":
        assert pair is not None and pair.subject_name == tables["chains"][chain]["chain"]
    elif pair is not None:
        assert pair.subject_name in [row["chain"] for row in tables["chains"] if row["protein"] == protein]
    if view.tabs.currentWidget() is view.peptides and view._place is None:
        peptide = chosen_row(view.peptides)
        is_here = peptide is not None and tables["peptide_places"][peptide]["protein"] == protein
        assert view.coverage.chosen == (peptide if is_here else None)


def check_comparison(view: ComparisonView, tables: Tables) -> None:
    panel = view.panel
    row, mirrored = chosen_row(panel), view.mirror.spectra
    has_spectrum = view._level.name in ("spectra", "psms", "peptidoforms", "peptides")
    if row is None or not has_spectrum:
        assert mirrored is None and view.mirror.text
        return
    if mirrored is None:
        assert view.mirror.text.startswith("Only one of the runs identified")
        return
    name = mirrored.title.partition(": ")[0]
    spectrum = next(psm["spectrum"] for psm in tables["psms"] if psm["spectrum_id"] == name)
    check_spectrum(upper(mirrored), tables["spectra"][spectrum])
    values = values_of(panel)
    if view._level.name == "spectra":
        assert values["spectrum_id"] == name


CHECKS: dict[str, tuple[Callable[..., QWidget], Callable[[Any, Tables], None]]] = {
    "identify": (IdentificationView, check_identification),
    "import": (IdentificationView, check_identification),
    "modified": (ModifiedView, check_modified),
    "cluster": (ClusterView, check_clusters),
    "explain": (ExplanationView, check_mirrored),
    "library": (LibraryView, check_mirrored),
    "quantify": (QuantityView, check_quantities),
    "align": (HitsView, check_hits),
    "structures": (StructureView, check_hits),
    "reads": (ReadsView, check_reads),
    "evidence": (EvidenceView, check_evidence),
}


def check_view(view: Any, kind: str, tables: Tables) -> None:
    """Check that a view of a run shows what is selected, as in the tables of the run."""
    for name, panel in view.panels.items():
        if name in tables and not (name in BY_SAMPLE and isinstance(view, QuantityView)):
            check_cells(panel, tables[name])
        else:
            chosen_row(panel)
    CHECKS[kind][1](view, tables)


def texts_of(tables: Tables, names: list[str]) -> list[str]:
    """Return texts that occur in some rows of the tables."""
    texts: list[str] = []
    for name in names:
        if name in tables:
            texts += [value[:5] for row in tables[name][:4] for value in row.values() if isinstance(value, str) and value]
    return sorted(set(texts))
