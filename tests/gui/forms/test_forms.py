"""Tests of the form built from the parameter model, with real input events: typing, choosing, resetting, saving."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QCheckBox, QComboBox, QFileDialog, QLineEdit, QListWidget, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.chemistry.enzymes import ENZYMES
from proteoscope.engine.chemistry.modifications import parse_modification, unimod
from proteoscope.engine.identification.entry import IDENTIFICATION
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.parameters import SearchParameters, parameter, preset_names, read_preset
from proteoscope.engine.searches import SEARCHES
from proteoscope.gui.forms.editors import ModificationsEditor
from proteoscope.gui.forms.file_inspection import FileInspector, file_kind
from proteoscope.gui.forms.file_list import FileList
from proteoscope.gui.forms.modification_picker import ModificationPicker
from proteoscope.gui.forms.numbers import IntegerBox, NumberBox, number_text
from proteoscope.gui.forms.parameter_form import ParameterForm
from proteoscope.gui.forms.preset_files import preset_text, write_preset
from proteoscope.gui.forms.sections import Section
from proteoscope.gui.theme import Theme
from tests.effort import lines_run


@pytest.fixture
def form(qtbot: QtBot, theme: Theme) -> ParameterForm:
    form = ParameterForm(IdentificationParameters)
    qtbot.addWidget(form)
    form.resize(1000, 900)
    form.show()
    return form


@pytest.fixture
def german() -> Iterator[None]:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    yield
    QLocale.setDefault(before)


def box_of(form: ParameterForm, name: str, kind: type[Any]) -> Any:
    return form.fields[name].editor.findChild(kind)


def type_over(widget: QWidget, text: str) -> None:
    line = widget if isinstance(widget, QLineEdit) else widget.findChild(QLineEdit)
    line.selectAll()
    QTest.keyClicks(line, text)


def test_every_parameter_has_a_field_with_title_help_and_value(form: ParameterForm) -> None:
    defaults = IdentificationParameters()
    assert list(form.fields) == list(IdentificationParameters.model_fields)
    for described in IdentificationParameters.describe():
        field = form.fields[described.name]
        assert field.label.text() == described.title
        assert described.name in field.label.toolTip()
        assert field.editor.accessibleName() == described.title and field.editor.accessibleDescription() == described.help
    assert form.parameters == defaults
    assert form.changed_names == [] and form.problems == {}


def test_parameter_types_have_the_expected_widgets(form: ParameterForm) -> None:
    assert isinstance(box_of(form, "deisotope", QCheckBox), QCheckBox)
    assert box_of(form, "specificity", QComboBox).count() == 3
    assert box_of(form, "minimum_length", IntegerBox).suffix() == " residues"
    assert box_of(form, "window_width", NumberBox).suffix() == " Th"
    enzymes = box_of(form, "enzyme", QComboBox)
    assert [enzymes.itemText(i) for i in range(enzymes.count())] == list(ENZYMES)
    assert isinstance(form.fields["variable_modifications"].editor, ModificationsEditor)


def test_parameter_form_is_built_from_any_parameter_model(qtbot: QtBot, theme: Theme) -> None:
    class OtherParameters(SearchParameters):
        cutoff: float = parameter(0.5, gt=0, lt=1, title="Cutoff", group="First", help="Where to cut.")
        method: Literal["fast", "good"] = parameter("good", title="Method", group="First", help="How.")
        remark: str = parameter("none", min_length=2, title="Remark", group="Second", advanced=True, help="What to remember.")

    form = ParameterForm(OtherParameters)
    qtbot.addWidget(form)
    form.set_values({"cutoff": 1.0, "remark": "x"})
    assert form.parameters is None
    assert form.problems == {"cutoff": "Expected less than 1", "remark": "Expected at least 2 characters"}
    form.reset_all()
    assert form.parameters == OtherParameters()


@pytest.mark.parametrize("widths", [(1000,), (600,), (1000, 600), (600, 1000, 600, 1000)])
def test_form_sections_keep_their_order_without_empty_space(form: ParameterForm, qtbot: QtBot, widths: tuple[int, ...]) -> None:
    for width in widths:
        form.resize(width, 900)
        qtbot.wait(20)
    cards = [card for card in form.findChildren(Section) if card.isVisible()]
    columns = {x: [card for card in cards if card.x() == x] for x in sorted({card.x() for card in cards})}
    assert len(columns) == (2 if widths[-1] == 1000 else 1)
    groups = [card.title.text() for column in columns.values() for card in sorted(column, key=lambda card: card.y())]
    assert groups == list(dict.fromkeys(parameter.group for parameter in IdentificationParameters.describe() if not parameter.advanced))
    for column in columns.values():
        column.sort(key=lambda card: card.y())
        assert column[0].y() == 0
        assert {below.y() - above.geometry().bottom() - 1 for above, below in pairwise(column)} <= {12}


def test_advanced_parameters_are_hidden_until_unfolded(form: ParameterForm) -> None:
    assert form.fields["missed_cleavages"].frame.isVisible()
    assert not form.fields["ksdp_power"].frame.isVisible()
    QTest.mouseClick(form.fold_button, Qt.MouseButton.LeftButton)
    assert form.fields["ksdp_power"].frame.isVisible()
    QTest.mouseClick(form.fold_button, Qt.MouseButton.LeftButton)
    assert not form.fields["ksdp_power"].frame.isVisible()


def test_invalid_value_is_marked_at_the_field(form: ParameterForm) -> None:
    field = form.fields["missed_cleavages"]
    type_over(box_of(form, "missed_cleavages", IntegerBox), "77")
    assert form.parameters is None
    assert field.frame.is_wrong and field.message.isVisible()
    assert field.message.text() == "Expected at most 10"
    type_over(box_of(form, "missed_cleavages", IntegerBox), "3")
    assert not field.frame.is_wrong and not field.message.isVisible()
    assert form.parameters is not None and form.parameters.missed_cleavages == 3  # type: ignore[attr-defined]


def test_empty_value_of_a_parameter_is_marked(form: ParameterForm) -> None:
    line = box_of(form, "fdr", NumberBox).findChild(QLineEdit)
    line.selectAll()
    QTest.keyClick(line, Qt.Key.Key_Delete)
    assert form.problems["fdr"].startswith("Expected a number")
    assert form.parameters is None


def test_invalid_value_unfolds_advanced_parameters(form: ParameterForm) -> None:
    form.set_values({"ksdp_power": 99.0})
    assert form.fields["ksdp_power"].message.isVisible()
    assert form.problems == {"ksdp_power": "Expected at most 6"}


def test_conflict_of_two_parameters_is_marked_at_both_fields(form: ParameterForm) -> None:
    form.set_values({"minimum_length": 30, "maximum_length": 20})
    assert set(form.problems) == {"minimum_length", "maximum_length"}
    assert "Minimum peptide length" in form.problems["minimum_length"]


def test_arrow_keys_keep_a_number_within_the_limits(form: ParameterForm) -> None:
    box = box_of(form, "missed_cleavages", IntegerBox)
    for _ in range(30):
        QTest.keyClick(box, Qt.Key.Key_Up)
    assert box.value() == 10
    for _ in range(30):
        QTest.keyClick(box, Qt.Key.Key_Down)
    assert box.value() == 0


def test_changed_parameters_are_marked_and_can_be_reset(form: ParameterForm) -> None:
    field = form.fields["missed_cleavages"]
    assert not field.label.font().bold() and not field.reset_button.isVisible()
    type_over(box_of(form, "missed_cleavages", IntegerBox), "1")
    form.set_values({"enzyme": "Lys-C", "deisotope": False})
    assert field.label.font().bold() and field.reset_button.isVisible()
    assert form.changed_names == ["enzyme", "missed_cleavages", "deisotope"]
    assert "1 changed" in form.fold_button.text()
    QTest.mouseClick(field.reset_button, Qt.MouseButton.LeftButton)
    assert form.changed_names == ["enzyme", "deisotope"]
    assert not field.label.font().bold() and not field.reset_button.isVisible()
    QTest.mouseClick(form.reset_button, Qt.MouseButton.LeftButton)
    assert form.changed_names == [] and form.parameters == IdentificationParameters()


@pytest.mark.parametrize("preset", preset_names("identify"))
def test_presets_are_unchanged_by_the_form(form: ParameterForm, preset: str) -> None:
    wanted = IdentificationParameters.checked(read_preset("identify", preset))
    form.set_baseline(wanted.model_dump())
    assert form.parameters == wanted
    assert form.changed_names == []


@pytest.mark.parametrize("preset", preset_names("identify"))
def test_presets_are_unchanged_by_saving_and_loading(preset: str, tmp_path: Path) -> None:
    wanted = IdentificationParameters.checked(read_preset("identify", preset))
    write_preset(tmp_path / "mine.toml", wanted.model_dump(), 'Mine, "quoted" \\ and\nin two lines \x7f')
    assert IdentificationParameters.checked(read_preset("identify", str(tmp_path / "mine.toml"))) == wanted
    text = (tmp_path / "mine.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["description"] == 'Mine, "quoted" \\ and\nin two lines \x7f'


def test_preset_files_have_a_decimal_point_in_any_locale(german: None) -> None:
    assert "fdr = 0.05" in preset_text({"fdr": 0.05}, "")


def test_number_boxes_use_the_decimal_separator_of_the_locale(german: None, form: ParameterForm) -> None:
    box = box_of(form, "fdr", NumberBox)
    assert box.text() == "0,01"
    type_over(box, "0,025")
    assert form.parameters is not None and form.parameters.fdr == 0.025  # type: ignore[attr-defined]
    tolerance = box_of(form, "fragment_tolerance", NumberBox)
    type_over(tolerance, "0,5")
    box_of(form, "fragment_tolerance", QComboBox).setCurrentText("Da")
    assert str(form.parameters.fragment_tolerance) == "0.5 Da"  # type: ignore[attr-defined]
    form.set_values({"fdr": 0.75})
    assert form.problems["fdr"] == "Expected at most 0,5"


def test_number_box_reads_a_decimal_point_in_a_locale_with_comma(german: None, form: ParameterForm) -> None:
    type_over(box_of(form, "fdr", NumberBox), "0.05")
    assert form.parameters is not None and form.parameters.fdr == 0.05  # type: ignore[attr-defined]


def test_number_box_rejects_an_ambiguous_thousands_point(german: None, form: ParameterForm) -> None:
    type_over(box_of(form, "maximum_mass", NumberBox), "1.500")
    assert form.problems["maximum_mass"].startswith("Expected a number")


@pytest.mark.parametrize("text", ["0.02", "6000", "0.3333333333333333", "1e-05", "123456.789012"])
def test_number_box_shows_and_returns_the_exact_value(qtbot: QtBot, theme: Theme, text: str) -> None:
    box = NumberBox()
    qtbot.addWidget(box)
    box.setValue(float(text))
    assert box.value() == pytest.approx(float(text), abs=1e-12)
    assert QLocale.c().toDouble(box.text())[0] == pytest.approx(float(text), abs=1e-12)


def test_number_box_steps_leave_no_rounding_digits(qtbot: QtBot, theme: Theme) -> None:
    box = NumberBox(0.0, 1.0)
    qtbot.addWidget(box)
    box.setValue(0.1)
    for _ in range(5):
        box.stepUp()
    assert len(box.text()) <= 4


@pytest.mark.parametrize(
    ("kind", "language", "typed"),
    [
        (NumberBox, "English", "0,05"),
        (NumberBox, "English", "1,5"),
        (NumberBox, "German", "1.500"),
        (NumberBox, "German", "1.000,5"),
        (NumberBox, "English", "1e"),
        (IntegerBox, "English", "1,5"),
        (IntegerBox, "English", "1.5"),
        (IntegerBox, "German", "1.5"),
        (IntegerBox, "German", "1,5"),
        (IntegerBox, "English", "1e3"),
    ],
)
@pytest.mark.parametrize("leave", [Qt.Key.Key_Return, Qt.Key.Key_Tab])
def test_number_box_shows_an_invalid_number_until_corrected(
    qtbot: QtBot, theme: Theme, kind: type[Any], language: str, typed: str, leave: Qt.Key
) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language[language]))
    try:
        page = QWidget()
        box, other = kind(0, 100, "Th", page), kind(parent=page)
        qtbot.addWidget(page)
        other.move(0, 40)
        box.setKeyboardTracking(False)
        box.setValue(7)
        with qtbot.waitActive(page):
            page.show()
            page.activateWindow()
        box.setFocus()
        type_over(box, typed)
        assert box.problem().startswith("Expected a ")
        QTest.keyClick(box, leave)
        assert other.hasFocus() == (leave == Qt.Key.Key_Tab)
        assert box.lineEdit().text().removesuffix(" Th") == typed and box.value() == 7
        assert box.problem().startswith("Expected a ")
        other.setFocus()
        box.stepUp()
        assert box.problem() == "" and box.text() == f"{number_text(box.value())} Th" and 7 <= box.value() <= 8
    finally:
        QLocale.setDefault(before)


@pytest.mark.parametrize(("text", "value"), [("0.001", 0.001), ("0.5", 0.5), ("-0.125", -0.125), ("0,001", 0.001)])
def test_number_box_reads_a_point_after_leading_zero_as_decimal(german: None, qtbot: QtBot, theme: Theme, text: str, value: float) -> None:
    box = NumberBox()
    qtbot.addWidget(box)
    type_over(box, text)
    assert box.problem() == "" and box.value() == value


@pytest.mark.parametrize(("name", "value"), [("missed_cleavages", 3), ("window_width", 101.0)])
def test_arrow_keys_in_a_number_box_change_the_parameter(form: ParameterForm, name: str, value: float) -> None:
    box = form.fields[name].editor.findChild(QAbstractSpinBox)
    assert box is not None
    form.set_values({name: value - 1})
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert box.value() > value - 1
    assert getattr(form.parameters, name) == box.value() and name in form.changed_names
    # An arrow at the limit corrects the text, although the value stays.
    form.set_values({name: 0})
    type_over(box, "0,,5")
    assert name in form.problems
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert "number" not in form.problems.get(name, "")


def test_list_field_accepts_the_values_that_the_model_accepts(form: ParameterForm) -> None:
    line = box_of(form, "isotope_errors", QLineEdit)
    type_over(line, "0, 1; 2")
    assert form.parameters is not None and form.parameters.isotope_errors == (0, 1, 2)  # type: ignore[attr-defined]
    type_over(line, "0, x")
    assert form.problems["isotope_errors"] == "Expected whole numbers such as 0, 1, 2"
    type_over(line, "9")
    assert "from -3 to 5" in form.problems["isotope_errors"]


def test_ion_series_are_selected_by_checkboxes(form: ParameterForm) -> None:
    boxes = {box.text(): box for box in form.fields["ion_series"].editor.findChildren(QCheckBox)}
    assert [name for name, box in boxes.items() if box.isChecked()] == ["by activation", "b", "y"] and not boxes["c"].isEnabled()
    assert form.parameters is not None and form.parameters.ion_series == "activation"  # type: ignore[attr-defined]
    boxes["by activation"].click()
    boxes["c"].click()
    boxes["b"].click()
    assert form.parameters is not None and form.parameters.ion_series == "cy"  # type: ignore[attr-defined]
    boxes["c"].click()
    boxes["y"].click()
    assert form.problems["ion_series"] == "Select at least one ion series"


def test_modifications_in_the_form_can_be_replaced_and_removed(form: ParameterForm, qtbot: QtBot) -> None:
    lines = box_of(form, "variable_modifications", QListWidget)
    lines.item(0).setText("Oxydation (M)")
    assert "Oxidation" in form.problems["variable_modifications"]
    lines.item(0).setText("phospho (yts)")
    assert form.parameters is not None
    assert form.parameters.variable_modifications == ("Phospho (STY)",)  # type: ignore[attr-defined]
    lines.item(0).setSelected(True)
    QTest.mouseClick(form.fields["variable_modifications"].editor.remove_button, Qt.MouseButton.LeftButton)  # type: ignore[attr-defined]
    assert form.parameters.variable_modifications == ()  # type: ignore[attr-defined]


@pytest.fixture
def picker(form: ParameterForm, qtbot: QtBot) -> ModificationPicker:
    editor = form.fields["variable_modifications"].editor
    assert isinstance(editor, ModificationsEditor)
    QTest.mouseClick(editor.add_button, Qt.MouseButton.LeftButton)
    picker = editor.findChild(ModificationPicker)
    assert picker is not None
    return picker


def rows(picker: ModificationPicker) -> list[str]:
    return [row.text for row in picker.found.rows]


def search(picker: ModificationPicker, qtbot: QtBot, name: str = "", site: str = "", mass: str = "") -> list[str]:
    for line, text in ((picker.name, name), (picker.site, site), (picker.mass, mass)):
        line.clear()
        QTest.keyClicks(line, text)
    qtbot.wait(5)
    return rows(picker)


def test_modification_picker_searches_by_name_site_and_mass(picker: ModificationPicker, qtbot: QtBot) -> None:
    assert search(picker, qtbot, "oxid")[0].startswith("Oxidation (")
    assert set(search(picker, qtbot, "phospho", "S")) >= {"Phospho (S)"}
    assert all(text.endswith("(S)") for text in rows(picker))
    assert search(picker, qtbot, mass="79.966")[:3] == ["Phospho (S)", "Phospho (T)", "Phospho (Y)"]
    assert search(picker, qtbot, "UNIMOD:4")[0] == "Carbamidomethyl (C)"
    assert search(picker, qtbot, "no such thing") == []
    assert not picker.add_button.isEnabled()
    search(picker, qtbot, site="7")
    assert picker.message.isVisible() and "is not a site" in picker.message.text()


def test_modification_picker_lists_only_valid_modifications(picker: ModificationPicker, qtbot: QtBot) -> None:
    for text in dict.fromkeys(search(picker, qtbot, "")):
        assert str(parse_modification(text))


def test_modification_picker_searches_fast_enough_for_typing(picker: ModificationPicker) -> None:
    for name, site, mass in (("", "", ""), ("o", "", ""), ("ox", "", ""), ("a", "K", ""), ("", "", "15.99"), ("glyc", "", "")):
        picker.name.setText(name)
        picker.site.setText(site)
        picker.mass.setText(mass)
        assert lines_run(picker.search) < 60 * len(unimod()), "a few lines of Python for each entry and its sites"


def test_modifications_selected_in_the_picker_appear_in_the_form(picker: ModificationPicker, form: ParameterForm, qtbot: QtBot) -> None:
    search(picker, qtbot, "acetyl", "Protein N-term")
    picker.table.selectRow(rows(picker).index("Acetyl (Protein N-term)"))
    QTest.mouseClick(picker.add_button, Qt.MouseButton.LeftButton)
    assert form.parameters is not None
    assert form.parameters.variable_modifications == ("Oxidation (M)", "Acetyl (Protein N-term)")  # type: ignore[attr-defined]


def test_custom_modification_is_validated_and_added(picker: ModificationPicker, form: ParameterForm, qtbot: QtBot) -> None:
    QTest.keyClicks(picker.own, "Label:+8.0142")
    assert not picker.add_button.isEnabled() and "expected a name and a site" in picker.message.text()
    QTest.keyClicks(picker.own, " (K)")
    assert picker.add_button.isEnabled() and not picker.message.isVisible()
    QTest.mouseClick(picker.add_button, Qt.MouseButton.LeftButton)
    assert "Label:+8.0142 (K)" in form.values()["variable_modifications"]


def test_modification_picker_reads_masses_in_the_locale_format(german: None, picker: ModificationPicker, qtbot: QtBot) -> None:
    assert search(picker, qtbot, mass="79,966")[0] == "Phospho (S)"
    assert picker.found.data(picker.found.index(0, 2)) == "+79,966331"


@pytest.mark.skipif(os.name != "posix", reason="a script replaces the converter")
def test_vendor_run_is_accepted_if_a_converter_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run.d"
    run.mkdir()
    (run / "analysis.tdf").write_bytes(bytes(70_000))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("proteoscope.engine.formats.vendor.find_spec", lambda name: None)
    assert "Bruker timsTOF" in file_kind(run).problem and "msconvert" in file_kind(run).problem
    (tmp_path / "msconvert").write_text("#!/bin/sh\n")
    (tmp_path / "msconvert").chmod(0o755)
    file = file_kind(run)
    assert (file.content, file.format, file.size) == ("spectra", "Bruker timsTOF run, by msconvert", 70_000)


def test_file_categories_are_recognised_by_content(tmp_path: Path, sample_data: Path) -> None:
    spectra = file_kind(sample_data / "BSA1.mzML.gz")
    assert (spectra.content, spectra.format) == ("spectra", "mzML")
    assert file_kind(sample_data / "18Protein_SoCe_Tr_detergents_trace.fasta.gz").content == "proteins"
    (tmp_path / "run.raw").write_bytes(b"\x01\xa1F\0i\0n\0n\0i\0g\0a\0n\0" + bytes(64))
    assert "Thermo raw" in file_kind(tmp_path / "run.raw").problem
    assert "no such file" in file_kind(tmp_path / "absent.mgf").problem


def test_folders_added_to_a_form_are_searched_for_matching_files(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.MGF").write_text("BEGIN IONS\nPEPMASS=500\n100 1\nEND IONS\n", encoding="utf-8")
    (tmp_path / "deep" / "b.fasta").write_text(">P\nPEPTIDE\n", encoding="utf-8")
    (tmp_path / "deep" / "notes.txt").write_text("nothing", encoding="utf-8")
    survey, answers = FileInspector(), []
    survey.all_within([tmp_path], answers.append)
    qtbot.waitUntil(lambda: bool(answers))
    survey.close()
    assert [file.path.name for file in answers[0].of_type("spectra")] == ["a.MGF"]
    assert [file.path.name for file in answers[0].of_type("proteins")] == ["b.fasta"]
    assert [file.path.name for file in answers[0].left_out] == ["notes.txt"]


def test_files_without_suffixes_are_recognised_by_content(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    folder = tmp_path / "from the instrument"
    folder.mkdir()
    for name in ("run_1", "run_2.peaks"):
        (folder / name).write_text("BEGIN IONS\nPEPMASS=500\n100 1\nEND IONS\n", encoding="utf-8")
    (folder / "proteins").write_text(">P\nPEPTIDE\n", encoding="utf-8")
    (folder / "log").write_text("nothing", encoding="utf-8")
    survey = FileInspector()
    files = FileList(IDENTIFICATION.inputs[0], survey)
    qtbot.addWidget(files)
    files.show()
    files.prompt_for_folder()
    dialog = files.findChild(QFileDialog)
    dialog.fileSelected.emit(str(folder))
    dialog.close()
    qtbot.waitUntil(lambda: bool(files.left_out.text()))
    qtbot.waitUntil(lambda: files.is_examined)
    assert [path.name for path in files.paths] == ["run_1", "run_2.peaks"] and files.problem() == ""
    assert files.left_out.text() == "from the instrument: left out proteins, log" and files.left_out.isVisible()
    survey.close()


def test_form_reports_a_database_without_sequences(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    empty, full = tmp_path / "empty.fasta", tmp_path / "full.fasta"
    empty.write_text(">a\n>b\n\n", encoding="utf-8")
    full.write_text(">a\nPEPTIDE\n", encoding="utf-8")
    survey = FileInspector()
    files = FileList(IDENTIFICATION.inputs[1], survey)
    qtbot.addWidget(files)
    files.add([empty])
    qtbot.waitUntil(lambda: bool(files.problem()))
    assert files.problem() == "empty.fasta contains names without sequences; choose a file with sequences"
    qtbot.waitUntil(lambda: files.message.text() == files.problem())
    files.add([full])
    qtbot.waitUntil(lambda: full in files.counts and files.problem() == "")
    survey.close()


def test_decoy_box_shows_zero_as_automatic(qtbot: QtBot, theme: Theme) -> None:
    form = ParameterForm(LibrarySearchParameters)
    qtbot.addWidget(form)
    form.unfold()
    form.show()
    box = box_of(form, "decoys_per_peptide", IntegerBox)
    assert box.text() == "automatic" and form.parameters is not None and form.parameters.decoys_per_peptide == 0
    type_over(box, "4")
    assert form.parameters is not None and form.parameters.decoys_per_peptide == 4
    type_over(box, "99")
    assert form.problems == {"decoys_per_peptide": "Expected at most 40"}
    type_over(box, "0")
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert box.text() == "automatic" and not form.problems
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert box.value() == 1
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert box.text() == "automatic" and form.parameters is not None and form.parameters.decoys_per_peptide == 0


def test_parameter_titles_of_limits_use_minimum_and_maximum() -> None:
    words = ("Most", "Fewest", "Least", "Largest", "Smallest", "Longest", "Shortest", "Lowest", "Highest")
    titles = {parameter.title for search in SEARCHES for parameter in search.model.describe()}
    assert not [title for title in titles if title.startswith(words)]
    assert {"Maximum number of gaps", "Minimum number of matched ions", "Maximum E-value", "Minimum peptide length"} <= titles
