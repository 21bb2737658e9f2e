"""Tests of identification results with real input events (select, filter, go back, view spectra), compared with the tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project, RowMark
from proteoscope.engine.results.counts import Count, FalseShareInterval
from proteoscope.engine.statistics.target_decoy import false_share_interval
from proteoscope.engine.views.annotation import AnnotationChoice
from proteoscope.gui.certainty import certainty_text
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.tasks import SearchTask
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.identification_tables import Identification, identification
from tests.engine.views.result_projects import project_with_results
from tests.engine.views.search_projects import project_with_search, summary_of
from tests.engine.views.test_identification import accepted
from tests.gui.picture_results import take_pictures
from tests.gui.plots.test_coverage_map import place_of
from tests.gui.result_views import SharedView, click_row, cut_off, settle, shown, wait_until_fitting

REPOSITORY = Path(__file__).resolve().parents[3]
Opener = Callable[..., tuple[IdentificationView, Identification]]


@pytest.fixture
def open_results(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[Opener]:
    views: list[IdentificationView] = []

    def open_one(**options: Any) -> tuple[IdentificationView, Identification]:
        project, results = project_with_results(tmp_path / f"project {len(views)}", **options)
        view = IdentificationView()
        views.append(view)
        qtbot.addWidget(view)
        view.resize(1300, 800)
        with qtbot.waitActive(view):
            view.show()
            view.activateWindow()
        view.show_run(project, None)
        settle(view, qtbot)
        return view, results

    yield open_one
    for view in views:
        view.clear()


@pytest.fixture(scope="module")
def cached_results(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[SharedView[IdentificationView], Identification]]:
    project, results = project_with_results(tmp_path_factory.mktemp("cached") / "project")
    view = SharedView(IdentificationView(), project, request, (1300, 800))
    yield view, results
    view.close()


@pytest.fixture
def shared_results(cached_results: tuple[SharedView[IdentificationView], Identification], theme: Theme, qtbot: QtBot) -> Opener:
    """Open results as `open_results` does, for tests that change neither columns, files nor spectrum settings."""
    view, results = cached_results
    return lambda: (view.as_opened(qtbot), results)


def test_identification_summary_counts_accepted_rows(open_results: Opener) -> None:
    view, results = open_results(log=("Rescoring not used",))
    psms = [row for row in accepted(results.psms.to_pylist()) if row["rank"] == 1]
    peptides = accepted(results.peptides.to_pylist())
    proteins = accepted(results.proteins.to_pylist())
    parts = re.fullmatch(
        r"(\d+) PSMs \((.*?)\), (\d+) peptides \((.*?)\), (\d+) protein groups \((.*?)\) at 1 % FDR, (.*)", view.header.text
    )
    assert parts is not None, view.header.text
    assert [int(parts[i]) for i in (1, 3, 5)] == [len(psms), len(peptides), len(proteins)]
    assert parts[7] == f"{len(psms) / 120 * 100:.1f} % of 120 spectra"
    n_decoys = sum(row["is_decoy"] and row["q_value"] <= 0.01 for row in results.peptides.to_pylist())
    low, high = false_share_interval(len(peptides), n_decoys)
    assert n_decoys > 0
    decoys, share, few = parts[4].split("; ")
    assert decoys == f"{n_decoys} decoys" and share.endswith(" % false")
    assert few == f"{sum(row['q_value'] <= 0.05 and not row['is_decoy'] for row in results.peptides.to_pylist())} at 5 % FDR"
    shares = [float(number) for number in share.removesuffix(" % false").split("–")]
    assert shares == pytest.approx([100 * low, 100 * high], abs=0.5)
    sequences = {row["sequence"] for row in peptides}
    assert f"{len(peptides)}, of {len(sequences)} different sequences" in view.header.help
    assert view.header.message == "Rescoring not used"


def test_false_fraction_interval_has_significant_digits() -> None:
    english = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)
    assert certainty_text(FalseShareInterval(2, 0.00085, 0.02577), english) == "2 decoys; 0.1–2.6 % false"
    assert certainty_text(FalseShareInterval(0, 0.0, 0.00004), english) == "0 decoys; 0–0.004 % false"
    assert certainty_text(FalseShareInterval(0, 0.0, 0.147, 41), english) == "0 decoys; 0–15 % false; 41 at 5 % FDR"
    assert certainty_text(FalseShareInterval(0, 0.0, 1.0, 103, 0.01), english) == "0 at 1 % FDR; 103 at 5 % FDR"
    assert certainty_text(FalseShareInterval(1, 0.0004, 1.0), english) == "1 decoy; 0.04–100 % false"
    german = QLocale(QLocale.Language.German, QLocale.Country.Germany)
    assert certainty_text(FalseShareInterval(12345, 0.0999, 0.12), german) == "12.345 decoys; 10–12 % false"


def test_search_outcome_shows_the_uncertainty_of_the_fdr() -> None:
    certainty = FalseShareInterval(2, 0.001, 0.02577)
    summary = summary_of("", Count(1204, "PSM", "PSMs"), Count(283, "peptide", "peptides", certainty), Count(1, "protein", "proteins"))
    english = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)
    outcome = SearchTask.outcome(summary, english)
    assert outcome == "1,204 PSMs, 283 peptides (2 decoys; 0.1–2.6 % false), 1 protein"
    assert SearchTask.outcome(summary_of("", Count(0, "hit", "hits"), Count(0, "query", "queries")), english) == "no hits"


def test_identification_view_first_shows_the_best_psm(shared_results: Opener) -> None:
    view, results = shared_results()
    for name, panel in view.panels.items():
        expected = accepted(getattr(results, name).to_pylist())
        assert len(panel.model.rows) == len(expected)
        assert panel.count_label.text() == str(len(expected))
        assert panel.scope_text == ""
    best = max(accepted(results.psms.to_pylist()), key=lambda row: row["score"])
    assert view.spectrum.spectrum is not None
    assert str(view.spectrum.spectrum.peptidoform) == f"{best['peptide']}/{best['charge']}"


def test_selected_protein_peptide_and_psm_show_the_spectrum(shared_results: Opener, qtbot: QtBot) -> None:
    view, results = shared_results()
    click_row(view.proteins, 2, qtbot)
    settle(view, qtbot)
    protein = view.proteins.model.values(2)
    assert protein is not None
    members = set(protein["accessions"])
    peptides = [row for row in accepted(results.peptides.to_pylist()) if members & set(row["proteins"])]
    assert sorted(shown(view.peptides, "peptide")) == sorted(row["peptide"] for row in peptides)
    assert view.peptides.scope_text.startswith(f"of {protein['accessions'][0]}")

    position = min(1, len(peptides) - 1)
    click_row(view.peptides, position, qtbot)
    settle(view, qtbot)
    peptide = shown(view.peptides, "peptide")[position]
    psms = [row for row in accepted(results.psms.to_pylist()) if row["peptide"] == peptide]
    assert sorted(shown(view.psms, "precursor_mz")) == sorted(row["precursor_mz"] for row in psms)
    assert view.psms.scope_text == f"of {peptide}"

    chosen = view.psms.model.values(view.psms.view.currentIndex().row())
    assert chosen is not None
    spectrum = view.spectrum.spectrum
    assert spectrum is not None
    assert str(spectrum.peptidoform) == f"{peptide}/{chosen['charge']}"
    row = next(row for row in psms if row["psm_id"] == chosen["psm_id"])
    assert spectrum.precursor_mz == row["precursor_mz"]
    assert len(spectrum.matches) > 4, "the spectrum was made of this peptide's ions"

    qtbot.mouseClick(view.psms.all_button, Qt.MouseButton.LeftButton)
    settle(view, qtbot)
    assert len(view.psms.model.rows) == len(accepted(results.psms.to_pylist()))
    assert view.psms.scope_text == ""
    assert view.psms.all_button.isHidden()


def test_protein_and_peptide_of_the_selected_psm_can_be_selected(shared_results: Opener, qtbot: QtBot) -> None:
    view, results = shared_results()
    proteins = {accession for row in accepted(results.proteins.to_pylist()) for accession in row["accessions"]}
    peptides = {row["peptide"] for row in accepted(results.peptides.to_pylist())}
    position = next(
        i
        for i, (names, peptide) in enumerate(zip(shown(view.psms, "proteins"), shown(view.psms, "peptide"), strict=True))
        if i > 3 and set(names) <= proteins and peptide in peptides
    )
    click_row(view.psms, position, qtbot)
    settle(view, qtbot)
    values = view.psms.model.values(position)
    assert values is not None
    view.psms.view.setFocus()
    qtbot.keyClick(view.psms.view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    settle(view, qtbot)
    protein = view.proteins.model.values(view.proteins.view.currentIndex().row())
    peptide = view.peptides.model.values(view.peptides.view.currentIndex().row())
    psm = view.psms.model.values(view.psms.view.currentIndex().row())
    assert protein is not None
    assert peptide is not None
    assert psm is not None
    assert set(protein["accessions"]) & set(values["proteins"])
    assert peptide["peptide"] == values["peptide"]
    assert psm["psm_id"] == values["psm_id"]


def test_identification_filters_equal_a_plain_loop(shared_results: Opener, qtbot: QtBot) -> None:
    view, results = shared_results()
    bar = view.filters
    psms, peptides, proteins = (getattr(results, name).to_pylist() for name in ("psms", "peptides", "proteins"))

    bar.charge.setFocus()
    bar.charge.setCurrentIndex(bar.charge.findText("3+"))
    bar.charge.activated.emit(bar.charge.currentIndex())
    settle(view, qtbot)
    assert sorted(shown(view.psms, "precursor_mz")) == sorted(row["precursor_mz"] for row in accepted(psms) if row["charge"] == 3)
    assert len(view.peptides.model.rows) == len(accepted(peptides)), "only PSMs have a charge"

    qtbot.mouseClick(bar.reset_button, Qt.MouseButton.LeftButton)
    bar.modification.setCurrentIndex(bar.modification.findText("Oxidation"))
    bar.modification.activated.emit(bar.modification.currentIndex())
    settle(view, qtbot)
    expected = [row for row in accepted(psms) if "Oxidation" in row["modification_names"]]
    assert expected
    assert sorted(shown(view.psms, "precursor_mz")) == sorted(row["precursor_mz"] for row in expected)
    assert sorted(shown(view.peptides, "peptide")) == sorted(
        row["peptide"] for row in accepted(peptides) if "[Oxidation]" in row["peptide"]
    )
    bar.modification.setCurrentIndex(bar.modification.findText("unmodified"))
    bar.modification.activated.emit(bar.modification.currentIndex())
    settle(view, qtbot)
    assert len(view.psms.model.rows) == sum(not row["modification_names"] for row in accepted(psms))
    assert sorted(shown(view.peptides, "peptide")) == sorted(row["peptide"] for row in accepted(peptides) if "[" not in row["peptide"])

    bar.reset()
    bar.q_value.setValue(0.0003)
    qtbot.wait(200)
    settle(view, qtbot)
    for name, rows in (("psms", psms), ("peptides", peptides), ("proteins", proteins)):
        assert len(view.panels[name].model.rows) == len(accepted(rows, 0.0003))
    bar.q_value.setValue(1.0)
    qtbot.mouseClick(bar.decoys, Qt.MouseButton.LeftButton, pos=QPoint(8, bar.decoys.height() // 2))
    settle(view, qtbot)
    for name, rows in (("psms", psms), ("peptides", peptides), ("proteins", proteins)):
        assert len(view.panels[name].model.rows) == len(rows), "including decoys"


@pytest.mark.parametrize("text", ["test3_human", "protein 4 os", "LG"])
def test_identification_text_filter_finds_peptides_and_proteins(shared_results: Opener, qtbot: QtBot, text: str) -> None:
    view, results = shared_results()
    view.filters.text.setFocus()
    qtbot.keyClicks(view.filters.text, text)
    qtbot.wait(200)
    settle(view, qtbot)
    small = text.lower()
    proteins = [row for row in results.proteins.to_pylist() if small in row["description"].lower()]
    described = {accession for row in proteins for accession in row["accessions"]}

    def fits(row: dict[str, Any]) -> bool:
        # One text, so that a match may not begin in one accession and end in the next.
        in_names = any(small in name.lower() for name in row["proteins"])
        return small in row["peptide"].lower() or small in row["sequence"].lower() or in_names or bool(described & set(row["proteins"]))

    for name in ("peptides", "psms"):
        expected = [row for row in accepted(getattr(results, name).to_pylist()) if fits(row)]
        assert expected
        assert sorted(shown(view.panels[name], "peptide")) == sorted(row["peptide"] for row in expected)
    holders = {
        accession
        for row in results.peptides.to_pylist()
        if small in row["sequence"].lower() or small in row["peptide"].lower()
        for accession in row["proteins"]
    }
    expected_groups = [
        row["group"]
        for row in accepted(results.proteins.to_pylist())
        if small in row["group"].lower() or small in row["description"].lower() or holders & set(row["accessions"])
    ]
    assert sorted(shown(view.proteins, "group")) == sorted(expected_groups)


def test_empty_identification_tables_show_the_reason(shared_results: Opener, open_results: Opener, qtbot: QtBot) -> None:
    view, results = shared_results()
    view.filters.text.setText("nothing has this name")
    qtbot.wait(200)
    settle(view, qtbot)
    n = len(results.psms)
    assert view._empty_reason(view.psms) == f"None of the {n} PSMs pass the filter. Increase the maximum q-value or reset the filter."
    nothing, _ = open_results(results=identification(n_spectra=0), with_spectra=False)
    assert nothing._empty_reason(nothing.proteins) == "The search found no proteins."
    assert nothing.header.text.startswith("0 PSMs, 0 peptides, 0 protein groups")


def test_coverage_map_shows_selected_protein_and_selects_peptide(shared_results: Opener, qtbot: QtBot) -> None:
    view, results = shared_results()
    click_row(view.proteins, 1, qtbot)
    settle(view, qtbot)
    protein = view.proteins.model.values(1)
    assert protein is not None
    view.tabs.setCurrentWidget(view.coverage)
    coverage = view.coverage.coverage
    assert coverage is not None
    sequence = results.database[protein["accessions"][0]].sequence
    peptides = [row for row in accepted(results.peptides.to_pylist()) if protein["accessions"][0] in row["proteins"]]
    covered = [False] * len(sequence)
    for row in peptides:
        start = sequence.index(row["sequence"])
        covered[start : start + len(row["sequence"])] = [True] * len(row["sequence"])
    assert coverage.covered.tolist() == covered
    peptide = next(peptide for peptide in coverage.peptides if peptide.row != view.peptides.view.chosen)
    at = place_of(view.coverage, peptide).center().toPoint()
    qtbot.mouseClick(view.coverage.viewport(), Qt.MouseButton.LeftButton, pos=at)
    settle(view, qtbot)
    assert view.peptides.view.chosen == peptide.row
    assert set(shown(view.psms, "peptide")) <= {peptide.peptide}


def test_identification_view_opens_a_run_after_a_damaged_table(open_results: Opener, qtbot: QtBot, tmp_path: Path) -> None:
    view, _ = open_results()
    project, _ = project_with_results(tmp_path / "other")
    path = project.table("psms")
    path.write_bytes(path.read_bytes()[:-30] + b"\0" * 30)
    view.show_run(Project.open(tmp_path / "other"), None)
    settle(view, qtbot)
    assert "psms.parquet" in view.text
    assert "damaged" in view.text
    good, _ = project_with_results(tmp_path / "good")
    view.show_run(good, None)
    settle(view, qtbot)
    assert view.text == ""
    assert len(view.psms.model.rows) > 0


def test_identification_tables_need_no_readable_spectra(open_results: Opener, qtbot: QtBot, tmp_path: Path) -> None:
    view, _ = open_results(with_spectra=False)
    assert view.spectrum.text == "The peaks of the run 'identify-0001' are not stored."
    assert "% of" not in view.header.text
    project, _ = project_with_results(tmp_path / "other")
    path = project.table("spectra", verify=False)
    path.write_bytes(b"\0" * path.stat().st_size)
    view.show_run(project, None)
    settle(view, qtbot)
    assert "spectra.parquet" in view.spectrum.text
    assert len(view.psms.model.rows) > 0


def test_identification_view_reports_a_missing_finished_run(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    view = IdentificationView()
    qtbot.addWidget(view)
    assert "No results yet" in view.text
    view.show_run(Project.create_or_open(tmp_path / "empty"), None)
    settle(view, qtbot)
    assert "no finished result" in view.text
    view.clear()
    assert "No results yet" in view.text


def test_identification_view_can_be_cleared_while_reading(open_results: Opener, qtbot: QtBot) -> None:
    view, _ = open_results()
    for order in ("peptide", "score", "proteins"):
        view.psms.model.show(order=[(order, False)])
        click_row(view.proteins, 1, qtbot)
    view.clear()
    assert not view.is_busy
    assert [len(panel.model.rows) for panel in view.panels.values()] == [0, 0, 0]
    qtbot.wait(50)
    assert view.spectrum.spectrum is None


def test_identification_view_remembers_columns_and_sizes(open_results: Opener, qtbot: QtBot) -> None:
    view, _ = open_results()
    menu = view.psms.view.columns_menu()
    with qtbot.waitSignal(view.stateChanged):
        next(action for action in menu.actions() if action.text() == "Matched").trigger()
    menu.deleteLater()
    choice = AnnotationChoice(series="by", shows_immonium=True, tolerance="0.05 Da", least_labelled=3.0)
    view.spectrum.show_choice(choice)
    state = view.state()
    other, _ = open_results()
    assert "matched_ions" not in other.psms.view.hidden_columns()
    other.restore_state(state)
    assert other.spectrum.annotation.choice == choice, "the ions to match are retained too"
    assert "matched_ions" in other.psms.view.hidden_columns()
    for nonsense in ("", "{", "[]", '{"version": 99}', '{"version": 1, "hidden": {"psms": 3}, "sizes": {"down": ["x"]}}'):
        other.restore_state(nonsense)
    assert "matched_ions" in other.psms.view.hidden_columns()


def test_identification_view_shows_numbers_in_german_format(open_results: Opener, qtbot: QtBot) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    try:
        view, results = open_results()
        best = max(accepted(results.psms.to_pylist()), key=lambda row: row["score"])
        section = [column.name for column in view.psms.model.columns].index("precursor_mz")
        assert view.psms.model.index(0, section).data() == f"{best['precursor_mz']:,.4f}".translate(str.maketrans(",.", ".,"))
        assert " % FDR" in view.header.text
        view.filters.q_value.setFocus()
        view.filters.q_value.selectAll()
        qtbot.keyClicks(view.filters.q_value, "0,0003")
        qtbot.keyClick(view.filters.q_value, Qt.Key.Key_Return)
        qtbot.wait(200)
        settle(view, qtbot)
        assert len(view.psms.model.rows) == len(accepted(results.psms.to_pylist(), 0.0003))
    finally:
        QLocale.setDefault(before)


def test_widgets_of_identification_view_are_reached_by_tab(shared_results: Opener, qtbot: QtBot) -> None:
    view, _ = shared_results()
    view.filters.text.setFocus()
    reached: list[str] = []
    for _ in range(40):
        focused = QGuiApplication.focusObject()
        assert isinstance(focused, QWidget)
        reached.append(focused.accessibleName() or getattr(focused, "text", lambda: "")() or type(focused).__name__)
        qtbot.keyClick(focused, Qt.Key.Key_Tab)
    for name in (
        "Filter by text",
        "Proteins",
        "Peptides",
        "PSMs",
        "Annotated spectrum",
        "Annotation of ions",
        "Charge",
        "Maximum q-value",
    ):
        assert name in reached
    assert "QTableView" not in reached
    assert "QWidget" not in reached


@pytest.mark.parametrize(("width", "height"), [(1300, 800), (980, 620)])
def test_identification_view_cuts_off_no_text_at_any_size(shared_results: Opener, qtbot: QtBot, width: int, height: int) -> None:
    view, _ = shared_results()
    view.resize(width, height)
    for tab in range(view.tabs.count()):
        view.tabs.setCurrentIndex(tab)
        wait_until_fitting(lambda: cut_off(view), qtbot)


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return projects for screenshots: one with an identification, one with a sequence search."""
    folder = tmp_path_factory.mktemp("pictured")
    project_with_results(folder / "identified", log=("Rescoring not used: too few targets",))
    project_with_search(folder / "searched")
    return [str(folder / "identified"), str(folder / "searched")]


@pytest.mark.parametrize("scale", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_result_views_are_drawn_in_each_theme_and_scale(tmp_path: Path, pictured: list[str], theme: Theme, scale: str) -> None:
    """Draw each view in both themes and at both scales, and save the picture in the folder PROTEOSCOPE_SCREENSHOTS if that is set."""
    folder = Path(os.environ.get("PROTEOSCOPE_SCREENSHOTS", tmp_path))
    if scale == "1":
        take_pictures(theme, *pictured, str(folder / "results-1"))
    else:
        environment = {**os.environ, "QT_SCALE_FACTOR": scale, "PYTHONPATH": os.pathsep.join([*sys.path, str(REPOSITORY)])}
        done = subprocess.run(
            [sys.executable, "-m", "tests.gui.picture_results", *pictured, str(folder / f"results-{scale}")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    names = ["coverage", "errors", "expectations", "hits", "ions", "scores", "spectrum"]
    for look in ("light", "dark"):
        pictures = sorted(folder.glob(f"results-{scale}-{look}-*.png"))
        assert [picture.stem.rsplit("-", 1)[1] for picture in pictures] == names
        assert all(picture.stat().st_size > 20_000 for picture in pictures)


def test_spectrum_view_shows_the_spectrum_of_the_selected_psm(shared_results: Opener, qtbot: QtBot) -> None:
    view, _ = shared_results()
    click_row(view.peptides, 0, qtbot)
    settle(view, qtbot)
    peptide = view.psms.scope_text
    assert peptide
    other = next(other for other in shown(view.peptides, "peptide") if f"of {other}" != peptide)
    view.filters.text.setText(other)
    view.filters.text.returnPressed.emit()
    settle(view, qtbot)
    # The selected peptide is hidden, so the PSMs belong to others, and a visible one is drawn.
    assert view.peptides.view.chosen is None and view.psms.scope_text == ""
    assert view.psms.view.chosen is not None and view.spectrum.spectrum is not None
    assert str(view.spectrum.spectrum.peptidoform).rpartition("/")[0] in shown(view.psms, "peptide")
    at = view.psms.view.visualRect(view.psms.view.currentIndex()).center()
    qtbot.mouseClick(view.psms.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, QPoint(20, at.y()))
    settle(view, qtbot)
    assert view.psms.view.selected == [] and view.spectrum.spectrum is None
    qtbot.mouseClick(view.psms.view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(20, at.y()))
    settle(view, qtbot)
    assert view.spectrum.spectrum is not None


def test_first_psm_is_shown_if_the_filter_hides_the_selected_one(shared_results: Opener, qtbot: QtBot) -> None:
    view, _ = shared_results()
    first = view.psms.view.chosen
    peptides = shown(view.psms, "peptide")

    def filtered(text: str) -> None:
        view.filters.text.setText(text)
        view.filters.text.returnPressed.emit()
        settle(view, qtbot)

    filtered(next(peptide for peptide in peptides if peptide != peptides[0]))
    assert view.psms.view.chosen not in (None, first) and view.psms.model.position_of(view.psms.view.chosen or 0) == 0
    assert view.pane.row == view.psms.view.chosen
    filtered("no such peptide")
    assert view.psms.view.chosen is None and view.spectrum.spectrum is None
    # A selection hidden by a filter, not cleared by the user, is replaced by the first visible row.
    filtered("")
    assert view.psms.view.chosen == view.pane.row == view.psms.model.rows[0]
    at = view.psms.view.visualRect(view.psms.view.currentIndex()).center()
    qtbot.mouseClick(view.psms.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, QPoint(20, at.y()))
    settle(view, qtbot)
    filtered("no such peptide")
    filtered("")
    assert view.psms.view.chosen is None and view.spectrum.spectrum is None, "nothing was selected before"


def test_star_and_comment_of_a_psm_are_stored_shown_and_filtered(open_results: Opener, qtbot: QtBot) -> None:
    view, _ = open_results()
    project, run = view._project, view.run
    assert project is not None and run is not None
    first, second = (int(view.psms.model.rows[at]) for at in (0, 1))
    view.psms.view.choose(0)
    settle(view, qtbot)
    view.pane.marks.star_action.trigger()
    settle(view, qtbot)
    assert shown(view.psms, "starred")[0] == "★"
    qtbot.keyClicks(view.pane.marks.comment, "odd y3")
    # Typed text belongs to the PSM selected at that time, even if another is selected before Enter.
    view.psms.view.choose(1)
    settle(view, qtbot)
    assert view.pane.marks.comment.text() == "" and not view.pane.marks.star_button.isChecked()
    assert project.row_marks(run.id, "psms") == {first: RowMark(True, "odd y3")}
    assert shown(view.psms, "comment")[:2] == ["odd y3", ""]
    qtbot.mouseClick(view.filters.marked, Qt.MouseButton.LeftButton, pos=QPoint(8, view.filters.marked.height() // 2))
    settle(view, qtbot)
    assert view.psms.model.rows.tolist() == [first] and view.pane.marks.comment.text() == "odd y3"
    view.filters.reset()
    settle(view, qtbot)
    view.psms.view.choose(1)
    settle(view, qtbot)
    qtbot.keyClicks(view.pane.marks.comment, "last words")
    view.clear()
    assert project.row_marks(run.id, "psms") == {first: RowMark(True, "odd y3"), second: RowMark(comment="last words")}
    view.show_run(project, None)
    settle(view, qtbot)
    assert shown(view.psms, "comment")[:2] == ["odd y3", "last words"]


def test_star_of_a_psm_is_reverted_if_it_cannot_be_stored(open_results: Opener, qtbot: QtBot) -> None:
    view, _ = open_results()
    project = view._project
    assert project is not None
    project.read_only = True
    with qtbot.waitSignal(view.message) as signal:
        view.pane.marks.star_action.trigger()
    settle(view, qtbot)
    assert "may not write" in signal.args[0]
    assert not view.pane.marks.star_button.isChecked() and shown(view.psms, "starred")[0] == ""


def test_psm_is_mirrored_with_predicted_or_reference_spectrum(open_results: Opener, qtbot: QtBot, tmp_path: Path) -> None:
    view, _ = open_results()
    pane = view.pane
    name = str(view.psms.model.values(0)["peptide"])  # type: ignore[index]
    pane.below_actions["prediction"].trigger()
    settle(view, qtbot)
    assert pane.mirror.isVisible() and not pane.spectrum.isVisible()
    mirrored = pane.mirror.spectra
    assert mirrored is not None and mirrored.lower is not None
    assert mirrored.lower.name == "predicted b and y ions" and name in mirrored.upper.name
    pane.mirror.export_action.write(tmp_path / "mirror.svg")
    assert "predicted b and y ions" in (tmp_path / "mirror.svg").read_text()
    pane.set_reference()
    settle(view, qtbot)
    assert pane.spectrum.isVisible(), "there is nothing to compare with itself"
    view.psms.view.choose(1)
    settle(view, qtbot)
    mirrored = pane.mirror.spectra
    assert pane.mirror.isVisible() and mirrored is not None and mirrored.lower is not None and name in mirrored.lower.name
    view.spectrum.annotation.series["a"].click()
    settle(view, qtbot)
    assert pane.mirror.spectra is not None and pane.mirror.spectra.upper.ions is not None
    assert pane.mirror.spectra.upper.ions.settings.series == "aby", "both views show the selected ions"
    pane.below_actions["other"].trigger()
    settle(view, qtbot)
    assert pane.mirror.spectra.lower is None and "No other PSM" in pane.mirror.readout.text()
    pane.below_actions["nothing"].trigger()
    settle(view, qtbot)
    assert pane.spectrum.isVisible() and view.spectrum.spectrum is not None
    view.clear()
    assert pane.reference is None and not pane.below_actions["reference"].isEnabled()


def test_failed_save_of_a_table_is_reported_in_the_message_bar(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project = project_with_results(tmp_path / "project")[0]
    window.open_project(project.folder)
    settle(window.results, qtbot)
    (tmp_path / "absent").write_text("a file where a folder is needed")
    window.results.panels["psms"].view.save(tmp_path / "absent" / "psms.tsv")
    qtbot.waitUntil(window.message_bar.isVisible)
    assert window.message_bar.label.text().startswith("The table was not saved.")
    assert str(tmp_path / "absent") in window.message_bar.label.text()
