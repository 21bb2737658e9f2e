"""Tests of the form of every registered search: it opens, recognises its files, and explains which files do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pytestqt.qtbot import QtBot

from proteoscope.engine.entry import FileContent
from proteoscope.engine.searches import SEARCHES
from proteoscope.gui.forms.file_inspection import FILE_CATEGORIES, file_kind
from proteoscope.gui.forms.sections import Columns, Section
from proteoscope.gui.window import MainWindow

_FILES = {
    "run.mgf": "BEGIN IONS\nTITLE=a\nPEPMASS=500.2\n100.1 5\n200.2 6\n300.3 7\nEND IONS\n",
    "proteins.fasta": ">one\nMKWVTFISLLLLFSSAYS\n",
    "reads.fastq": "@one\nACGTACGT\n+\nIIIIIIII\n",
    "library.msp": "Name: PEPTIDEK/2\nMW: 928.5\nComment: Parent=464.25\nNum peaks: 2\n100.1\t5\n200.2\t6\n",
    "found.psms.tsv": "PSMId\tscore\tq-value\tposterior_error_prob\tpeptide\tproteinIds\na_1_2_1\t1.0\t0.01\t0.01\t-.PEPTIDEK.-\tP1\n",
    "chain.pdb": "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  0.00           C\nEND\n",
    "notes.txt": "some words\n",
}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name, text in _FILES.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in _FILES]


def test_every_file_category_has_a_title_hint_and_icon() -> None:
    assert set(FILE_CATEGORIES) == set(get_args(FileContent))
    assert all(category.title and category.held and category.hint and category.icon for category in FILE_CATEGORIES.values())


def test_example_files_are_recognised_as_different_categories(files: list[Path]) -> None:
    contents = [file_kind(path).content for path in files]
    assert contents == ["spectra", "proteins", "reads", "libraries", "identifications", "structures", None]


@pytest.mark.parametrize("kind", [search.kind for search in SEARCHES])
def test_form_of_each_search_explains_why_a_file_cannot_be_used(window: MainWindow, files: list[Path], qtbot: QtBot, kind: str) -> None:
    window.start_page.new_buttons[kind].click()
    form = window.form
    assert form.search.kind == kind and form.isVisible()
    for file_list in form.file_lists.values():
        assert file_list.lines._empty_text.endswith(" (optional)") == file_list._spec.is_optional
    for file_list in form.file_lists.values():
        file_list.add(files)
    qtbot.waitUntil(lambda: all(file_list.is_examined for file_list in form.file_lists.values()))
    for file_list in form.file_lists.values():
        for path in file_list.paths:
            file = file_kind(path)
            fits = file.content is not None and file.content in file_list._spec.contents
            problem = file_list._problem_of(file)
            assert (problem == "") == fits, (path.name, problem)
            assert fits or path.name in problem
    assert form.validation_error() != ""


def test_message_counts_the_other_files_that_cannot_be_used(window: MainWindow, files: list[Path], qtbot: QtBot) -> None:
    window.new_search("identify")
    spectra = window.form.file_lists["spectra"]
    spectra.add([path for path in files if path.name in ("run.mgf", "proteins.fasta", "notes.txt", "chain.pdb")])
    qtbot.waitUntil(lambda: spectra.is_examined)
    qtbot.waitUntil(lambda: spectra.message.text().endswith(" (2 more files cannot be used)"))
    for row in (1, 2):
        spectra.lines.item(row).setSelected(True)
    spectra.remove_selected()
    assert spectra.message.text() == spectra.problem() != ""


def test_sections_of_every_form_have_the_same_width(window: MainWindow, qtbot: QtBot) -> None:
    window.resize(1280, 800)
    for search in SEARCHES:
        window.new_search(search.kind)
        window.form.parameters.unfold()
        qtbot.wait(20)
        for columns in window.form.findChildren(Columns):
            widths = {card.width() for card in columns.findChildren(Section) if card.isVisible()}
            assert max(widths) - min(widths) <= 1, (search.kind, widths)
