"""Part of a search form with the parameters, generated from their class."""

from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from proteoscope.engine.parameters import SearchParameters
from proteoscope.gui.forms.field import Field
from proteoscope.gui.forms.problems import find_problems
from proteoscope.gui.forms.sections import Columns, Section
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import heading
from proteoscope.gui.layouts import STRETCH, in_column, in_row


class ParameterForm(QWidget):
    """Widget with a card for each group of parameters; advanced parameters are below and initially hidden.

    Values are validated while the user types, and each field shows its error. A field whose value differs from the preset has a bold title
    and a reset button.

    Parameters
    ----------
    model : type of SearchParameters
        Model of the parameters.
    fields : iterable of Field
        Existing fields of parameters, which are used instead of new ones.

    Signals
    -------
    changed
        Values, or the errors of values, may have changed.
    resetting
        All fields are about to be reset to the preset.
    help_requested
        Description of the parameter whose help is requested.
    """

    changed = Signal()
    resetting = Signal()
    help_requested = Signal(object)

    def __init__(self, model: type[SearchParameters], fields: Iterable[Field] = ()) -> None:
        super().__init__()
        self._model = model
        self._is_loading = False
        self.fields = {field.description.name: field for field in fields or map(Field, model.describe())}
        for field in self.fields.values():
            field.setParent(self)
        self._checked: SearchParameters | None = None
        self.problems: dict[str, str] = {}
        """Errors by field name."""
        self.reset_button = QPushButton("Reset all to the preset")
        self.fold_button = QToolButton()
        self._plain = self._cards(advanced=False)
        self._advanced = self._cards(advanced=True)
        self._lay_out()
        for field in self.fields.values():
            field.changed.connect(self._check)
            field.help_requested.connect(self.help_requested)
        self.set_baseline(model.checked({}).model_dump())

    @property
    def parameters(self) -> SearchParameters | None:
        """The parameters, or None while a value is invalid."""
        return self._checked

    @property
    def changed_names(self) -> list[str]:
        """Names of the parameters whose values differ from the preset."""
        return [name for name, field in self.fields.items() if field.is_changed]

    def values(self) -> dict[str, Any]:
        """Return the values of all fields."""
        return {name: field.editor.value() for name, field in self.fields.items()}

    def set_baseline(self, values: Mapping[str, Any], shown: Mapping[str, Any] | None = None) -> None:
        """Set the values of a preset, to which the reset buttons reset the fields, and show these values or those of `shown`.

        Parameters
        ----------
        values : mapping
            Values of the preset.
        shown : mapping, optional
            Values to show instead of those of the preset, as returned by the method `values`.
        """
        self._is_loading = True
        for name, field in self.fields.items():
            field.set_baseline(values[name])
            if shown is not None:
                field.editor.set_value(shown[name])
        self._is_loading = False
        self._check()

    def set_values(self, values: Mapping[str, Any]) -> None:
        """Set the values of some fields, given by name; the values of the preset, to which fields can be reset, are unchanged."""
        self._is_loading = True
        for name, value in values.items():
            self.fields[name].editor.set_value(value)
        self._is_loading = False
        self._check()

    def reset_all(self) -> None:
        """Reset every field to the preset."""
        self.resetting.emit()
        self._is_loading = True
        for field in self.fields.values():
            field.reset()
        self._is_loading = False
        self._check()

    def unfold(self, is_unfolded: bool = True) -> None:
        """Show or hide the advanced parameters."""
        self._advanced.setVisible(is_unfolded)
        self.fold_button.setChecked(is_unfolded)
        set_icon(self.fold_button, "unfolded" if is_unfolded else "folded")

    def show_first_problem(self) -> QWidget | None:
        """Focus the first invalid field and return its frame, to which the caller scrolls; if necessary, show the advanced parameters."""
        for name, field in self.fields.items():
            if name in self.problems:
                if field.description.advanced:
                    self.unfold()
                field.editor.setFocus()
                return field.frame
        return None

    def _check(self) -> None:
        if self._is_loading:
            return
        typed = {name: field.editor.problem() for name, field in self.fields.items()}
        self._checked, self.problems = find_problems(self._model, self.values())
        self.problems.update({name: problem for name, problem in typed.items() if problem})
        if self.problems:
            self._checked = None
        changed = set(self.changed_names)
        for name, field in self.fields.items():
            field.show_state(self.problems.get(name, ""), name in changed)
        self.reset_button.setEnabled(bool(changed))
        advanced = [name for name, field in self.fields.items() if field.description.advanced]
        n_changed = len(changed.intersection(advanced))
        if set(self.problems).intersection(advanced):
            self.unfold()
        self.fold_button.setText(f"Advanced parameters ({len(advanced)})" + (f", {n_changed} changed" if n_changed else ""))
        self.changed.emit()

    def _cards(self, *, advanced: bool) -> Columns:
        columns = Columns()
        cards: dict[str, Section] = {}
        for field in self.fields.values():
            description = field.description
            if description.advanced is not advanced:
                continue
            if description.group not in cards:
                cards[description.group] = Section(description.group)
                columns.add(cards[description.group])
            field.place(cards[description.group].grid)
        for card in cards.values():
            # Equal widths of the first column align the editors of all cards.
            card.grid.setColumnMinimumWidth(0, card.fontMetrics().horizontalAdvance("n") * 19)
        return columns

    def _lay_out(self) -> None:
        self.fold_button.setAutoRaise(True)
        self.fold_button.setCheckable(True)
        self.fold_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.fold_button.toggled.connect(self.unfold)
        if not any(field.description.advanced for field in self.fields.values()):
            self.fold_button.hide()
        self.reset_button.setToolTip("Reset every parameter to the preset's value")
        self.reset_button.clicked.connect(self.reset_all)
        set_icon(self.reset_button, "reset")
        in_column(
            in_row(heading("Parameters", 1.25), STRETCH, self.reset_button),
            self._plain,
            (self.fold_button, 0, Qt.AlignmentFlag.AlignLeft),
            self._advanced,
            STRETCH,
            on=self,
            spacing=10,
        )
        self.unfold(False)
