"""Editors of parameter values. A parameter declares its editor, or gets the editor of its type."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QDateTime, QLocale, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QGridLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QWidget,
)

from proteoscope.engine.chemistry.activation import Activation, activation_series
from proteoscope.engine.chemistry.enzymes import ENZYMES
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.parameters import Editor as DeclaredEditor
from proteoscope.engine.parameters import ParameterDescription, list_text, split_list
from proteoscope.engine.sequences.matrices import matrix_names, read_matrix
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.file_dialogs import prompt_for_path, prompt_for_paths
from proteoscope.gui.forms.file_inspection import FILE_CATEGORIES, SearchedRun
from proteoscope.gui.forms.modification_picker import ModificationPicker
from proteoscope.gui.forms.numbers import IntegerBox, NumberBox
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.labels import described, field_label, tip_text
from proteoscope.gui.layouts import STRETCH, in_column, in_row


class Editor(QWidget):
    """Base class of editors of one value.

    Signals
    -------
    changed
        The value, or the error about the typed text, may have changed.
    """

    changed = Signal()
    takes_full_width = True
    """True if the editor should be as wide as possible."""

    def value(self) -> Any:
        """Return the value in a form that the class of parameters accepts."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Show a value."""
        raise NotImplementedError

    def problem(self) -> str:
        """Return the reason why the typed text is not a valid value, or ''."""
        return ""

    def _hold(self, *widgets: QWidget, stretch: int = -1) -> None:
        """Place widgets in a row. The widget at index `stretch` takes the free space."""
        self._row = in_row(on=self, spacing=6)
        for i, widget in enumerate(widgets):
            self._row.addWidget(widget, 1 if i == stretch else 0)
        self.takes_full_width = stretch >= 0
        self.setFocusProxy(widgets[0])


class BoolEditor(Editor):
    """Editor of a boolean."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._box = QCheckBox()
        self._box.toggled.connect(self.changed)
        self._hold(self._box)
        self.setMinimumHeight(self.fontMetrics().height() + 10)

    def value(self) -> bool:
        """Return True if the box is ticked."""
        return self._box.isChecked()

    def set_value(self, value: Any) -> None:
        """Tick or untick the box."""
        self._box.setChecked(bool(value))


class ChoiceEditor(Editor):
    """Editor of a parameter that has one of several texts as value: one of `words`, by default one of the parameter's choices."""

    def __init__(self, description: ParameterDescription, words: Iterable[str] = ()) -> None:
        super().__init__()
        self._combo = ChoiceBox((word, word) for word in words or description.choices)
        self._combo.currentTextChanged.connect(self.changed)
        self._hold(self._combo)

    def value(self) -> str:
        """Return the selected word."""
        return self._combo.currentText()

    def set_value(self, value: Any) -> None:
        """Select a word."""
        self._combo.setCurrentText(str(value))


class EnzymeEditor(ChoiceEditor):
    """Editor of an enzyme or other cleavage agent of the PSI-MS vocabulary, which also shows the cleavage rule."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__(description, [enzyme.name for enzyme in ENZYMES.values()])
        for row, enzyme in enumerate(ENZYMES.values()):
            self._combo.setItemData(row, f"cuts {enzyme.rule}", Qt.ItemDataRole.ToolTipRole)
        self._combo.currentTextChanged.connect(lambda name: self._combo.setToolTip(f"{name} cuts {ENZYMES[name].rule}"))


class MatrixEditor(ChoiceEditor):
    """Editor of a substitution matrix, delivered with the program or in a file."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__(description, matrix_names())
        self._title = description.title
        self._inspected: tuple[object, ...] = ()
        self._problem = ""
        self._row.addWidget(tool_button("open", "Choose a matrix file in NCBI's format", self.prompt_for_file))

    def set_value(self, value: Any) -> None:
        """Select a matrix by name or path; a path is added to the choices."""
        if self._combo.findText(str(value)) < 0:
            self._combo.addItem(str(value))
        self._combo.setCurrentText(str(value))

    def problem(self) -> str:
        """Return the reason why the selected file is not a valid matrix, or ''. The file is read again only after it has changed."""
        name = self.value()
        if name in matrix_names():
            return ""
        try:
            state = Path(name).stat()
        except OSError:
            # The parameter model reports missing files.
            return ""
        inspected = (name, state.st_mtime_ns, state.st_size)
        if inspected != self._inspected:
            self._inspected, self._problem = inspected, _matrix_problem(name)
        return self._problem

    def prompt_for_file(self) -> None:
        """Open a dialog for a matrix file."""
        prompt_for_path(self, self._title, self._take_file)

    def _take_file(self, path: Path) -> None:
        self.set_value(path)
        # Also for the same file: its content may have been corrected.
        self.changed.emit()


def _matrix_problem(path: str) -> str:
    try:
        read_matrix(path)
    except InputError as error:
        position = f", {error.place}" if error.place else ""
        return f"{Path(path).name}{position}: {error.reason}" + (f". {error.remedy}" if error.remedy else "")
    except ParameterError as error:
        return str(error)
    return ""


class RunEditor(Editor):
    """Editor that selects a finished run of the project, or always the newest run; the form provides the runs with `offer`."""

    tables = frozenset(("psms", "spectra"))
    """Names of the result tables that a run must have to be offered."""

    def __init__(self, description: ParameterDescription | None = None) -> None:
        super().__init__()
        self._offered: dict[str, str] | None = None
        self._combo = ChoiceBox([("Newest run", "")], n_characters=16)
        self._combo.currentIndexChanged.connect(self.changed)
        self._hold(self._combo, stretch=0)

    def value(self) -> str:
        """Return the id of the run, or '' for the newest."""
        return str(self._combo.currentData() or "")

    def set_value(self, value: Any) -> None:
        """Select a run by its id; an unknown id is added to the choices."""
        if self._combo.findData(str(value)) < 0:
            self._combo.addItem(str(value), str(value))
        self._combo.setCurrentIndex(self._combo.findData(str(value)))

    def offer(self, runs: Sequence[SearchedRun] | None) -> None:
        """Replace the runs from which the user selects, without changing the selected run; None if the runs are unknown."""
        offered = None if runs is None else {run.id: _run_text(run) for run in runs}
        if offered == self._offered:
            return
        chosen, self._offered = self.value(), offered
        self._combo.blockSignals(True)
        self._combo.clear()
        for name, text in {"": "Newest run", **(self._offered or {})}.items():
            self._combo.addItem(text, name)
            self._combo.setItemData(self._combo.count() - 1, tip_text(text), Qt.ItemDataRole.ToolTipRole)
        self.set_value(chosen)
        self._combo.blockSignals(False)
        self.changed.emit()

    def problem(self) -> str:
        """Return an error if the project contains no suitable run, or not the selected run; '' if it does, or if the runs are unknown."""
        if self._offered is None:
            return ""
        if not self._offered:
            return "This project has no finished identification with stored peaks"
        return "" if self.value() in ("", *self._offered) else "This project has no such run"


def _run_text(run: SearchedRun) -> str:
    """Return a text for a run such as ``identify-0002, 14.03.31 10:25, BSA1.mzML and 2 more``."""
    start_time = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(run.started.timestamp())), QLocale.FormatType.ShortFormat)
    files = f"{run.files[0]}{f' and {len(run.files) - 1} more' if len(run.files) > 1 else ''}" if run.files else ""
    return ", ".join(part for part in (run.id, start_time, files) if part)


class _BoxEditor(Editor):
    """Base class of editors of a number in a box."""

    number: type[float] = float

    def __init__(self, box: IntegerBox | NumberBox, *others: QWidget) -> None:
        super().__init__()
        self._box = box
        self._box.lineEdit().textChanged.connect(self.changed)
        self._hold(self._box, *others)

    def value(self) -> Any:
        """Return the number."""
        return self._box.value()

    def set_value(self, value: Any) -> None:
        """Show a number."""
        self._box.setValue(self.number(value))

    def problem(self) -> str:
        """Return an error if the text is not a valid number, otherwise ''."""
        return self._box.problem()


class IntegerEditor(_BoxEditor):
    """Editor of an integer with its unit."""

    number = int

    def __init__(self, description: ParameterDescription) -> None:
        box = IntegerBox(description.minimum, description.maximum, description.unit, zero=description.zero)
        # The default width is for 10 digits, which is wider than needed.
        widest = max("0000000" + box.suffix(), description.zero, key=len)
        box.setFixedWidth(box.fontMetrics().horizontalAdvance(widest) + 36)
        super().__init__(box)


class NumberEditor(_BoxEditor):
    """Editor of a real number with its unit."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__(NumberBox(description.minimum, description.maximum, description.unit))


class ToleranceEditor(_BoxEditor):
    """Editor of a tolerance: a number and its unit."""

    def __init__(self, description: ParameterDescription) -> None:
        self._unit = ChoiceBox((("ppm", "ppm"), ("Da", "Da")))
        super().__init__(NumberBox(0.0), self._unit)
        self._unit.currentTextChanged.connect(self.changed)

    def value(self) -> str:
        """Return the tolerance as a text such as ``10 ppm``, with a decimal point in every locale."""
        return f"{self._box.value():.15g} {self._unit.currentText()}"

    def set_value(self, value: Any) -> None:
        """Show a tolerance given as a text such as ``10 ppm``."""
        tolerance = Tolerance.parse(str(value))
        self._box.setValue(tolerance.value)
        self._unit.setCurrentText(tolerance.unit)


class TextEditor(Editor):
    """Editor of a text."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._line = QLineEdit()
        self._line.textChanged.connect(self.changed)
        self._hold(self._line, stretch=0)

    def value(self) -> str:
        """Return the text without surrounding blanks."""
        return self._line.text().strip()

    def set_value(self, value: Any) -> None:
        """Show a text; if it does not fit into the field, scroll to its beginning."""
        self._line.setText(str(value))
        self._line.setCursorPosition(0)


class ListEditor(Editor):
    """Editor of a list as comma-separated values in one line. Values that contain a comma are enclosed in double quotes."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._line = QLineEdit()
        self._line.textChanged.connect(self.changed)
        self._hold(self._line, stretch=0)

    def value(self) -> tuple[str, ...]:
        """Return the values as texts, which the parameter model converts."""
        return tuple(split_list(self._line.text()))

    def set_value(self, value: Any) -> None:
        """Show the values; if they do not fit into the field, scroll to the first one."""
        self._line.setText(list_text(value))
        self._line.setCursorPosition(0)


class DescriptorWeightsEditor(Editor):
    """Editor of the weights of the four structure descriptors of a residue."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._boxes = {name: NumberBox(0.0, 10.0) for name in ("Lengths", "Angles", "Secondary structure", "Residues")}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        for row, (name, box) in enumerate(self._boxes.items()):
            label = field_label(name, box)
            box.setAccessibleName(f"{description.title}: {name.lower()}")
            box.setStepType(NumberBox.StepType.DefaultStepType)
            box.setSingleStep(0.5)
            box.setFixedWidth(box.fontMetrics().horizontalAdvance("00.000") + 30)
            box.lineEdit().textChanged.connect(self.changed)
            grid.addWidget(label, row, 1)
            grid.addWidget(box, row, 0)
        self.takes_full_width = False
        self.setFocusProxy(next(iter(self._boxes.values())))

    def value(self) -> tuple[float, ...]:
        """Return the weights in order."""
        return tuple(box.value() for box in self._boxes.values())

    def set_value(self, value: Any) -> None:
        """Show the weights."""
        for box, number in zip(self._boxes.values(), value, strict=True):
            box.setValue(float(number))

    def problem(self) -> str:
        """Return an error if the text of a weight is not a valid number, otherwise ''."""
        return next((f"{name}: {problem}" for name, box in self._boxes.items() if (problem := box.problem())), "")


class IonSeriesEditor(Editor):
    """Editor of fragment ion series: those that suit the activation method of each spectrum, or any of six series that the user ticks."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self._by_activation = described(
            QCheckBox("by activation"),
            "Ions by activation",
            "Compare the ion series of each spectrum's activation; b and y if the file does not state it",
        )
        self._by_activation.toggled.connect(self._enable)
        self._by_activation.toggled.connect(self.changed)
        self._boxes = {series: QCheckBox(series) for series in "abcxyz"}
        for series, box in self._boxes.items():
            box.setAccessibleName(f"{series} ions")
            box.setToolTip(f"Compare {series} ions")
            box.toggled.connect(self.changed)
        # Two lines: one would be wider than a column of the form.
        in_column(self._by_activation, in_row(*self._boxes.values(), STRETCH, spacing=4), on=self, margins=(0, 4, 0, 4))
        self.setFocusProxy(self._by_activation)
        self.takes_full_width = False

    def value(self) -> str:
        """Return the names of the ticked series as one text, such as ``by``, or ``activation`` for series by activation method."""
        if self._by_activation.isChecked():
            return BY_ACTIVATION
        return "".join(series for series, box in self._boxes.items() if box.isChecked())

    def set_value(self, value: Any) -> None:
        """Tick the given series; for ``activation``, tick the series that are used for spectra with unknown activation."""
        is_by_activation = value == BY_ACTIVATION
        self._by_activation.setChecked(is_by_activation)
        for series, box in self._boxes.items():
            box.setChecked(series in (activation_series(Activation.UNKNOWN) if is_by_activation else str(value)))
        self._enable()

    def _enable(self) -> None:
        for box in self._boxes.values():
            box.setEnabled(not self._by_activation.isChecked())

    def problem(self) -> str:
        """Return an error if no series is ticked, otherwise ''."""
        return "" if self.value() else "Select at least one ion series"


class _Lines(QListWidget):
    """A list as high as its content, up to six lines."""

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
    """Editor of a list of values, one per line, with buttons to add and remove lines."""

    def __init__(self, add_tip: str) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.lines = _Lines()
        self.lines.itemChanged.connect(self.changed)
        self.lines.itemSelectionChanged.connect(self._enable)
        self.add_button = tool_button("add", add_tip, self.add)
        self.remove_button = tool_button("remove", "Remove the selected lines", self.remove_selected)
        in_row(
            (self.lines, 1, Qt.AlignmentFlag.AlignTop),
            in_column(self.add_button, self.remove_button, STRETCH, spacing=4),
            on=self,
            spacing=4,
        )
        self.setFocusProxy(self.lines)
        self._enable()

    def value(self) -> tuple[str, ...]:
        """Return the lines that are not empty."""
        texts = (self.lines.item(i).text().strip() for i in range(self.lines.count()))
        return tuple(text for text in texts if text)

    def set_value(self, value: Any) -> None:
        """Show values, one per line."""
        if self.value() == tuple(value):
            return
        self.lines.clear()
        for text in value:
            self._append(text)
        self.changed.emit()

    def add(self) -> None:
        """Open a dialog for more values. Overridden by derived classes."""
        raise NotImplementedError

    def append(self, texts: list[str]) -> None:
        """Add lines that are not present yet."""
        for text in texts:
            if text not in self.value():
                self._append(text)
        self.changed.emit()

    def remove_selected(self) -> None:
        """Remove the selected lines."""
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
    """Editor of modifications, selected from Unimod or typed."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__("Choose from Unimod")
        self._title = description.title

    def add(self) -> None:
        """Open the dialog that searches Unimod."""
        picker = ModificationPicker(self._title, self)
        picker.chosen.connect(self.append)
        picker.open()


class FilesEditor(_LinesEditor):
    """Editor of FASTA files."""

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__("Choose files")
        self._title = description.title

    def add(self) -> None:
        """Open a dialog for FASTA files."""
        filters = [FILE_CATEGORIES["proteins"].name_filter, "All files (*)"]
        prompt_for_paths(self, self._title, lambda paths: self.append(list(map(str, paths))), filters=filters)

    def problem(self) -> str:
        """Return an error if a file does not exist, otherwise ''."""
        missing = [text for text in self.value() if not Path(text).is_file()]
        return f"File not found: {missing[0]}" if missing else ""


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
"""Editor classes by the name with which a parameter declares its editor."""

_BY_KIND: dict[str, Callable[[ParameterDescription], Editor]] = {
    "truth": BoolEditor,
    "choice": ChoiceEditor,
    "integer": IntegerEditor,
    "number": NumberEditor,
    "text": TextEditor,
    "list": ListEditor,
}


def editor_for(description: ParameterDescription) -> Editor:
    """Return a new editor for a parameter: the declared editor, or else the editor for its type."""
    make = _DECLARED[description.editor] if description.editor else _BY_KIND[description.kind]
    return make(description)
