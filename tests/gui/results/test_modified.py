"""Tests of open modification search results of real spectra with real input events, compared with the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.figures import Bars
from proteoscope.engine.views.modified import ModificationRow, variable_modifications
from proteoscope.gui.forms.prefill import FormPrefill
from proteoscope.gui.results.modified_view import ModifiedView
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.views.modified_projects import PROTEINS, QC_SHEW, project_with_modifications
from tests.engine.views.result_projects import rows_of
from tests.gui.result_views import SharedView, click_row, cut_off, opened, overlapping, settle, shown

FDR = 0.01


@pytest.fixture(scope="module")
def project(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_modifications(tmp_path_factory.mktemp("modified") / "project", shared_data)


@pytest.fixture(scope="module")
def cached_view(project: Project, request: pytest.FixtureRequest) -> Iterator[SharedView[ModifiedView]]:
    opened_view = SharedView(ModifiedView(search_of_kind("modified")), project, request)
    yield opened_view
    opened_view.close()


@pytest.fixture
def view(cached_view: SharedView[ModifiedView], qtbot: QtBot, theme: Theme) -> ModifiedView:
    return cached_view.as_opened(qtbot)


@pytest.fixture
def own_view(project: Project, qtbot: QtBot, theme: Theme) -> Iterator[ModifiedView]:
    """View for a test that changes what other tests would see."""
    widget = ModifiedView(search_of_kind("modified"))
    opened(widget, project, qtbot)
    yield widget
    widget.clear()


@pytest.fixture(scope="module")
def accepted(project: Project) -> list[dict[str, Any]]:
    rated = [row for row in rows_of(project, "psms") if row["q_value"] is not None]
    return [row for row in rated if row["rank"] == 1 and not row["is_decoy"] and row["q_value"] <= FDR]


def choose_modification(view: ModifiedView, name: str, qtbot: QtBot) -> None:
    click_row(view.modifications, shown(view.modifications, "name").index(name), qtbot)
    settle(view, qtbot)


def choose_match(view: ModifiedView, row: dict[str, Any], qtbot: QtBot) -> None:
    view.show_all("psms")
    settle(view, qtbot)
    view.psms.view.choose(shown(view.psms, "scan").index(row["scan"]))
    settle(view, qtbot)


def test_modified_header_summarises_mass_shifts_by_kind(view: ModifiedView, accepted: list[dict[str, Any]]) -> None:
    kinds = Counter(row["shift_kind"] for row in accepted)
    shifted = f"{kinds['named']} with a known shift, {kinds['end']} with another peptide end, {kinds['unnamed']} with an unknown shift"
    assert f"{kinds['none']} PSMs without a shift, {shifted}" in view.header.facts
    assert "mass shifts from -150 to 500 Da" in view.header.facts and "precursors within 10 ppm" in view.header.facts
    assert view.header.text.startswith(f"{len(accepted)} PSMs")
    assert shown(view.psms, "scan") and view.psms.view.chosen is not None


def bars_of(view: ModifiedView) -> list[Bars]:
    """Return the bars of all matches, of named or unshifted ones, and of the selected ones."""
    return [mark for mark in view.histogram.panel_in_sight().marks if isinstance(mark, Bars)]


def test_shift_histogram_counts_accepted_matches(view: ModifiedView, accepted: list[dict[str, Any]]) -> None:
    counts, explained_counts, _ = bars_of(view)
    edges = np.append(counts.left, counts.right[-1])
    shift = np.array([row["mass_shift"] for row in accepted])
    assert counts.height.tolist() == np.histogram(shift, edges)[0].tolist()
    explained = np.array([row["shift_kind"] != "unnamed" for row in accepted])
    assert explained_counts.height.tolist() == np.histogram(shift[explained], edges)[0].tolist()


def test_click_on_bar_of_shift_histogram_lists_its_spectra(own_view: ModifiedView, accepted: list[dict[str, Any]], qtbot: QtBot) -> None:
    view = own_view
    view.histogram.show_range(((-20.0, 60.0),))
    at = QPointF(view.histogram.place_of(15.995, 0.0).x(), view.histogram.inner().bottom() - 2)
    QTest.mouseClick(view.histogram.viewport(), Qt.MouseButton.LeftButton, pos=at.toPoint())
    settle(view, qtbot)
    assert view.histogram.selected_range is not None
    low, high = view.histogram.selected_range
    expected = sorted(row["scan"] for row in accepted if low <= row["mass_shift"] < high)
    assert expected and sorted(shown(view.psms, "scan")) == expected
    assert view.psms.scope_text.startswith("of 15.") and view.spectrum.spectrum is not None
    view.psms.all_button.click()
    settle(view, qtbot)
    assert len(view.psms.model.rows) == len(accepted) and view.histogram.selected_range is None


def test_selected_modification_lists_as_many_matches_as_stated(view: ModifiedView, project: Project, qtbot: QtBot) -> None:
    rows = rows_of(project, "modifications")
    kinds = {row["kind"] for row in rows}
    assert kinds == {"named", "unnamed"}  # too few matches have another end to be rated
    of_kind = [[at for at, row in enumerate(rows) if row["kind"] == kind] for kind in kinds]
    for at in sorted({at for places in of_kind for at in (*places[:3], *places[3::15])}):
        view.modifications.view.choose(at)
        settle(view, qtbot)
        assert len(view.psms.model.rows) == rows[at]["psms"], rows[at]
        assert bars_of(view)[2].height.sum() == rows[at]["psms"], rows[at]


def test_matches_of_selected_modifications_are_listed_together(view: ModifiedView, project: Project, qtbot: QtBot) -> None:
    rows = rows_of(project, "modifications")
    view.modifications.view.selectAll()
    settle(view, qtbot)
    assert len(view.psms.model.rows) == sum(row["psms"] for row in rows)
    assert view.histogram.marked == frozenset(range(len(rows)))


def test_listed_psms_belong_to_the_clicked_modifications(own_view: ModifiedView, project: Project, qtbot: QtBot) -> None:
    rows, table = rows_of(project, "modifications"), own_view.modifications.view
    generator, chosen = np.random.default_rng(5), set[int]()
    modifiers = (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier)
    for at in generator.integers(0, min(12, len(rows)), 40).tolist():
        modifier = modifiers[generator.integers(len(modifiers))]
        if modifier == Qt.KeyboardModifier.ControlModifier:
            if chosen == {at}:
                continue  # Without a selection, all PSMs are shown.
            chosen ^= {at}
        else:
            chosen = {at}
        index = own_view.modifications.model.index(at, table._first_column())
        table.scrollTo(index)
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, modifier, table.visualRect(index).center())
        settle(own_view, qtbot)
        assert set(table.selected) == chosen
        assert len(own_view.psms.model.rows) == sum(rows[row]["psms"] for row in chosen), (at, modifier, chosen)
        assert own_view.histogram.marked == frozenset(chosen)


def test_modified_filter_applies_to_all_tables(view: ModifiedView, accepted: list[dict[str, Any]], project: Project, qtbot: QtBot) -> None:
    scan_of = [row["scan"] for row in rows_of(project, "psms")]

    def scans() -> list[int]:
        settle(view, qtbot)
        return sorted(scan_of[row] for row in view.psms.model.rows.tolist())

    def expected(wanted: Any) -> list[int]:
        return sorted(row["scan"] for row in accepted if wanted(row))

    bar = view.filters
    bar.lowest.setValue(15.9)
    bar.highest.setValue(16.1)
    qtbot.wait(200)
    assert scans() == expected(lambda row: 15.9 <= row["mass_shift"] <= 16.1) != []
    assert all(15.9 <= mass <= 16.1 for mass in shown(view.modifications, "mass"))
    bar.reset()
    for kind in ("named", "end", "unnamed", "none"):
        bar.kind.setCurrentIndex(bar.kind.findData(kind))
        bar.filterChanged.emit()
        assert scans() == expected(lambda row, kind=kind: row["shift_kind"] == kind)
        assert bool(scans()) == (kind != "end")  # too few matches have another end to be rated
    bar.reset()
    bar.sure.setChecked(True)
    assert scans() == expected(lambda row: (row["site_probability"] or 0) >= 0.95) != []
    bar.reset()
    bar.text.setText("oxidation")
    qtbot.wait(200)
    assert scans() == expected(lambda row: "oxidation" in f"{row['peptide']} {row['modification']}".lower()) != []
    bar.reset()
    bar.q_value.setValue(1.0)
    qtbot.wait(200)
    assert len(scans()) == sum(not row["is_decoy"] for row in rows_of(project, "psms"))


def test_annotated_ions_with_the_shift_site_have_shifted_masses(view: ModifiedView, accepted: list[dict[str, Any]], qtbot: QtBot) -> None:
    from proteoscope.engine.chemistry.fragments import fragment_ions

    rows = [row for row in accepted if row["shift_kind"] == "named" and 0 < row["shift_position"] <= len(row["sequence"])][:4]
    for row in rows:
        choose_match(view, row, qtbot)
        spectrum = view.spectrum.spectrum
        assert spectrum is not None and spectrum.shift is not None and spectrum.shift.name == row["modification"]
        ions, length = spectrum.ions, len(row["sequence"])
        plain = np.array([mass for position, name, mass in spectrum.peptidoform.modifications if (position, name) == spectrum.shift[:2]])
        deltas = spectrum.peptidoform.mass_deltas().copy()
        deltas[row["shift_position"]] -= plain[0]
        bare = fragment_ions(row["sequence"], deltas, series="by", maximum_charge=max(1, min(2, row["charge"] - 1)))
        mz_of = {
            key: mz for *key_parts, mz in zip(bare.series, bare.number, bare.charge, bare.mz, strict=True) for key in [tuple(key_parts)]
        }
        checked = 0
        for i in np.flatnonzero((ions.loss == 0) & (ions.position > 0) & (ions.position < length)).tolist():
            key = (ions.series[i], ions.number[i], ions.charge[i])
            if key in mz_of:
                moved = (ions.mz[i] - mz_of[key]) * ions.charge[i]
                assert moved == pytest.approx(plain[0] if spectrum.carries_shift[i] else 0.0, abs=1e-6)
                checked += 1
        assert checked >= 2 * (length - 1)
        assert {label.endswith("*") for label in spectrum.labels} <= {True, False}
        starred = [label.endswith("*") for label in spectrum.labels]
        assert starred == spectrum.carries_shift[spectrum.matches.ion].tolist()


def test_unmodified_counterpart_is_mirrored_or_reported_missing(view: ModifiedView, accepted: list[dict[str, Any]], qtbot: QtBot) -> None:
    plain: dict[tuple[str, int], float] = {}
    for row in accepted:
        if row["shift_kind"] == "none":
            key = row["sequence"], row["charge"]
            plain[key] = min(plain.get(key, 1.0), row["q_value"])
    shifted = [row for row in accepted if row["shift_kind"] != "none"]
    with_partner = next(row for row in shifted if (row["sequence"], row["charge"]) in plain)
    alone = next(row for row in shifted if (row["sequence"], row["charge"]) not in plain)
    choose_match(view, with_partner, qtbot)
    assert view.mirror.spectra is not None and view.mirror.spectra.lower is not None
    below = view.mirror.spectra.lower.ions
    assert below is not None and below.shift is None and below.peptidoform.sequence == with_partner["sequence"]
    choose_match(view, alone, qtbot)
    assert view.mirror.spectra.lower is None
    assert view.mirror.readout.text().startswith("No accepted spectrum of this peptide and charge without a shift")


def test_selected_protein_of_modified_view_lists_its_matches(view: ModifiedView, accepted: list[dict[str, Any]], qtbot: QtBot) -> None:
    view.tables.setCurrentWidget(view.proteins)
    view.proteins.view.choose(0)
    settle(view, qtbot)
    name = shown(view.proteins, "group")[0].split(";")[0]
    assert sorted(shown(view.psms, "scan")) == sorted(row["scan"] for row in accepted if name in row["proteins"])


def test_selected_modifications_are_passed_to_an_identification(own_view: ModifiedView, shared_data: Path, qtbot: QtBot) -> None:
    view, prefills = own_view, list[tuple[str, str, FormPrefill]]()
    said: list[str] = []
    view.searchRequested.connect(lambda *given: prefills.append(given))
    view.message.connect(said.append)
    view._request_search("identify")
    assert not prefills and said[-1].startswith("Select modifications with a Unimod name")
    choose_modification(view, "Oxidation", qtbot)
    assert view._finished is not None
    before = ("Deamidated (N)", "Phospho (S)")
    view._finished.parameters["variable_modifications"] = before
    view._request_search("identify")
    kind, run_id, given = prefills[0]
    assert (kind, run_id) == ("identify", "modified-0001")
    assert any(text.startswith("Oxidation (") and "M" in text for text in given.parameters["variable_modifications"])
    assert given.parameters["variable_modifications"][:2] == before, "they are added to those of the run"
    assert given.inputs == {"spectra": (shared_data / QC_SHEW,), "database": (shared_data / PROTEINS,)}


@pytest.mark.parametrize(
    ("name", "sites", "expected"),
    [
        ("Oxidation", "M 40; W 6; N-term 1", ("Oxidation (MW)",)),
        ("Gln->pyro-Glu", "Q 3", ("Gln->pyro-Glu (N-term Q)",)),
        ("Acetyl", "N-term 5; K 5", ("Acetyl (K)", "Acetyl (N-term)")),
        ("Ala->Ser", "A 3", ("Ala->Ser (A)",)),
        ("+38.95", "A 2", ()),
        ("Oxidation + Phospho", "S 2", ()),
        ("missed cleavage +GK (N-terminus)", "N-term 2", ()),
    ],
)
def test_unimod_names_become_variable_modifications(name: str, sites: str, expected: tuple[str, ...]) -> None:
    row = ModificationRow(0, name, 1.0, "named", sites, name, 1e6)
    assert variable_modifications([row]) == (expected, () if expected else (name,))


@pytest.mark.parametrize("width", [620, 744, 800, 1000, 1640])
def test_modified_filter_cuts_off_no_text_at_any_width(view: ModifiedView, width: int, qtbot: QtBot) -> None:
    view.resize(width, 760)
    settle(view, qtbot)
    assert not cut_off(view.filters) and not overlapping(view.filters)


def test_modified_view_can_list_only_starred_matches(view: ModifiedView, qtbot: QtBot) -> None:
    project, run = view._project, view.run
    assert project is not None and run is not None
    n_all, n_modifications = len(view.psms.model.rows), len(view.modifications.model.rows)
    starred = int(view.psms.model.rows[2])
    view.psms.view.choose(2)
    settle(view, qtbot)
    view.marks.star_action.trigger()
    settle(view, qtbot)
    view.filters.marked.click()
    settle(view, qtbot)
    assert view.psms.model.rows.tolist() == [starred] and len(view.modifications.model.rows) == n_modifications
    view.filters.reset()
    settle(view, qtbot)
    assert len(view.psms.model.rows) == n_all and not view.filters.marked.isChecked()
    view.psms.view.choose(2)
    settle(view, qtbot)
    view.marks.star_action.trigger()  # Other tests share the project.
    settle(view, qtbot)


def test_modified_view_fills_the_identification_form(window: MainWindow, project: Project, shared_data: Path, qtbot: QtBot) -> None:
    window.open_project(project.folder)
    results = window.searches["modified"].results
    assert isinstance(results, ModifiedView)
    settle(results, qtbot)
    choose_modification(results, "Oxidation", qtbot)
    results.follow_ups["identify"].trigger()
    form = window.form
    assert form.search.kind == "identify" and form.project_folder() == project.folder
    assert form.file_lists["spectra"].paths == [shared_data / QC_SHEW]
    qtbot.waitUntil(form.run_button.isEnabled)
    assert any(text.startswith("Oxidation (") for text in form.parameters.values()["variable_modifications"])
    assert form.parameters.values()["fragment_tolerance"] == results.run.parameters["fragment_tolerance"]  # type: ignore[union-attr]
