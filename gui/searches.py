"""The searches of the window: for each entry of the list of searches, a form and a view of what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine import searches as registry
from engine.entry import Search
from engine.errors import ProteoscopeError
from engine.parameters import read_preset
from gui.devices import DeviceSurvey
from gui.forms.file_survey import FileSurvey
from gui.forms.search_form import SearchForm
from gui.results.cluster_view import ClusterView
from gui.results.explanation_view import ExplanationView
from gui.results.hits_view import HitsView
from gui.results.identification_view import IdentificationView
from gui.results.modified_view import ModifiedView
from gui.results.reads_view import ReadsView
from gui.results.run_view import RunView
from gui.results.standard_view import StandardView
from gui.results.structure_view import StructureView

__all__ = ["SearchPages", "search_pages"]

_OWN_VIEWS: dict[str, Callable[[Search], RunView]] = {
    "identify": IdentificationView,
    "align": HitsView,
    "structures": StructureView,
    "cluster": ClusterView,
    "explain": ExplanationView,
    "reads": ReadsView,
    "modified": ModifiedView,
    "import": IdentificationView,
}
"""Views of results, by kind, where the standard one does not do. Here alone the window asks which search it is."""

_FOLLOW_UPS = (
    ("identify", "explain", "E&xplain unidentified spectra…"),
    ("identify", "modified", "Find &modified peptides in unidentified spectra…"),
    ("import", "explain", "E&xplain unidentified spectra…"),
    ("import", "modified", "Find &modified peptides in unidentified spectra…"),
    ("modified", "identify", "Search a&gain with these modifications…"),
)
"""Of which search the results offer which other one, and in which words."""


class SearchPages(QObject):
    """A search in the window: its entry, and its form and the view of its results, each made when it is first asked for.

    A form takes a third of a second to make, and a window has one for each search: most are never looked at.

    Signals
    -------
    form_made, results_made : with the form or the view, which nobody has seen yet.
    """

    form_made = Signal(object)
    results_made = Signal(object)

    def __init__(self, search: Search, survey: FileSurvey, devices: DeviceSurvey, parent: QObject) -> None:
        super().__init__(parent)
        self.search = search
        self.made_form: SearchForm | None = None
        """The form, where it has been asked for."""
        self.made_results: RunView | None = None
        """The view of results, where it has been asked for."""
        self._survey, self._devices = survey, devices

    @property
    def kind(self) -> str:
        """Of its runs in a project, and of its settings."""
        return self.search.kind

    @property
    def form(self) -> SearchForm:
        """The form; made now, where it was not."""
        if self.made_form is None:
            self.made_form = SearchForm(self.search, self._survey, self._devices)
            self.form_made.emit(self.made_form)
        return self.made_form

    @property
    def results(self) -> RunView:
        """The view of results; made now, where it was not."""
        if self.made_results is None:
            self.made_results = _OWN_VIEWS.get(self.kind, StandardView)(self.search)
            for of, then, text in _FOLLOW_UPS:
                if of == self.kind:
                    self.made_results.offer_search(registry.search_of_kind(then), text)
            self.results_made.emit(self.made_results)
        return self.made_results

    def knows_preset(self, path: Path) -> bool:
        """Whether a preset file is for this kind of search."""
        try:
            return set(read_preset(self.kind, str(path))) <= set(self.search.model.model_fields)
        except ProteoscopeError:
            return False

    def has_page(self, page: QWidget) -> bool:
        """Whether a page of the window is the form or the view of this search."""
        return page is self.made_form or page is self.made_results


def search_pages(survey: FileSurvey, devices: DeviceSurvey, window: QObject) -> dict[str, SearchPages]:
    """The pages of all searches of a window, by their kind; the first is the one that the window begins with."""
    return {one.kind: SearchPages(one, survey, devices, window) for one in registry.SEARCHES}
