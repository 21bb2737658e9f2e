"""Which place of the help fits what has the keyboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableView, QWidget

from proteoscope import resources
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.searches import SearchPages

__all__ = ["BEGINNING", "Place", "manual_folder", "manual_page", "place_of"]

BEGINNING = "window"
"""The page that the manual opens at where none fits better."""


@dataclass(frozen=True)
class Place:
    """A page of the manual, and a word of the glossary where one has the keyboard; with its meaning, where several have this title."""

    page: str
    term: str = ""
    meaning: str = ""


def manual_folder() -> Path:
    """Where the manual lies: beside what else ships."""
    return resources.path().parent / "docs"


def manual_page(name: str) -> str:
    """A page of the manual, in Markdown; a line that says so where it is not there."""
    try:
        return (manual_folder() / f"{name}.md").read_text(encoding="utf-8")
    except OSError:
        return f"# The manual is not there\n\nThis copy of the program came without the page `{name}`."


def place_of(widget: QWidget | None, searches: Iterable[SearchPages], here: str) -> Place:
    """The place that fits a widget: a setting's or a column's word, and the page of the search or the view that it belongs to.

    Parameters
    ----------
    here : the page of what is shown, where nothing around the widget says one (``MANUAL`` of its class).
    """
    page, term, meaning = "", "", ""
    pages = {id(shown): one.search.manual for one in searches for shown in (one.made_form, one.made_results) if shown is not None}
    around = widget
    while around is not None and not page:
        if not term and isinstance(around, QTableView):
            term = _column(around)
        if not term and isinstance(around, Outlined) and around.description is not None:
            term, meaning = around.description.title, around.description.help
        page = getattr(type(around), "MANUAL", "") or pages.get(id(around), "")
        around = around.parentWidget()
    return Place(page or here or BEGINNING, term, meaning)


def _column(table: QTableView) -> str:
    """The title of the column that has the keyboard."""
    model, index = table.model(), table.currentIndex()
    if model is None or not index.isValid():
        return ""
    return str(model.headerData(index.column(), Qt.Orientation.Horizontal) or "")
