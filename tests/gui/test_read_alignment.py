"""Tests of a read alignment through the window with real input events: drop, run, view, export."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from proteoscope.engine.entry import Option
from proteoscope.engine.formats.fastq import read_fastq
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.formats.sequence_type import SequenceCount, count_sequences
from proteoscope.engine.read_alignment.entry import READ_ALIGNMENT
from proteoscope.gui.forms.file_inspection import file_kind
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.results.export import ExportDialog
from proteoscope.gui.results.reads_view import ReadsView
from proteoscope.gui.window import MainWindow
from tests.engine.views.read_projects import read_files, write_fastq
from tests.gui.result_views import cut_off, settle, shown
from tests.gui.test_window import SEARCH_MS, click, drop


@pytest.fixture
def files(shared_data: Path, tmp_path: Path) -> tuple[Path, Path]:
    path = shared_data / "dna" / "dna_lambda.fasta"
    if not path.exists():
        pytest.skip("the genome of lambda is not there")
    return read_files(tmp_path / "files", "".join(path.read_text().splitlines()[1:])[:3000], 12)


def test_fastq_files_are_recognised_plain_and_gzipped(files: tuple[Path, Path], tmp_path: Path) -> None:
    packed = tmp_path / "packed.fq.gz"
    packed.write_bytes(gzip.compress(files[1].read_bytes()))
    for path in (files[1], packed):
        assert (file_kind(path).content, file_kind(path).format) == ("reads", "FASTQ")
    assert file_kind(files[0]).content == "proteins"


@pytest.mark.parametrize("block", [16, 700, 1 << 20])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_inspection_counts_as_many_reads_as_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, ending: str) -> None:
    random = np.random.default_rng(9)
    lengths = random.integers(0, 90, 60).tolist()
    reads = [(f"r{k} more", "".join(random.choice(list("ACGTNacgt"), n)), "@" * n) for k, n in enumerate(lengths)]
    path = write_fastq(tmp_path / "reads.fastq", reads)
    # Neither blank lines around the reads nor an end without one change anything.
    path.write_bytes(("\n" + path.read_text().rstrip("\n")).replace("\n", ending).encode())
    monkeypatch.setattr("proteoscope.engine.formats.sequence_type._BLOCK", block)
    counts, read = count_sequences(path), read_fastq(path)
    assert counts is not None and (counts.n_sequences, counts.n_residues) == (len(read), len(read.bases)) == (60, sum(lengths))
    assert counts.n_nucleotides == 60 - lengths.count(0)


def test_inspection_counts_fastq_reads_of_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "odd.fastq"
    path.write_text("@a\nACGT\nACGT\n+\nIIII\nIIII\n\n@b\nRA\n+\nII\n", encoding="utf-8")
    assert count_sequences(path) == SequenceCount(2, 10, 0, symbols=((65, 3), (67, 2), (71, 2), (82, 1), (84, 2)))


@pytest.mark.parametrize("text", ["@a\nACGT\n", "@a\nACGT\n+\nIIII\nACGT\n+\nIIII\n"])
def test_inspection_does_not_count_reads_of_damaged_fastq(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.fastq"
    path.write_text(text, encoding="utf-8")
    assert count_sequences(path) is None


def test_inspection_counts_only_a_part_of_a_large_fastq_file(tmp_path: Path) -> None:
    path = tmp_path / "large.fastq"
    path.write_text("@r\nACGTACGTACGTACGTACGTACGTACGTACGT\n+\nIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIII\n" * 60_000, encoding="utf-8")
    counts = count_sequences(path, maximum_bytes=1 << 20)
    assert counts is not None and not counts.is_whole and 0 < counts.n_sequences < 60_000
    n = counts.n_sequences
    assert counts == SequenceCount(n, 32 * n, n, False, tuple((ord(base), 8 * n) for base in "ACGT"))


@pytest.fixture
def form(window: MainWindow, files: tuple[Path, Path], qtbot: QtBot) -> SearchForm:
    """Form after the files were dropped on the window."""
    drop(window, files[1])
    form = window.searches["reads"].form
    qtbot.waitUntil(lambda: window.pages.currentWidget() is form)
    # Not on an input of the form, which would accept it.
    drop(window, files[0], at=QPoint(3, 3))
    qtbot.waitUntil(lambda: form.file_lists["texts"].paths == [files[0]])
    qtbot.waitUntil(lambda: bool(form.file_lists["texts"].counts and form.file_lists["patterns"].counts))
    return form


def test_dropped_fastq_opens_read_alignment_form_with_read_count(form: SearchForm, files: tuple[Path, Path], qtbot: QtBot) -> None:
    patterns, texts = form.file_lists["patterns"], form.file_lists["texts"]
    assert patterns.paths == [files[1]] and patterns.problem() == texts.problem() == ""
    reads = read_fastq(files[1])
    assert patterns.note.text() == f"{len(reads)} sequences, {len(reads.bases)} nucleotides"
    assert texts.note.text() == "3 sequences, 3000 nucleotides"
    assert not patterns.warning.isVisible() and not texts.warning.isVisible()
    patterns.clear()
    box = form.inputs["patterns"].box
    assert box is not None
    box.text.setPlainText(">mine\n" + "ACGTTGCAAGCT" * 5)
    qtbot.waitUntil(lambda: form.inputs["patterns"].note.text() == "Pasted: 1 sequence, 60 nucleotides")
    assert form.inputs["patterns"].warning.text() == ""


def test_read_alignment_form_names_the_field_of_swapped_files(window: MainWindow, files: tuple[Path, Path], qtbot: QtBot) -> None:
    window.menus.new["reads"].trigger()
    form = window.form
    form.file_lists["texts"].add([files[1]])
    form.file_lists["patterns"].add([files[0]])
    qtbot.waitUntil(lambda: bool(form.file_lists["texts"].problem()))
    expected = "reads.fastq contains reads with base qualities (FASTQ), not sequences. Add it to Reads"
    assert form.file_lists["texts"].message.text() == expected
    qtbot.waitUntil(lambda: not form.run_button.isEnabled() and form.reason.isVisible())


def test_sequence_search_form_rejects_reads(window: MainWindow, files: tuple[Path, Path], qtbot: QtBot) -> None:
    window.menus.new["align"].trigger()
    queries = window.form.file_lists["queries"]
    queries.add([files[1]])
    qtbot.waitUntil(lambda: bool(queries.problem()))
    assert queries.problem() == "reads.fastq contains reads with base qualities (FASTQ), not sequences"


def test_file_dialog_for_reads_offers_fasta_and_fastq(form: SearchForm) -> None:
    sequences = f"{format_names('proteins')} files"
    of_patterns = [f"{sequences} and FASTQ files", sequences, "FASTQ files", "All files"]
    for name, expected in (("patterns", of_patterns), ("texts", [sequences, "All files"])):
        lists = form.file_lists[name]
        lists.prompt_for_files()
        dialog = lists.findChild(QFileDialog)
        assert dialog is not None
        assert [nameFilter.partition(" (")[0] for nameFilter in dialog.nameFilters()] == expected
        dialog.close()


def test_path_typed_for_an_optional_file_is_checked(window: MainWindow, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot) -> None:
    option = Option("mates", "The other reads", "the other read of each fragment", metavar="FILE")
    form = SearchForm(replace(READ_ALIGNMENT, options=(option,)), window.inspector, window.devices)
    qtbot.addWidget(form)
    form.file_lists["texts"].add([files[0]])
    form.file_lists["patterns"].add([files[1]])
    line = form.given_files["mates"]
    assert line.line.accessibleName() == "The other reads" and line.line.toolTip() == "The other read of each fragment"
    absent = tmp_path / "none.fastq"
    for wrong, reason in ((absent, f"File not found: {absent}"), (tmp_path, f"{tmp_path.name} is a folder; choose a file")):
        line.line.setText(str(wrong))
        qtbot.waitUntil(lambda reason=reason: form.reason.text() == reason)
    line.prompt()
    dialog = line.findChild(QFileDialog)
    assert dialog is not None and dialog.fileMode() == QFileDialog.FileMode.ExistingFile
    dialog.fileSelected.emit(str(files[1]))
    dialog.close()
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and task.request.options == {"mates": files[1]}


def test_read_alignment_runs_in_the_window_and_is_exported(
    window: MainWindow, form: SearchForm, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot
) -> None:
    form.parameters.set_values({"mode": "local"})
    assert form.parameters.values()["strands"] == "both"
    form.set_project_folder(tmp_path / "project")
    qtbot.waitUntil(form.run_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=SEARCH_MS) as finished:
        click(form.run_button)
    assert finished.args[0].state == "done", finished.args[0].error_report or finished.args[0].error
    view = window.searches["reads"].results
    qtbot.waitUntil(lambda: window.pages.currentWidget() is view)
    settle(view, qtbot)
    assert isinstance(view, ReadsView) and view.alignment.plot.pair is not None and cut_off(view) == []
    window.menus.export.trigger()
    dialog = view.findChild(ExportDialog)
    assert dialog is not None
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.selectNameFilter(next(nameFilter for nameFilter in dialog.nameFilters() if "tsv" in nameFilter))
    with qtbot.waitSignal(window.bridge.finished) as finished:
        dialog.fileSelected.emit(str(tmp_path / "mine"))
        dialog.close()
    assert finished.args[0].state == "done", finished.args[0].error
    lines = (tmp_path / "mine.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[1] for line in lines[1:]] == shown(view.alignments, "pattern")


def test_reads_select_mapping_preset_unless_one_was_selected(form: SearchForm, qtbot: QtBot) -> None:
    assert [input_file.spec.title for input_file in form.inputs.values()] == ["Genome or reference", "Reads"]
    qtbot.waitUntil(lambda: form.presets.box.currentData() == "map-to-genome")
    values = form.parameters.values()
    assert (values["mode"], values["strands"], values["mapping"]) == ("within", "both", "seeds")
    assert form.presets.suited_text.text() == ""
    form.presets.box.setCurrentIndex(form.presets.box.findData("standard"))
    form.presets.box.activated.emit(form.presets.box.currentIndex())
    assert form.parameters.values()["mode"] == "prefix" and "map-to-genome suits these files" in form.presets.suited_text.text()
    form.check()
    assert form.presets.box.currentData() == "standard"


def test_read_alignment_form_reports_conflicting_parameters(
    form: SearchForm, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot
) -> None:
    form.set_project_folder(tmp_path / "project")
    qtbot.waitUntil(form.run_button.isEnabled)
    form.given_files["mates"].line.setText(str(files[1]))
    form.parameters.set_values({"mapping": "auto", "mode": "prefix", "strands": "forward"})
    qtbot.waitUntil(lambda: form.reason.text().startswith("Mates are for reads that are mapped"))
    form.given_files["mates"].line.setText("")
    qtbot.waitUntil(form.run_button.isEnabled)
    form.options["pairs"].setChecked(True)
    qtbot.waitUntil(lambda: form.reason.text().startswith("Align pair by pair needs as many references as reads"))
    assert not form.run_button.isEnabled()
