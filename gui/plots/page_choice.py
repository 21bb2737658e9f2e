"""Fields for the width and the resolution of an exported picture, shared by figures and pictures of structures."""

from dataclasses import dataclass

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QWidget

from proteoscope.engine.page_sizes import DPI, MAXIMUM_DPI, MINIMUM_DPI, PAGE_SIZES, TWO_COLUMNS, PageSize
from proteoscope.gui.forms.numbers import IntegerBox
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.icons import without_icons
from proteoscope.gui.layouts import in_column


@dataclass
class PageChoice:
    """Last selected width and resolution (dots per inch), which are the defaults until the program ends."""

    size: PageSize = TWO_COLUMNS
    dpi: int = DPI


last_choice = PageChoice()


def size_box(free: str) -> ChoiceBox:
    """Return a field with the widths of journal columns and an entry named `free` for the figure's own width.

    The field shows the last selection.
    """
    box = ChoiceBox((size.title if size.width is not None else free, size) for size in PAGE_SIZES)
    box.setCurrentIndex(PAGE_SIZES.index(last_choice.size))
    box.setAccessibleName("Width")
    return box


def dpi_box() -> IntegerBox:
    """Return a field for the resolution in dots per inch, which shows the last selection."""
    box = IntegerBox()
    box.setRange(MINIMUM_DPI, MAXIMUM_DPI)
    box.setSuffix(" dpi")
    box.setValue(last_choice.dpi)
    return box


class FigureDialog(QDialog):
    """Dialog for the width and resolution of an exported figure; a dialog for the file follows."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Export figure")
        self.size_box, self.dpi_box = size_box("Width of the figure"), dpi_box()
        self.dpi_box.setToolTip("Dots per inch of PNG files; SVG and PDF are sharp at any size")
        form = QFormLayout()
        form.addRow("&Width", self.size_box)
        form.addRow("&Resolution of PNG", self.dpi_box)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel)
        without_icons(buttons.buttons())
        buttons.button(QDialogButtonBox.StandardButton.Save).setText("Save…")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        in_column(form, buttons, on=self, margins=None)

    def accept(self) -> None:
        """Store the width and resolution for the next figure."""
        last_choice.size, last_choice.dpi = self.size_box.currentData(), self.dpi_box.value()
        super().accept()
