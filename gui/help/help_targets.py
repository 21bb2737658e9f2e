"""Manual page and glossary term for the focused widget."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableView, QWidget

from proteoscope import resources
from proteoscope.gui import forms
from proteoscope.gui.searches import SearchPages

BEGINNING = "window"
"""Name of the page with which the manual opens by default."""


@dataclass(frozen=True)
class HelpTarget:
    """Page or glossary term at which the help opens: manual page, and title of a term or ''.

    `meaning` distinguishes terms with the same title.
    """

    page: str
    term: str = ""
    meaning: str = ""


def manual_folder() -> Path:
    """Return the folder of the manual."""
    return resources.path().parent / "docs"


def manual_page(name: str) -> str:
    """Return the Markdown text of a page of the manual or of the developers' pages; if there is no such page, return a note about this."""
    for folder in (manual_folder(), manual_folder() / "developers"):
        try:
            return (folder / f"{name}.md").read_text(encoding="utf-8")
        except OSError:
            continue
    return f"# Page not found\n\nThis installation does not contain the page `{name}`."


def help_target(widget: QWidget | None, searches: Iterable[SearchPages], here: str) -> HelpTarget:
    """Return the help for a widget: the glossary term of its setting or table column, and the manual page of its search or view.

    Parameters
    ----------
    widget : QWidget or None
        The focused widget.
    searches : iterable of SearchPages
        Searches of the window.
    here : str
        Manual page of the shown view, used if neither the widget nor a parent of it has the attribute ``MANUAL``.
    """
    page, term, meaning = "", "", ""
    pages = {
        id(shown): search.search.manual for search in searches for shown in (search.made_form, search.made_results) if shown is not None
    }
    around = widget
    while around is not None and not page:
        if not term and isinstance(around, QTableView):
            term = _column(around)
        if not term and isinstance(around, forms.field.Outlined) and around.description is not None:
            term, meaning = around.description.title, around.description.help
        page = getattr(type(around), "MANUAL", "") or pages.get(id(around), "")
        around = around.parentWidget()
    return HelpTarget(page or here or BEGINNING, term, meaning)


def _column(table: QTableView) -> str:
    """Return the title of the focused column."""
    model, index = table.model(), table.currentIndex()
    if model is None or not index.isValid():
        return ""
    return str(model.headerData(index.column(), Qt.Orientation.Horizontal) or "")
