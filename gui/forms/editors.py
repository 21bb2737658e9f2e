"""Editors of single values: the general ones by the kind of a parameter, the special ones where it declares one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QDateTime, QLocale, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from proteoscope.engine.chemistry.activation import Activation, activation_series
from proteoscope.engine.chemistry.enzymes import ENZYMES
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.parameters import Editor as DeclaredEditor
from proteoscope.engine.parameters import ParameterDescription, list_text, parts_of_list
from proteoscope.engine.sequences.matrices import matrix_names, read_matrix
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.forms.file_survey import SORTS, SearchedRun
from proteoscope.gui.forms.modification_picker import ModificationPicker
from proteoscope.gui.forms.numbers import IntegerBox, NumberBox
from proteoscope.gui.forms.wheel import ChoiceBox
from proteoscope.gui.labels import tip_text

__all__ = ["Editor", "RunEditor", "editor_for"]


class Editor(QWidget):
    """Edits one value.

    Signals
    -------
    changed : the value, or what is wrong with what was typed, may be another now.
    """

    changed = Signal()
    takes_all_room = True
    """Whether it is the wider the better."""

    def value(self) -> Any:
        """The value, as the parameters' model takes it."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Show a value."""
        raise NotImplementedError

    def problem(self) -> str:
        """Why what was typed is no value at all; empty where it is one."""
        return ""

    def _hold(self, *widgets: QWidget, stretch: int = -1) -> None:
        """Lay widgets out in a row; the one numbered `stretch` takes what room there is."""
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        for i, widget in enumerate(widgets):
            row.addWidget(widget, 1 if i == stretch else 0)
        self.takes_all_room = stretch >= 0
        self.setFocusProxy(widgets[0])


class TruthEditor(Editor):
    """Yes or no."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._box = QCheckBox()
        self._box.toggled.connect(self.changed)
        self._hold(self._box)
        self.setMinimumHeight(self.fontMetrics().height() + 10)

    def value(self) -> bool:
        """Whether it is ticked."""
        return self._box.isChecked()

    def set_value(self, value: Any) -> None:
        """Tick it or not."""
        self._box.setChecked(bool(value))


class ChoiceEditor(Editor):
    """One of a few words."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._combo = ChoiceBox()
        self._combo.addItems(list(description.choices))
        self._combo.currentTextChanged.connect(self.changed)
        self._hold(self._combo)

    def value(self) -> str:
        """The word chosen."""
        return self._combo.currentText()

    def set_value(self, value: Any) -> None:
        """Choose a word."""
        self._combo.setCurrentText(str(value))


class EnzymeEditor(Editor):
    """One of the PSI vocabulary's cleavage agents, with its rule."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._combo = ChoiceBox()
        for enzyme in ENZYMES.values():
            self._combo.addItem(enzyme.name)
            self._combo.setItemData(self._combo.count() - 1, f"cuts {enzyme.rule}", Qt.ItemDataRole.ToolTipRole)
        self._combo.currentTextChanged.connect(self._show_rule)
        self._hold(self._combo)

    def value(self) -> str:
        """The PSI name."""
        return self._combo.currentText()

    def set_value(self, value: Any) -> None:
        """Choose an enzyme by its PSI name."""
        self._combo.setCurrentText(str(value))

    def _show_rule(self, name: str) -> None:
        self._combo.setToolTip(f"{name} cuts {ENZYMES[name].rule}")
        self.changed.emit()


class MatrixEditor(Editor):
    """One of the substitution matrices that ship, or a file with one."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._title = description.title
        self._looked_at: tuple[object, ...] = ()
        self._problem = ""
        self._combo = ChoiceBox()
        self._combo.addItems(list(matrix_names()))
        self._combo.currentTextChanged.connect(self.changed)
        self._hold(self._combo, tool_button("open", "Choose a file with a matrix in NCBI's format", self.ask_for_file))

    def value(self) -> str:
        """The name, or the path of the file."""
        return self._combo.currentText()

    def set_value(self, value: Any) -> None:
        """Choose a matrix; a file is added to the choices."""
        if self._combo.findText(str(value)) < 0:
            self._combo.addItem(str(value))
        self._combo.setCurrentText(str(value))

    def problem(self) -> str:
        """Why the file is no matrix. It is small, and read again only when it is another than before."""
        name = self.value()
        if name in matrix_names():
            return ""
        try:
            state = Path(name).stat()
        except OSError:
            # That there is none, the parameters' model says.
            return ""
        looked_at = (name, state.st_mtime_ns, state.st_size)
        if looked_at != self._looked_at:
            self._looked_at, self._problem = looked_at, _matrix_problem(name)
        return self._problem

    def ask_for_file(self) -> None:
        """Open a dialog for a file with a matrix."""
        dialog = QFileDialog(self, self._title)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._take_file)
        dialog.open()

    def _take_file(self, name: str) -> None:
        self.set_value(name)
        # The same file may have been mended.
        self.changed.emit()


def _matrix_problem(path: str) -> str:
    try:
        read_matrix(path)
    except InputError as error:
        place = f", {error.place}" if error.place else ""
        return f"{Path(path).name}{place}: {error.reason}" + (f". {error.remedy}" if error.remedy else "")
    except ParameterError as error:
        return str(error)
    return ""


class RunEditor(Editor):
    """A finished identification of the project that is given, or the newest one. The form says which runs there are."""

    tables = frozenset(("psms", "spectra"))
    """That a run must have."""

    def __init__(self, description: ParameterDescription | None = None) -> None:
        super().__init__()
        self._offered: dict[str, str] | None = None
        self._combo = ChoiceBox()
        self._combo.setSizeAdjustPolicy(ChoiceBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._combo.setMinimumContentsLength(16)
        self._combo.addItem("the newest", "")
        self._combo.currentIndexChanged.connect(self.changed)
        self._hold(self._combo, stretch=0)

    def value(self) -> str:
        """The id of the run; empty for the newest."""
        return str(self._combo.currentData() or "")

    def set_value(self, value: Any) -> None:
        """Choose a run by its id; one that is not known yet is added to the choices."""
        if self._combo.findData(str(value)) < 0:
            self._combo.addItem(str(value), str(value))
        self._combo.setCurrentIndex(self._combo.findData(str(value)))

    def offer(self, runs: Sequence[SearchedRun] | None) -> None:
        """Offer the runs of a project, None where there is none; what is chosen stays."""
        offered = None if runs is None else {run.id: _run_text(run) for run in runs}
        if offered == self._offered:
            return
        chosen, self._offered = self.value(), offered
        self._combo.blockSignals(True)
        self._combo.clear()
        for name, text in {"": "the newest", **(self._offered or {})}.items():
            self._combo.addItem(text, name)
            self._combo.setItemData(self._combo.count() - 1, tip_text(text), Qt.ItemDataRole.ToolTipRole)
        self.set_value(chosen)
        self._combo.blockSignals(False)
        self.changed.emit()

    def problem(self) -> str:
        """Whether the project has no such run, or none at all."""
        if self._offered is None:
            return ""
        if not self._offered:
            return "This project has no finished identification with stored peaks"
        return "" if self.value() in ("", *self._offered) else "This project has no such run"


def _run_text(run: SearchedRun) -> str:
    """As ``identify-0002, 14.03.31 10:25, BSA1.mzML and 2 more``."""
    when = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(run.started.timestamp())), QLocale.FormatType.ShortFormat)
    files = f"{run.files[0]}{f' and {len(run.files) - 1} more' if len(run.files) > 1 else ''}" if run.files else ""
    return ", ".join(part for part in (run.id, when, files) if part)


class IntegerEditor(Editor):
    """A whole number with its unit."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._box = IntegerBox(description.minimum, description.maximum, description.unit, zero=description.zero)
        # Its own guess makes room for two thousand million.
        widest = max("0000000" + self._box.suffix(), description.zero, key=len)
        self._box.setFixedWidth(self._box.fontMetrics().horizontalAdvance(widest) + 36)
        self._box.lineEdit().textChanged.connect(self.changed)
        self._hold(self._box)

    def value(self) -> int:
        """The number."""
        return self._box.value()

    def set_value(self, value: Any) -> None:
        """Show a number."""
        self._box.setValue(int(value))

    def problem(self) -> str:
        """Whether something that is no number stands there."""
        return self._box.problem()


class NumberEditor(Editor):
    """A real number with its unit."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._box = NumberBox(description.minimum, description.maximum, description.unit)
        self._box.lineEdit().textChanged.connect(self.changed)
        self._hold(self._box)

    def value(self) -> float:
        """The number."""
        return self._box.value()

    def set_value(self, value: Any) -> None:
        """Show a number."""
        self._box.setValue(float(value))

    def problem(self) -> str:
        """Whether something that is no number stands there."""
        return self._box.problem()


class ToleranceEditor(Editor):
    """A number, and the unit that makes it a tolerance."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._box = NumberBox(0.0)
        self._unit = ChoiceBox()
        self._unit.addItems(["ppm", "Da"])
        self._box.lineEdit().textChanged.connect(self.changed)
        self._unit.currentTextChanged.connect(self.changed)
        self._hold(self._box, self._unit)

    def value(self) -> str:
        """As ``10 ppm``, with the decimal point whatever the locale."""
        return f"{self._box.value():.15g} {self._unit.currentText()}"

    def set_value(self, value: Any) -> None:
        """Show a tolerance."""
        tolerance = Tolerance.parse(str(value))
        self._box.setValue(tolerance.value)
        self._unit.setCurrentText(tolerance.unit)

    def problem(self) -> str:
        """Whether something that is no number stands there."""
        return self._box.problem()


class TextEditor(Editor):
    """Any text."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._line = QLineEdit()
        self._line.textChanged.connect(self.changed)
        self._hold(self._line, stretch=0)

    def value(self) -> str:
        """The text without blanks around it."""
        return self._line.text().strip()

    def set_value(self, value: Any) -> None:
        """Show a text."""
        self._line.setText(str(value))


class ListEditor(Editor):
    """A few values in one line, separated by commas; one that holds a comma stands in double quotes."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._line = QLineEdit()
        self._line.textChanged.connect(self.changed)
        self._hold(self._line, stretch=0)

    def value(self) -> tuple[str, ...]:
        """The parts, as texts: the model knows what they are."""
        return tuple(parts_of_list(self._line.text()))

    def set_value(self, value: Any) -> None:
        """Show the parts."""
        self._line.setText(list_text(value))


class DescriptorWeightsEditor(Editor):
    """Weights of the four descriptors of a residue, each in a box with its name."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._boxes = {name: NumberBox(0.0, 10.0) for name in ("Lengths", "Angles", "Secondary structure", "Residues")}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        for row, (name, box) in enumerate(self._boxes.items()):
            label = QLabel(name)
            label.setBuddy(box)
            box.setAccessibleName(f"{description.title}: {name.lower()}")
            box.setStepType(NumberBox.StepType.DefaultStepType)
            box.setSingleStep(0.5)
            box.setFixedWidth(box.fontMetrics().horizontalAdvance("00.000") + 30)
            box.lineEdit().textChanged.connect(self.changed)
            grid.addWidget(label, row, 1)
            grid.addWidget(box, row, 0)
        self.takes_all_room = False
        self.setFocusProxy(next(iter(self._boxes.values())))

    def value(self) -> tuple[float, ...]:
        """The weights in their order."""
        return tuple(box.value() for box in self._boxes.values())

    def set_value(self, value: Any) -> None:
        """Show weights."""
        for box, one in zip(self._boxes.values(), value, strict=True):
            box.setValue(float(one))

    def problem(self) -> str:
        """Whether something that is no number stands in one."""
        return next((f"{name}: {problem}" for name, box in self._boxes.items() if (problem := box.problem())), "")


class IonSeriesEditor(Editor):
    """Series of fragment ions: those of each spectrum's activation, or some of six."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._by_activation = QCheckBox("by activation")
        self._by_activation.setAccessibleName("Ions by activation")
        self._by_activation.setToolTip(
            "Compare the ions that the activation of each spectrum makes; b and y where the file does not name it"
        )
        self._by_activation.toggled.connect(self._enable)
        self._by_activation.toggled.connect(self.changed)
        self._boxes = {series: QCheckBox(series) for series in "abcxyz"}
        for series, box in self._boxes.items():
            box.setAccessibleName(f"{series} ions")
            box.setToolTip(f"Compare {series} ions")
            box.toggled.connect(self.changed)
        self._hold(self._by_activation, *self._boxes.values())
        self.setMinimumHeight(self.fontMetrics().height() + 10)

    def value(self) -> str:
        """The letters of those ticked, or the word for all by their activation."""
        if self._by_activation.isChecked():
            return BY_ACTIVATION
        return "".join(series for series, box in self._boxes.items() if box.isChecked())

    def set_value(self, value: Any) -> None:
        """Tick the series whose letters are in the text; of the word for all by their activation those of most spectra."""
        is_by_activation = value == BY_ACTIVATION
        self._by_activation.setChecked(is_by_activation)
        for series, box in self._boxes.items():
            box.setChecked(series in (activation_series(Activation.UNKNOWN) if is_by_activation else str(value)))
        self._enable()

    def _enable(self) -> None:
        for box in self._boxes.values():
            box.setEnabled(not self._by_activation.isChecked())

    def problem(self) -> str:
        """Whether none is ticked."""
        return "" if self.value() else "Expected at least one series"


class _Lines(QListWidget):
    """A short list that is as high as its content, within reason."""

    def __init__(self) -> None:
        super().__init__()
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        for signal in (self.model().rowsInserted, self.model().rowsRemoved, self.model().modelReset):
            signal.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        row = self.sizeHintForRow(0) if self.count() else self.fontMetrics().height() + 4
        return QSize(180, row * min(max(self.count(), 2), 6) + 2 * self.frameWidth() + 2)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return QSize(100, self.sizeHint().height())


class _LinesEditor(Editor):
    """Values in a list, one on each line, which can be added, typed over and removed."""

    def __init__(self, add_tip: str) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.lines = _Lines()
        self.lines.itemChanged.connect(self.changed)
        self.lines.itemSelectionChanged.connect(self._enable)
        self.add_button = tool_button("add", add_tip, self.add)
        self.remove_button = tool_button("remove", "Remove what is selected", self.remove_selected)
        buttons = QVBoxLayout()
        buttons.setSpacing(4)
        buttons.addWidget(self.add_button)
        buttons.addWidget(self.remove_button)
        buttons.addStretch(1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.lines, 1, Qt.AlignmentFlag.AlignTop)
        row.addLayout(buttons)
        self.setFocusProxy(self.lines)
        self._enable()

    def value(self) -> tuple[str, ...]:
        """The lines that hold something."""
        texts = (self.lines.item(i).text().strip() for i in range(self.lines.count()))
        return tuple(text for text in texts if text)

    def set_value(self, value: Any) -> None:
        """Show values, each on its line."""
        if self.value() == tuple(value):
            return
        self.lines.clear()
        for text in value:
            self._append(text)
        self.changed.emit()

    def add(self) -> None:
        """Ask for more."""
        raise NotImplementedError

    def append(self, texts: list[str]) -> None:
        """Add lines; what is there already stays once."""
        for text in texts:
            if text not in self.value():
                self._append(text)
        self.changed.emit()

    def remove_selected(self) -> None:
        """Take the selected lines out."""
        for item in self.lines.selectedItems():
            self.lines.takeItem(self.lines.row(item))
        self.changed.emit()

    def _append(self, text: str) -> None:
        item = QListWidgetItem(text)
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
        item.setToolTip(tip_text(text))
        self.lines.addItem(item)

    def _enable(self) -> None:
        self.remove_button.setEnabled(bool(self.lines.selectedItems()))


class ModificationsEditor(_LinesEditor):
    """Modifications, chosen from Unimod or typed."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__("Choose from Unimod")
        self._title = description.title

    def add(self) -> None:
        """Open the picker."""
        picker = ModificationPicker(self._title, self)
        picker.chosen.connect(self.append)
        picker.open()


class FilesEditor(_LinesEditor):
    """FASTA files."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__("Choose files")
        self._title = description.title

    def add(self) -> None:
        """Ask for files."""
        dialog = QFileDialog(self, self._title)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters([SORTS["proteins"].name_filter, "All files (*)"])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(self.append)
        dialog.open()

    def problem(self) -> str:
        """Whether one of them is not there."""
        missing = [text for text in self.value() if not Path(text).is_file()]
        return f"There is no file {missing[0]}" if missing else ""


_DECLARED: dict[DeclaredEditor, Callable[[ParameterDescription], Editor]] = {
    "enzyme": EnzymeEditor,
    "matrix": MatrixEditor,
    "tolerance": ToleranceEditor,
    "ion series": IonSeriesEditor,
    "modifications": ModificationsEditor,
    "protein files": FilesEditor,
    "descriptor weights": DescriptorWeightsEditor,
    "run": RunEditor,
}
"""By what the parameter declares."""

_BY_KIND: dict[str, Callable[[ParameterDescription], Editor]] = {
    "truth": TruthEditor,
    "choice": ChoiceEditor,
    "integer": IntegerEditor,
    "number": NumberEditor,
    "text": TextEditor,
    "list": ListEditor,
}


def editor_for(description: ParameterDescription) -> Editor:
    """A new editor for a parameter: the one that it declares, else the one of its kind."""
    make = _DECLARED[description.editor] if description.editor else _BY_KIND[description.kind]
    return make(description)
