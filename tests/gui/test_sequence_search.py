"""Tests of the sequence search with real input events: paste, drop, choose, run, view results, search again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QFileDialog, QMenu
from pytestqt.qtbot import QtBot

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.formats import read_proteins, sequence_type
from proteoscope.engine.formats.sequence_type import SequenceCount, count_sequences
from proteoscope.engine.jobs import Progress
from proteoscope.engine.parameters import preset_names, read_preset
from proteoscope.engine.project import Project
from proteoscope.engine.results.counts import Count
from proteoscope.engine.sequence_search.entry import SEQUENCE_SEARCH
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequences.database import read_sequences
from proteoscope.engine.sequences.hits import HitFormat
from proteoscope.engine.sequences.statistics import default_gap_costs
from proteoscope.gui.forms.editors import MatrixEditor
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.forms.sequence_box import read_pasted
from proteoscope.gui.results.export import ExportDialog, fitted
from proteoscope.gui.results.hits_view import HitsView
from proteoscope.gui.tasks import ExportTask, SearchTask
from proteoscope.gui.window import MainWindow
from tests.engine.views.result_projects import project_with_results
from tests.engine.views.search_projects import search_files, summary_of, write_fasta
from tests.gui.result_views import overlapping
from tests.gui.test_window import click, drop

SEARCH_MS = 240_000


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return search_files(tmp_path / "files")


@pytest.fixture
def form(window: MainWindow) -> SearchForm:
    click(window.start_page.new_buttons["align"])
    assert isinstance(window.form, SearchForm)
    return window.form


@pytest.fixture
def filled(window: MainWindow, form: SearchForm, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot) -> MainWindow:
    """Window whose form is ready to run."""
    form.file_lists["queries"].add([files[0]])
    form.file_lists["database"].add([files[1]])
    form.set_project_folder(tmp_path / "project")
    form.device.choose("cpu")
    qtbot.waitUntil(form.run_button.isEnabled)
    return window


def paste(form: SearchForm, text: str, qtbot: QtBot) -> None:
    form.inputs["queries"].box.text.setPlainText(text)
    qtbot.waitUntil(lambda: form.inputs["queries"].box.is_read)


def test_search_of_pasted_protein_lists_related_proteins(
    window: MainWindow, form: SearchForm, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot
) -> None:
    assert form.reason.text() == "Add queries, or paste a sequence" and not form.run_button.isEnabled()
    sequence = files[0].read_text(encoding="utf-8").splitlines()[1]
    form.inputs["queries"].box.text.setFocus()
    QTest.keyClicks(form.inputs["queries"].box.text, sequence[:20].lower() + " ")
    paste(form, f"{sequence[:60]}\n{sequence[60:]}\n", qtbot)
    assert form.inputs["queries"].note.text() == f"Pasted: 1 sequence, {len(sequence)} residues"
    qtbot.waitUntil(lambda: form.reason.text() == "Add a protein database")
    form.file_lists["database"].add([files[1]])
    qtbot.waitUntil(form.run_button.isEnabled)
    assert form.project.line.text() == str(files[1].parent / "database_proteoscope")
    qtbot.waitUntil(lambda: form.file_lists["database"].note.text().startswith("186 sequences, "))
    form.project.line.selectAll()
    QTest.keyClicks(form.project.line, str(tmp_path / "relatives"))
    form.device.choose("cpu")
    qtbot.waitUntil(form.run_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=SEARCH_MS) as finished:
        window.menus.run.trigger()
        assert window.dock_jobs.isVisible()
    job = finished.args[0]
    assert job.state == "done", job.error_report or job.error
    assert job.result.n_hits > 5
    results = window.searches["align"].results
    qtbot.waitUntil(lambda: window.pages.currentWidget() is results)
    qtbot.waitUntil(lambda: not results.is_busy)
    assert isinstance(results, HitsView)
    pair = results.alignment.plot.pair
    assert pair is not None and pair.query_name == "query" and pair.subject_name.startswith("R0_")
    run = window.project_pane.selected_run
    assert run is not None and (run.kind, run.status) == ("align", "done")
    assert f"{run.message} in" in window.jobs.rows[job.id].stage.toolTip()
    # The project records the file that it read, and stores a copy.
    read = [input_file.path for input_file in Project.open(tmp_path / "relatives").inputs(run.id) if input_file.kind == "queries"]
    assert len(read) == 1 and read[0].is_relative_to(tmp_path / "relatives")
    proteins = read_proteins(read)
    assert [proteins.sequence(i) for i in range(len(proteins))] == [sequence]


def test_cancelled_sequence_search_leaves_no_results(
    filled: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SearchTask.run

    def cancelled(request: SearchTask, progress: Any) -> Any:
        stage = progress.stage
        progress.stage = lambda title, total=0: (progress.cancel() if title.startswith("Aligning") else None, stage(title, total))
        return real(request, progress)

    monkeypatch.setattr(SearchTask, "run", cancelled)
    with qtbot.waitSignal(filled.bridge.finished, timeout=SEARCH_MS) as finished:
        filled.form.run()
    assert finished.args[0].state == "cancelled"
    project = Project.open(tmp_path / "project")
    assert [run.status for run in project.runs()] == ["cancelled"]
    assert list((tmp_path / "project" / "results").glob("*/*")) == []


def test_request_of_sequence_search_has_the_values_of_the_form(
    filled: MainWindow, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot
) -> None:
    form = filled.form
    assert isinstance(form, SearchForm)
    form.presets.choose("distant")
    form.parameters.set_values({"hits_per_query": 7})
    paste(form, ">mine a protein\nMKWVTFISLLLLFSSAYS", qtbot)
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None
    request = task.request
    assert request.inputs == {"queries": (files[0],), "database": (files[1],)}
    assert task.pasted == {"queries": ">mine a protein\nMKWVTFISLLLLFSSAYS\n"}
    assert (request.device, request.project, request.out) == ("cpu", tmp_path / "project", None)
    assert request.parameters == SequenceSearchParameters(matrix="BLOSUM45", gap_open=14, gap_extend=2, hits_per_query=7)
    assert task.title == "Search queries.fasta and 1 more in database.fasta"


def test_presets_of_sequence_search_are_unchanged_by_the_form(window: MainWindow) -> None:
    form = window.searches["align"].form
    for preset in preset_names("align"):
        form.presets.choose(preset)
        assert form.parameters.parameters == SequenceSearchParameters.checked(read_preset("align", preset)), preset
        assert form.parameters.changed_names == [], preset


def test_selected_matrix_sets_gap_costs_unless_these_were_edited(form: SearchForm) -> None:
    combo = form.parameters.fields["matrix"].editor.findChild(QComboBox)
    assert combo is not None and combo.count() > 60
    for name in ("BLOSUM45", "PAM30", "BLOSUM62"):
        combo.setCurrentText(name)
        values = form.parameters.values()
        assert (values["gap_open"], values["gap_extend"]) == default_gap_costs(name)
    form.parameters.set_values({"gap_open": 13})
    combo.setCurrentText("PAM250")
    assert form.parameters.values()["gap_open"] == 13


def test_matrix_file_is_accepted_in_the_form(form: SearchForm, tmp_path: Path, qtbot: QtBot) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("  A  C\nA 4 -1\nC -1 9\n", encoding="utf-8")
    form.parameters.set_values({"matrix": str(mine)})
    assert form.parameters.parameters is not None and form.parameters.parameters.matrix == str(mine)  # type: ignore[attr-defined]
    mine.unlink()
    form.parameters.set_values({"gap_open": 12})
    assert "there is no matrix" in form.parameters.problems["matrix"].lower()


def test_damaged_matrix_file_is_reported_in_the_form(filled: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    form = filled.form
    mine = tmp_path / "mine.txt"
    mine.write_text("  A  C\nA 4 -1\nC -1\n", encoding="utf-8")
    field = form.parameters.fields["matrix"]
    editor = field.editor
    assert isinstance(editor, MatrixEditor)
    editor.prompt_for_file()
    dialog = editor.findChild(QFileDialog)
    assert dialog is not None
    dialog.fileSelected.emit(str(mine))
    said = "mine.txt, line 3: the row has 1 scores, but the header has 2 residues"
    assert field.frame.is_wrong and field.message.text().startswith(said)
    qtbot.waitUntil(lambda: form.reason.text().startswith(f"{field.description.title}: {said}"))
    assert not form.run_button.isEnabled()
    mine.write_text("  A  C\nA 4 -1\nC -1 9\n", encoding="utf-8")
    dialog.fileSelected.emit(str(mine))
    dialog.close()
    assert not field.frame.is_wrong
    qtbot.waitUntil(form.run_button.isEnabled)


def test_sequence_search_form_shows_errors_at_their_fields(filled: MainWindow, tmp_path: Path, sample_data: Path, qtbot: QtBot) -> None:
    form = filled.form
    assert isinstance(form, SearchForm)
    paste(form, ">one\nMKW@T", qtbot)
    assert form.inputs["queries"].box.frame.is_wrong and form.inputs["queries"].box.message.text() == "Line 2: “@” is not a residue"
    qtbot.waitUntil(lambda: form.reason.text() == "A query cannot be used")
    paste(form, "", qtbot)
    qtbot.waitUntil(form.run_button.isEnabled)
    form.file_lists["database"].add([sample_data / "BSA1.mzML.gz"])
    qtbot.waitUntil(lambda: form.file_lists["database"].message.text() == "BSA1.mzML.gz contains spectra (mzML), not sequences")
    form.file_lists["database"].lines.item(1).setSelected(True)
    form.file_lists["database"].remove_selected()
    form.parameters.set_values({"maximum_e_value": 0.0})
    qtbot.waitUntil(lambda: form.reason.text() == "Maximum E-value: Expected more than 0")


def test_form_reports_a_project_folder_that_cannot_be_created(filled: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    form = filled.form
    form.set_project_folder(tmp_path / ("x" * 300))
    qtbot.waitUntil(lambda: form.project.message.text() == "This folder cannot be used: File name too long")
    assert not form.run_button.isEnabled()
    form.project.line.setText("~no-user-of-this-name/project")
    qtbot.waitUntil(form.run_button.isEnabled)


def test_sequence_search_form_warns_of_dna_instead_of_protein(form: SearchForm, tmp_path: Path, qtbot: QtBot) -> None:
    transcript = tmp_path / "transcript.fasta"
    transcript.write_text(">t\n" + "ACGTTGCAAGCT" * 10 + "\n", encoding="utf-8")
    form.file_lists["database"].add([transcript])
    qtbot.waitUntil(form.file_lists["database"].warning.isVisible)
    assert "transcript.fasta looks like DNA or RNA" in form.file_lists["database"].warning.text()
    paste(form, "acguacguacguacguacguacguacguacguacgu", qtbot)
    assert form.inputs["queries"].warning.text().startswith("The pasted text looks like DNA or RNA")
    paste(form, "ACGTN", qtbot)
    assert not form.inputs["queries"].warning.isVisible(), "so short a text may be a peptide"


def test_sequence_search_form_counts_dna_among_proteins(form: SearchForm, tmp_path: Path, qtbot: QtBot) -> None:
    protein, gene = "MKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVKLVNELTEFAKTCVADE", "ACGTTGCAAGCT" * 75
    paste(form, f">gene\n{gene[:46]}\n>protein\nMKV", qtbot)
    assert form.inputs["queries"].warning.text().startswith("The pasted text: 1 of 2 sequences looks like DNA or RNA")
    mixed = write_fasta(tmp_path / "mixed.fasta", [("a", gene), ("b", protein), ("c", gene[5:]), ("d", protein), ("e", protein)])
    form.file_lists["queries"].add([mixed])
    qtbot.waitUntil(form.file_lists["queries"].warning.isVisible)
    assert form.file_lists["queries"].warning.text().startswith("mixed.fasta: 2 of 5 sequences look like DNA or RNA")
    # Among very many proteins some resemble DNA.
    for name, n_genes in (("few", 2), ("many", 3)):
        records = [("gene", gene)] * n_genes + [("p", protein)] * (300 - n_genes)
        form.file_lists["database"].clear()
        form.file_lists["database"].add([write_fasta(tmp_path / f"{name}.fasta", records)])
        qtbot.waitUntil(lambda: form.file_lists["database"].note.text().startswith("300 sequences"))
        expected = "many.fasta: 3 of 300 sequences look like DNA or RNA, but proteins are expected; translate them first"
        assert form.file_lists["database"].warning.text() == (expected if name == "many" else "")


@pytest.mark.parametrize("block", [64, 1000, 1 << 20])
def test_inspection_counts_as_many_dna_sequences_as_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    random = np.random.default_rng(4)
    kinds = ("ACGT", "ACGTN", "ACDEFGHIKLMNPQRSTVWY", "ACGTACGTACGTACGTACGTK")
    lengths = random.integers(30, 400, 150)
    records = [(f"s{i}", "".join(random.choice(list(kinds[i % 4]), length))) for i, length in enumerate(lengths)]
    lines = [part for name, sequence in records for part in (f">{name}", *(sequence[at : at + 60] for at in range(0, len(sequence), 60)))]
    path = tmp_path / "mixed.fasta"
    path.write_text("\n".join([*lines[:1], "; a remark", *lines[1:]]), encoding="utf-8")
    monkeypatch.setattr("proteoscope.engine.formats.sequence_type._BLOCK", block)
    counts = count_sequences(path)
    path.write_text("\n".join(lines), encoding="utf-8")
    expected = read_sequences([path], Progress()).n_nucleotides
    assert counts is not None and (counts.n_sequences, counts.n_residues) == (150, lengths.sum())
    assert counts.n_nucleotides == expected and 75 <= expected < 150


def test_inspection_of_a_chromosome_classifies_a_bounded_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chromosome.fasta"
    path.write_text(">c\n" + ("ACGTTGCAAGCT" * 5 + "\n") * 3000, encoding="utf-8")
    monkeypatch.setattr("proteoscope.engine.formats.sequence_type._BLOCK", 5000)
    monkeypatch.setattr("proteoscope.engine.formats.sequence_type._MAXIMUM_INSPECTED", 2000)
    classified: list[int] = []
    real = sequence_type.nucleotide_counts
    monkeypatch.setattr(sequence_type, "nucleotide_counts", lambda codes, offsets: classified.append(len(codes)) or real(codes, offsets))
    assert count_sequences(path) == SequenceCount(1, 180_000, 1, symbols=tuple((ord(base), 45_000) for base in "ACGT"))
    assert max(classified) < 2000


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        (["ACGTTGCAAGCTACGTTGCA"] * 2, 2),
        (["ACGTTGCAAGCTACGTTGCA"] * 5, 5),
        (["ACGTTGCAAGCTACGTTGCA", "MKVLAAGIIGLLLAQWERTYMKVLAAGIIGLLL", "ACGTTGCAAGCTACGTTGCA"], 2),
        (["ACGTTGCAAG"] * 21 + ["MKVLAAGIIGLLLAQ"] * 2, 0),
    ],
)
def test_inspection_classifies_short_sequences_as_one_group(
    sequences: list[str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.sequence_type._BLOCK", 50)
    path = tmp_path / "primers.fasta"
    path.write_text("".join(f">{k}\n{sequence}\n" for k, sequence in enumerate(sequences)))
    counts = count_sequences(path)
    assert counts is not None and counts.n_nucleotides == expected == read_sequences([path], Progress()).n_nucleotides


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[A-Za-z0-9|_]{1,8}( [ -~]{0,12})?", fullmatch=True),
            st.lists(st.text("ACDEFGHIKLMNPQRSTVWYacdwXBZ*-. 0123456789", max_size=30), max_size=4),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_inspection_counts_as_many_sequences_as_the_engine(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, list[str]]], ending: str, is_last_ended: bool
) -> None:
    text = ending.join(part for header, lines in records for part in (f">{header}", *lines)) + (ending if is_last_ended else "")
    path = tmp_path_factory.getbasetemp() / "counted.fasta"
    path.write_bytes(text.encode())
    residues = sum(sum(character.isalpha() for character in line) for _, lines in records for line in lines)
    counts = count_sequences(path)
    assert counts is not None and (counts.n_sequences, counts.n_residues) == (len(records), residues)
    pasted = read_pasted(text)
    if residues:
        assert pasted.problem == "" and pasted.count == counts
        path.write_text(pasted.fasta, encoding="utf-8")
        read = read_proteins([path], every_record=True)
        assert len(read) == len(records)
    else:
        assert pasted.problem == "There are no residues"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_inspection_counts_only_a_part_of_a_large_fasta_file(tmp_path: Path, end: str) -> None:
    path = tmp_path / "large.fasta"
    path.write_bytes(f">p{end}MKWVTF{end}".encode() * 400_000)
    counts = count_sequences(path, maximum_bytes=1 << 20)
    assert counts is not None and not counts.is_whole and 0 < counts.n_sequences < 400_000
    assert count_sequences(path, is_wanted=lambda: False) is None
    assert count_sequences(tmp_path / "absent.fasta") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("MKW\n>late name\nMKW", "Line 2: this line is a name"),
        (">\nMKW", "Line 1: the name after > is missing"),
        (">a\nMKW\nMK€W", "Line 3: “€” is not a residue"),
        (">a\n\n", "There are no residues"),
        ("M" * 5_000_001, "too long to paste"),
    ],
)
def test_pasted_text_that_is_not_fasta_is_reported(text: str, problem: str) -> None:
    assert problem in read_pasted(text).problem


def test_sequence_files_dropped_on_a_file_list_are_added(
    window: MainWindow, form: SearchForm, files: tuple[Path, Path], qtbot: QtBot
) -> None:
    elsewhere = form.run_button.mapTo(window, QPoint(5, 5))
    drop(window, files[0], at=elsewhere)
    qtbot.waitUntil(lambda: form.file_lists["queries"].paths == [files[0]])
    drop(window, files[1], at=elsewhere)
    qtbot.waitUntil(lambda: form.file_lists["database"].paths == [files[1]])
    for name, target in (("more.fasta", form.file_lists["queries"].lines), ("still more.fasta", form.inputs["queries"].box.text)):
        more = Path(shutil.copy(files[0], files[0].with_name(name)))
        drop(window, more, at=target.mapTo(window, QPoint(20, 20)))
        qtbot.waitUntil(lambda more=more: form.file_lists["queries"].paths[-1] == more)
    assert form.file_lists["database"].paths == [files[1]]


def test_dropped_spectra_open_the_identification_form(window: MainWindow, form: SearchForm, sample_data: Path, qtbot: QtBot) -> None:
    drop(window, sample_data / "BSA1.mzML.gz")
    identification = window.searches["identify"].form
    qtbot.waitUntil(lambda: window.pages.currentWidget() is identification)
    assert form.inputs["queries"].is_empty


def test_dropped_preset_opens_the_form_of_its_search(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "mine.toml").write_text('matrix = "PAM70"\ngap_open = 10\n', encoding="utf-8")
    assert window.search.kind == "identify"
    drop(window, tmp_path / "mine.toml")
    form = window.searches["align"].form
    qtbot.waitUntil(lambda: window.pages.currentWidget() is form)
    assert form.presets.box.currentText() == "mine" and form.parameters.values()["matrix"] == "PAM70"


@pytest.mark.parametrize("kind", ["align", "identify"])
def test_filter_fields_do_not_overlap_in_the_smallest_window(window: MainWindow, searched_project: Path, qtbot: QtBot, kind: str) -> None:
    window.open_project(searched_project)
    window.project_pane.select(next(run.id for run in Project.open(searched_project).runs() if run.kind == kind))
    view = window.results
    qtbot.waitUntil(lambda: view.text == "" and not view.is_busy)
    for width in (window.minimumWidth(), 1000, window.minimumWidth()):
        window.resize(width, window.minimumHeight())
        qtbot.waitUntil(lambda width=width: window.width() == width)
        qtbot.waitUntil(lambda: overlapping(view.filter_bar) == [])
        assert view.filter_bar.text.width() >= 80
        assert view.minimumSizeHint().width() <= view.width()


OF_QUERIES = ("tsv", "blast6", "sam", "fasta", "clustal", "html", "stockholm", "maf", "psl")
FORMATS = (*OF_QUERIES[:7], "a3m", "phylip", "clustal-stack", *OF_QUERIES[7:])


def prompt_for_export(window: MainWindow, target: Path) -> None:
    """Choose the file in the dialog, as Save does."""
    window.menus.export.trigger()
    (dialog,) = [dialog for dialog in window.results.findChildren(ExportDialog) if dialog.isVisible()]
    dialog.fileSelected.emit(str(target))
    dialog.close()


def test_hit_exports_of_window_and_engine_are_equal(window: MainWindow, searched_project: Path, tmp_path: Path, qtbot: QtBot) -> None:
    window.open_project(searched_project)
    qtbot.waitUntil(lambda: window.results.text == "" and not window.results.is_busy)
    window.results.filter_bar.text.setText("relative 3")
    endings = {"blast6": "m8", "clustal": "aln", "stockholm": "sto"}
    run = window.results.run
    assert run is not None
    for format in OF_QUERIES:
        target, expected = tmp_path / f"{format}.{endings.get(format, format)}", tmp_path / f"expected {format}"
        with qtbot.waitSignal(window.bridge.finished) as finished:
            prompt_for_export(window, target)
            assert window.dock_jobs.isVisible()
        job = finished.args[0]
        assert job.state == "done", job.error_report or job.error
        SEQUENCE_SEARCH.export(Project.open(searched_project), ExportRequest(run.id, format, expected), Progress())
        assert target.read_bytes() == expected.read_bytes(), format
        message = f"Export results of {run.id} to {target.name}: {target.name} written in "
        qtbot.waitUntil(lambda message=message: window.message_bar.isVisible() and message in window.message_bar.label.text())
        assert isinstance(window.pages.currentWidget(), HitsView)


def test_cancelled_export_from_the_window_leaves_no_file(
    window: MainWindow, searched_project: Path, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ExportTask.run

    def held(task: ExportTask, progress: Progress) -> Any:
        while not progress.is_cancelled:
            time.sleep(0.005)
        return real(task, progress)

    monkeypatch.setattr(ExportTask, "run", held)
    window.open_project(searched_project)
    qtbot.waitUntil(lambda: window.results.text == "" and not window.results.is_busy)
    with qtbot.waitSignal(window.bridge.finished) as finished:
        prompt_for_export(window, tmp_path / "hits.sam")
        qtbot.waitUntil(lambda: window.queue.running is not None)
        qtbot.waitUntil(lambda: len(window.jobs.rows) == 1)
        click(next(iter(window.jobs.rows.values())).cancel_button)
    assert finished.args[0].state == "cancelled"
    assert list(tmp_path.glob("hits*")) == [] and not window.message_bar.isVisible()


def test_failed_export_from_the_window_is_reported(window: MainWindow, searched_project: Path, tmp_path: Path, qtbot: QtBot) -> None:
    window.open_project(searched_project)
    qtbot.waitUntil(lambda: window.results.text == "" and not window.results.is_busy)
    (tmp_path / "file").touch()
    with qtbot.waitSignal(window.bridge.finished) as finished:
        prompt_for_export(window, tmp_path / "file" / "x.tsv")
    assert finished.args[0].state == "failed"
    qtbot.waitUntil(window.message_bar.isVisible)
    assert str(tmp_path) in window.message_bar.label.text()


def test_export_action_is_enabled_while_hits_are_shown(window: MainWindow, searched_project: Path, qtbot: QtBot) -> None:
    view = window.searches["align"].results
    action = view.export_action
    assert isinstance(view, HitsView) and not action.isEnabled() and not window.menus.export.isEnabled()
    file_menu = window.menuBar().actions()[0].menu()
    assert isinstance(file_menu, QMenu) and window.menus.export in file_menu.actions()
    assert action in view.hits.view.actions() and action in view.queries.view.actions()
    window.open_project(searched_project)
    qtbot.waitUntil(lambda: view.text == "" and not view.is_busy)
    assert action.isEnabled() and window.menus.export.isEnabled()
    window.menus.new["identify"].trigger()
    assert not window.menus.export.isEnabled(), "no identification is shown"
    window.menus.new["align"].trigger()
    assert window.menus.export.isEnabled()
    view.clear()
    assert not action.isEnabled() and not window.menus.export.isEnabled()


@pytest.mark.parametrize(
    ("name", "chosen", "expected"),
    [
        ("hits", "sam", ("hits.sam", "sam")),
        ("hits.SAM", "tsv", ("hits.SAM", "sam")),
        ("hits.m8", "tsv", ("hits.m8", "blast6")),
        ("hits.txt", "blast6", ("hits.txt", "blast6")),
        ("hits.aln", "clustal", ("hits.aln", "clustal")),
        ("run 1.5", "html", ("run 1.5", "html")),
    ],
)
def test_file_name_suffix_selects_the_export_format_of_hits(
    tmp_path: Path, name: str, chosen: HitFormat, expected: tuple[str, str]
) -> None:
    format = SEQUENCE_SEARCH.exported_as(chosen)
    assert format is not None
    path, format = fitted(tmp_path / name, format, SEQUENCE_SEARCH.exports)
    assert (path, format.name) == (tmp_path / expected[0], expected[1])


def test_export_dialog_of_hits_offers_every_format(window: MainWindow, qtbot: QtBot) -> None:
    dialog = ExportDialog("align-0001", SEQUENCE_SEARCH.exports, window)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    offered = []
    for name_filter in dialog.nameFilters():
        dialog.selectNameFilter(name_filter)
        dialog.filterSelected.emit(name_filter)
        offered.append(dialog.chosen.name)
        assert fitted(Path(f"x.{dialog.defaultSuffix()}"), SEQUENCE_SEARCH.exports[0], SEQUENCE_SEARCH.exports)[1] == dialog.chosen
    assert tuple(offered) == FORMATS
    dialog.close()


def test_identification_and_sequence_search_share_a_project(window: MainWindow, searched_project: Path, qtbot: QtBot) -> None:
    window.open_project(searched_project)
    pages = {kind: search.results for kind, search in window.searches.items()}
    assert window.pages.currentWidget() is pages["align"], "the last run is shown"
    qtbot.waitUntil(lambda: not window.results.is_busy)
    window.project_pane.select("identify-0001")
    assert window.pages.currentWidget() is pages["identify"]
    qtbot.waitUntil(lambda: not window.results.is_busy)
    assert window.results.text == ""
    window.menus.form.trigger()
    assert window.pages.currentWidget() is window.searches["identify"].form
    window.menus.new["align"].trigger()
    assert window.pages.currentWidget() is window.searches["align"].form
    assert window.form.project.line.text() == str(searched_project)
    window.menus.results.trigger()
    assert window.pages.currentWidget() is pages["align"] and pages["align"].text == ""


@pytest.fixture(scope="session")
def project_of_both_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Project with an identification and a sequence search."""
    from tests.searching import align

    folder = tmp_path_factory.mktemp("both")
    queries, database = search_files(folder / "files")
    project, _ = project_with_results(folder / "both")
    align([queries], [database], None, SequenceSearchParameters(), project_folder=project.folder, device="cpu")
    return project.folder


@pytest.fixture
def searched_project(tmp_path: Path, project_of_both_kinds: Path) -> Path:
    """Copy of that project."""
    return Path(shutil.copytree(project_of_both_kinds, tmp_path / "both"))


def test_recreated_project_shows_the_new_run(filled: MainWindow, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot) -> None:
    window, form = filled, filled.form
    assert isinstance(form, SearchForm)
    subjects = []
    for record in files[0].read_text(encoding="utf-8").split(">")[1:3]:
        form.file_lists["queries"].clear()
        paste(form, f">{record}", qtbot)
        qtbot.waitUntil(form.run_button.isEnabled)
        with qtbot.waitSignal(window.bridge.finished, timeout=60_000):
            form.run()
            if subjects:  # The user is prompted for the deleted project.
                assert window.task_projects.question is not None
                window.task_projects.question.make_button.click()
        qtbot.waitUntil(lambda: window.results.run is not None and not window.results.is_busy)
        assert window.results.run is not None and window.results.run.id == "align-0001"
        subjects.append(window.results.header.text)
        shutil.rmtree(form.project_folder())
        window.show_page(form)
    assert subjects[0] != subjects[1]


def test_opened_project_shows_its_run_despite_equal_names(window: MainWindow, searched_project: Path, tmp_path: Path, qtbot: QtBot) -> None:
    other = tmp_path / "other"
    shutil.copytree(searched_project, other)
    for folder in (searched_project, other, searched_project):
        window.open_project(folder)
        qtbot.waitUntil(lambda: window.results.text == "" and not window.results.is_busy)
        assert window.project_pane.project is not None and window.project_pane.project.folder == folder


def test_click_on_the_shown_run_does_not_reset_its_filter(window: MainWindow, searched_project: Path, qtbot: QtBot) -> None:
    window.open_project(searched_project)
    view = window.results
    qtbot.waitUntil(lambda: view.text == "" and not view.is_busy)
    view.filter_bar.text.setText("relative 3")
    window.show_page(window.form)
    opened = []
    view.opened.connect(lambda: opened.append(1))
    runs = window.project_pane.runs
    QTest.mouseClick(runs.viewport(), Qt.MouseButton.LeftButton, pos=runs.visualItemRect(runs.selectedItems()[0]).center())
    assert window.pages.currentWidget() is view
    qtbot.wait(300)
    assert not opened and view.filter_bar.text.text() == "relative 3"


def test_run_of_unknown_type_is_reported(window: MainWindow, tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "project")
    with project.run("dock", {}):
        pass
    window.open_project(tmp_path / "project")
    window.project_pane.select("dock-0001")
    assert "cannot show this kind of run" in window.message_bar.label.text()


def test_settings_of_each_form_are_remembered_separately(
    make_window: Callable[[], MainWindow], files: tuple[Path, Path], qtbot: QtBot
) -> None:
    first = make_window()
    form = first.searches["align"].form
    assert isinstance(form, SearchForm)
    form.presets.choose("short")
    form.device.choose("cpu")
    form.file_lists["database"].add([files[1]])
    form.file_lists["queries"].start_folder = str(files[0].parent)
    assert first.close()
    second = make_window()
    again = second.searches["align"].form
    assert isinstance(again, SearchForm)
    again.last_button.click()
    assert (again.presets.box.currentText(), again.device.value()) == ("short", "cpu")
    assert again.file_lists["database"].paths == [files[1]] and again.file_lists["queries"].start_folder == str(files[0].parent)
    other = second.searches["identify"].form
    assert other.presets.box.currentText() == "high-resolution" and other.device.value() == "auto"
    assert other.file_lists["database"].paths == []


def test_jobs_of_two_searches_share_a_queue(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(request: SearchTask, progress: Any) -> Any:
        return summary_of("align-0001", Count(12, "hit", "hits"), Count(2, "query with hits", "queries with hits"))

    monkeypatch.setattr(SearchTask, "run", run)
    filled.form.parameters.set_values({"hits_per_query": 9})
    qtbot.waitUntil(filled.form.run_button.isEnabled)
    with qtbot.waitSignal(filled.bridge.finished) as finished:
        click(filled.form.run_button)
        filled.form.parameters.set_values({"hits_per_query": 8})
    job = finished.args[0]
    assert "12 hits, 2 queries with hits in" in filled.jobs.rows[job.id].stage.toolTip()
    qtbot.waitUntil(filled.message_bar.isVisible)
    assert filled.message_bar.button.text() == "Show results", "the user has started something else"
