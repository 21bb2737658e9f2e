"""Tests of peptides on structures in the window: a selection in one view appears in all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search, search_of_kind
from proteoscope.engine.structures.colouring import quantity_colours
from proteoscope.engine.structures.reading import read_structure
from proteoscope.gui.dialogs import StructuresDialog
from proteoscope.gui.results.evidence_view import EvidenceView
from proteoscope.gui.results.export import ExportDialog
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.tasks import ExportTask
from proteoscope.gui.theme import Theme
from tests.engine.evidence.evidence_projects import distant, project_with_evidence, write_albumin, write_identification
from tests.engine.views.result_projects import rows_of
from tests.gui.plots.test_coverage_map import place_of
from tests.gui.result_views import SharedView, click_row, opened, settle, shown


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_evidence(tmp_path_factory.mktemp("evidence") / "made")


@pytest.fixture(scope="module")
def cached_view(project: Project, request: pytest.FixtureRequest) -> Iterator[SharedView[EvidenceView]]:
    opened_view = SharedView(EvidenceView(EVIDENCE), project, request)
    yield opened_view
    opened_view.close()


@pytest.fixture
def view(cached_view: SharedView[EvidenceView], theme: Theme, qtbot: QtBot) -> EvidenceView:
    view = cached_view.as_opened(qtbot)
    choose(view, "RELATIVE", qtbot)
    return view


def choose(view: EvidenceView, accession: str, qtbot: QtBot) -> None:
    click_row(view.proteins, shown(view.proteins, "accession").index(accession), qtbot)
    settle(view, qtbot)


def highlighted_positions(view: EvidenceView) -> set[int]:
    """Return the protein positions that are highlighted in three dimensions."""
    assert view.structures is not None
    scene = view.structures.scene
    assert scene.query is not None and scene.query.evidence is not None
    return set(scene.query.evidence.position[scene.lit[scene.query]].tolist())


def test_selected_peptide_is_marked_in_all_evidence_figures(view: EvidenceView, qtbot: QtBot) -> None:
    fold = view._fold
    assert fold is not None and fold.trace is not None
    view.figures.setCurrentWidget(view.alignment)
    for position in (3, 7):
        click_row(view.peptides, position, qtbot)
        settle(view, qtbot)
        first, last = shown(view.peptides, "first")[position], shown(view.peptides, "last")[position]
        wanted = set(range(first - 1, last))
        columns = view.alignment.plot.marks
        assert {int(fold.pair.protein_residue[column]) for column in columns} <= wanted
        # Exactly the residues of the peptide that are on the chain.
        assert highlighted_positions(view) == wanted & set(fold.near.position.tolist())
        assert view.coverage.chosen == view.peptides.view.chosen


def test_evidence_protein_filter_hides_rows_of_other_proteins(view: EvidenceView, project: Project, qtbot: QtBot) -> None:
    """Check that without a selected protein the tables show all rows that pass the filter; clearing it restores everything."""
    assert not view.header.text.endswith(" ")
    every = {name: view.panels[name].total for name in ("peptide_places", "missed", "chains")}
    assert all(every.values())
    view.proteins.clear_choice()
    settle(view, qtbot)
    for text in ("zzzz", "relative", ""):
        view.filter_bar.text.setText(text)
        view.filter_bar.text.returnPressed.emit()
        settle(view, qtbot)
        view.proteins.clear_choice()
        view._show_no_protein()
        settle(view, qtbot)
        passing = set(view.proteins.model.rows.tolist())
        assert (len(passing) == view.proteins.total) == (not text)
        for name, total in every.items():
            rows = rows_of(project, name)
            expected = [at for at, row in enumerate(rows) if row["protein"] in passing]
            assert view.panels[name].model.rows.tolist() == expected, (text, name)
            assert len(rows) == total
    assert view._fold is None


def test_requested_peptide_resets_a_filter_that_hides_it(view: EvidenceView, qtbot: QtBot) -> None:
    peptide = shown(view.peptides, "peptide")[2]
    view.filter_bar.text.setText("zzzz")
    view.filter_bar.text.returnPressed.emit()
    settle(view, qtbot)
    assert not view.proteins.model.rowCount() and not view.peptides.model.rowCount()
    view.show_peptide(peptide)
    settle(view, qtbot)
    assert view.filter_bar.text.text() == "" and view.proteins.view.chosen is not None
    chosen = view.peptides.view.chosen
    assert chosen is not None and shown(view.peptides, "peptide")[view.peptides.model.position_of(chosen)] == peptide


def test_picked_residue_of_structure_selects_its_peptides(view: EvidenceView, qtbot: QtBot) -> None:
    panel, fold = view.structures, view._fold
    assert panel is not None and fold is not None and fold.trace is not None and fold.trace.evidence is not None
    evidence = fold.trace.evidence
    row = int(np.flatnonzero(evidence.n_psms)[10])
    place = int(evidence.position[row])
    at = panel.canvas.camera.projected(fold.trace.position[row][None], panel.canvas.width(), panel.canvas.height())[0]
    picked = panel.canvas.pick_at(QPointF(at[0], at[1]))
    assert picked is not None
    # Another residue may be in front of it, and is then picked.
    place = int(evidence.position[picked.row])
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=QPointF(at[0], at[1]).toPoint())
    settle(view, qtbot)
    places = list(zip(shown(view.peptides, "first"), shown(view.peptides, "last"), strict=True))
    assert all(first <= place + 1 <= last for first, last in places)
    assert bool(places) == bool(evidence.n_psms[picked.row])
    protein = view._protein
    assert protein is not None and f"covering {protein.name_of(place)}" in view.peptides.scope_text


def test_picked_residue_redraws_the_structure_once(view: EvidenceView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    panel, fold, protein = view.structures, view._fold, view._protein
    assert panel is not None and fold is not None and fold.trace is not None and protein is not None
    pictures: list[bool] = []
    renderer = panel.canvas.renderer
    draw = renderer.picture
    monkeypatch.setattr(renderer, "picture", lambda *given, is_smooth: (pictures.append(is_smooth), draw(*given, is_smooth=is_smooth))[1])
    for place in [position for position in fold.near.position.tolist() if protein.n_psms[position]][::40]:
        over = (peptide for peptide in protein.coverage.peptides if peptide.start <= place < peptide.end)
        first = min(over, key=lambda peptide: peptide.row)
        before = dict(panel.scene.lit)
        pictures.clear()
        view._pick_column(int(np.flatnonzero(fold.pair.protein_residue == place)[0]))
        # The residue is picked immediately, before the table has loaded its rows.
        assert highlighted_positions(view) == set(range(first.start, first.end)) & set(fold.near.position.tolist())
        assert protein.first_over(place) == first and view.coverage.chosen == first.row
        settle(view, qtbot)
        assert view.peptides.view.chosen == first.row
        is_new = any(not np.array_equal(mask, before.get(trace)) for trace, mask in panel.scene.lit.items())
        # The smooth image follows when nothing has changed for a while.
        assert pictures.count(False) == is_new
    uncovered = int(np.flatnonzero(protein.n_psms == 0)[0])
    assert protein.first_over(uncovered) is None


def test_selected_site_or_contact_is_picked_in_the_structure(view: EvidenceView, qtbot: QtBot) -> None:
    choose(view, next(name for name, n in zip(shown(view.proteins, "accession"), shown(view.proteins, "n_sites"), strict=True) if n), qtbot)
    panel = view.structures
    assert panel is not None
    view.tabs.setCurrentWidget(view.sites)
    click_row(view.sites, 0, qtbot)
    settle(view, qtbot)
    site = shown(view.sites, "position")[0] - 1
    assert highlighted_positions(view) == {site} and [pick.label.split()[1] for pick in panel.scene.picks] == [
        shown(view.sites, "author_number")[0]
    ]
    assert view.coverage.residues == (site,)
    view.tabs.setCurrentWidget(view.contacts)
    click_row(view.contacts, 0, qtbot)
    settle(view, qtbot)
    first, second = panel.scene.picks
    assert np.linalg.norm(first.position - second.position) == pytest.approx(shown(view.contacts, "alpha_distance")[0], abs=1e-2)


def test_picked_alignment_column_selects_the_residue(view: EvidenceView, qtbot: QtBot) -> None:
    panel, fold = view.structures, view._fold
    assert panel is not None and fold is not None
    pair = fold.pair
    column = int(np.flatnonzero(pair.residue >= 0)[50])
    view.alignment.plot.columnPicked.emit(column)
    settle(view, qtbot)
    assert [pick.row for pick in panel.scene.picks] == [int(pair.residue[column])]
    # The protein has five additional glycines here.
    gaps = pair.protein_residue[pair.residue < 0]
    assert {pair.query[k] for k in np.flatnonzero(pair.residue < 0)} <= {"G", "L"} and len(gaps) == 5
    assert "gap" in pair.column_text(int(np.flatnonzero(pair.residue < 0)[0]))


def test_evidence_view_reports_a_protein_without_structure(view: EvidenceView, qtbot: QtBot) -> None:
    choose(view, "NOWHERE", qtbot)
    assert view.structures is not None
    assert "No chain of the database is similar" in view.structures.canvas.failure and view.alignment.plot.pair is None
    assert view.coverage.coverage is not None and view.coverage.coverage.title == "NOWHERE"


def test_evidence_view_shows_alignment_without_structure_file(tmp_path: Path, qtbot: QtBot) -> None:
    made = project_with_evidence(tmp_path / "made")
    (tmp_path / "made" / "1ao6_A.pdb").unlink()
    view = EvidenceView(EVIDENCE)
    opened(view, made, qtbot)
    settle(view, qtbot)
    assert view.structures is not None and "1ao6_A.pdb" in view.structures.canvas.failure
    assert view.alignment.plot.pair is not None and view.coverage.coverage is not None


def test_requested_peptide_is_selected_in_its_protein(view: EvidenceView, qtbot: QtBot) -> None:
    choose(view, "PARTIAL", qtbot)
    wanted = shown(view.peptides, "sequence")[1]
    choose(view, "NOWHERE", qtbot)
    view.show_peptide(wanted)
    settle(view, qtbot)
    settle(view, qtbot)
    assert view.peptides.view.chosen is not None
    row = view.peptides.model.position_of(view.peptides.view.chosen)
    assert row is not None and shown(view.peptides, "sequence")[row] == wanted


def test_structure_action_of_a_psm_requests_the_evidence_run(project: Project, qtbot: QtBot) -> None:
    view = IdentificationView(search_of_kind("import"))
    opened(view, project, qtbot)
    settle(view, qtbot)
    click_row(view.psms, 2, qtbot)
    settle(view, qtbot)
    action = next(action for action in view.psms.view.actions() if "ucture" in action.text())
    with qtbot.waitSignal(view.peptideRequested) as signal:
        action.trigger()
    assert view.psms.view.chosen is not None
    row = view.psms.model.position_of(view.psms.view.chosen)
    assert row is not None
    values = view.psms.model.values(row)
    assert values is not None and signal.args == [project.latest("evidence"), values["peptide"]]


def test_evidence_view_shows_remote_chains_and_conservation(shared_data: Path, tmp_path: Path, qtbot: QtBot) -> None:
    globins = {path.name: path for path in sorted((shared_data / "structures" / "globins").iterdir())}
    sequences = {name: read_structure(path).chains.sequence(0) for name, path in globins.items()}
    (tmp_path / "relatives.fasta").write_text("".join(f">{name}\n{sequence}\n" for name, sequence in sequences.items()))
    project = write_identification(tmp_path, {"GLOBIN": sequences["d1mbaa_"]})
    where = {"project": [project], "structures": [*globins.values()], "homologues": [tmp_path / "relatives.fasta"]}
    run_search("evidence", where, device="cpu", threads=2, chains_per_protein=1, remote_chains=2, maximum_e_value=10.0)
    view = EvidenceView(EVIDENCE)
    opened(view, Project.open(project), qtbot)
    choose(view, "GLOBIN", qtbot)
    assert shown(view.chains, "kind") == ["same", "remote", "remote"]
    view.tabs.setCurrentWidget(view.chains)
    click_row(view.chains, 1, qtbot)
    qtbot.waitUntil(lambda: view._fold is not None and view._fold.near.values["kind"] == "remote")
    settle(view, qtbot)
    pair, panel = view.alignment.plot.pair, view.structures
    assert pair is not None and any("found by the similarity to the fold of d1mbaa_" in fact for fact in pair.facts)
    assert panel is not None and panel.scene.query is not None
    evidence = panel.scene.query.evidence
    protein = view._protein
    assert evidence is not None and protein is not None
    is_there = evidence.position >= 0
    conservation = evidence.conservation[is_there]
    assert np.isfinite(conservation).any() and np.isnan(evidence.conservation[~is_there]).all()
    np.testing.assert_array_equal(conservation, protein.conservation[evidence.position[is_there]])
    assert sorted(shown(view.panels["homologues"], "subject")) and "d1mbaa_" not in shown(view.panels["homologues"], "subject")


def test_evidence_view_marks_a_chain_of_low_identity(tmp_path: Path, qtbot: QtBot) -> None:
    albumin = write_albumin(tmp_path)
    sequence = read_structure(albumin).chains.sequence(0)
    other = distant(sequence)
    project = write_identification(tmp_path, {"DISTANT": other})
    run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    view = EvidenceView(EVIDENCE)
    opened(view, Project.open(project), qtbot)
    choose(view, "DISTANT", qtbot)
    pair = view.alignment.plot.pair
    assert pair is not None and pair.query.replace("-", "") in other and pair.subject.replace("-", "") in sequence
    both = [(a, b) for a, b in zip(pair.query, pair.subject, strict=True) if "-" not in (a, b)]
    same = sum(a == b for a, b in both) / len(both)
    assert 0.2 < same < 0.3 and f"distant, {same * 100:.1f} % identity of {len(both)} aligned residues" in pair.facts[0]
    assert shown(view.chains, "kind") == ["distant"] and shown(view.chains, "identity") == [pytest.approx(same)]
    assert shown(view.proteins, "identity") == [pytest.approx(same)]
    # It is shown above the alignment, and available to screen readers.
    expected, layout = f"distant, {same * 100:.1f} % identity", view.alignment.plot._sheet
    assert layout is not None and expected in " ".join(layout.facts) and expected in view.alignment.plot.accessibleDescription()


def test_evidence_view_colours_peptides_and_chain_by_quantity(project: Project, view: EvidenceView, tmp_path: Path, qtbot: QtBot) -> None:
    assert not view.coverage.quantity_action.isVisible()
    project = Project.open(Path(shutil.copytree(project.folder, tmp_path / "quantified")))
    source = project.record(next(run.id for run in project.runs() if run.kind == "evidence"))["source_run"]
    run_search("quantify", {"project": [project.folder]}, method="counts", run=(source,), device="cpu", threads=2)
    view = EvidenceView(EVIDENCE)
    opened(view, project, qtbot)
    choose(view, "RELATIVE", qtbot)
    protein, coverage = view._protein, view.coverage
    assert protein is not None and protein.quantities is not None and protein.quantity is not None
    view.figures.setCurrentWidget(view.coverage)
    assert view.coverage.quantity_action.isVisible() and not view.coverage.quantity_action.isChecked()
    assert coverage._sheet is not None
    place = QRectF(*coverage._sheet.key.boxes["quantity"]).center()
    assert "by their quantity" in coverage.text_at(place)
    plain = coverage.viewport().grab().toImage()
    qtbot.mouseClick(coverage.viewport(), Qt.MouseButton.LeftButton, pos=place.toPoint())
    assert coverage.quantity_action.isChecked() and coverage.viewport().grab().toImage() != plain
    quantified = [peptide for peptide in protein.coverage.peptides if protein.quantities.value(protein.coverage, peptide) is not None]
    assert quantified
    scale = protein.quantities.scale
    for peptide in quantified[:5]:
        value = protein.quantities.value(protein.coverage, peptide)
        coverage.mark(peptide.row)
        has_bar = peptide.lane < 6  # In deeper lanes only the residues are drawn.
        place = place_of(coverage, peptide) if has_bar else coverage.on_viewport(coverage._sheet.residue(peptide.start))
        assert f"log2 quantity: {value:.2f}" in coverage.text_at(place.center())
        if has_bar:
            colour = coverage.viewport().grab().toImage().pixelColor(round(place.left() + 4), round(place.center().y()))
            expected = quantity_colours(np.array([value]), scale)[0].tolist()
            assert np.abs(np.array(colour.getRgb()[:3]) - expected).max() <= 3
    panel = view.structures
    assert panel is not None and panel.scene.query is not None and panel.scene.query.evidence is not None
    colours, evidence = panel.scene.coloured("quantity").colours[0], panel.scene.query.evidence
    on_protein = np.flatnonzero(evidence.position >= 0)
    np.testing.assert_array_equal(colours[on_protein], quantity_colours(protein.quantity[evidence.position[on_protein]], scale))
    assert len(np.unique(colours, axis=0)) > 1


def test_structure_export_prompts_before_reading_files(view: EvidenceView, project: Project, tmp_path: Path, qtbot: QtBot) -> None:
    tasks = list[ExportTask]()
    view.exportRequested.connect(tasks.append)

    def question() -> StructuresDialog:
        view.prompt_for_export()
        (dialog,) = [dialog for dialog in view.findChildren(ExportDialog) if dialog.isVisible()]
        (structures,) = [name_filter for name_filter in dialog.nameFilters() if name_filter.startswith("Structures with their coverage")]
        dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
        dialog.selectNameFilter(structures)
        dialog.fileSelected.emit(str(tmp_path / "out"))
        dialog.close()
        (box,) = [dialog for dialog in view.findChildren(StructuresDialog) if dialog.isVisible()]
        assert str(project.folder.parent) in box.informativeText()
        return box

    question().cancel_button.click()
    assert tasks == [] and not (tmp_path / "out").exists()
    question().read_button.click()
    (task,) = tasks
    assert task.request.structures == (project.folder.parent,)
    assert len(task.run(Progress())) > 2
    question().choose_button.click()
    (folders,) = [dialog for dialog in view.findChildren(QFileDialog) if dialog.isVisible() and not isinstance(dialog, ExportDialog)]
    folders.fileSelected.emit(str(tmp_path))
    folders.close()
    assert tasks[-1].request.structures == (tmp_path,)
    view.exportRequested.disconnect(tasks.append)
