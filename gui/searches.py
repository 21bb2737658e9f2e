"""The searches of the window: for each entry of the list of searches, a form and a view of what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine import searches as registry
from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.parameters import read_preset
from proteoscope.gui import forms, spectrum, structure
from proteoscope.gui import results as results_package
from proteoscope.gui.devices import DeviceSurvey
from proteoscope.gui.forms.file_survey import FileSurvey

if TYPE_CHECKING:
    from proteoscope.gui.forms.field import Field
    from proteoscope.gui.forms.parameter_form import ParameterForm
    from proteoscope.gui.forms.search_form import SearchForm
    from proteoscope.gui.results.run_view import RunView

__all__ = ["SearchPages", "search_pages"]

_OWN_VIEWS: Mapping[str, Callable[[], Callable[..., RunView]]] = {
    "identify": lambda: results_package.identification_view.IdentificationView,
    "align": lambda: results_package.hits_view.HitsView,
    "structures": lambda: results_package.structure_view.StructureView,
    "cluster": lambda: results_package.cluster_view.ClusterView,
    "explain": lambda: results_package.explanation_view.ExplanationView,
    "reads": lambda: results_package.reads_view.ReadsView,
    "modified": lambda: results_package.modified_view.ModifiedView,
    "import": lambda: results_package.identification_view.IdentificationView,
    "evidence": lambda: results_package.evidence_view.EvidenceView,
    "library": lambda: results_package.library_view.LibraryView,
    "quantify": lambda: results_package.quantity_view.QuantityView,
}
"""Views of results, by kind, where the standard one does not do; imported when they are first asked for, since plots take longer to import
than the window to come up. Here alone the window asks which search it is."""


def _view_of(kind: str) -> Callable[..., RunView]:
    """Import and return the class of the view of a kind of search."""
    load = _OWN_VIEWS.get(kind)
    return results_package.standard_view.StandardView if load is None else load()


_DRAWING: tuple[Callable[[], ModuleType], ...] = (
    lambda: structure.structure_panel,
    lambda: structure.opengl_renderer,
    lambda: structure.drawn_renderer,
)
_PARTS: Mapping[str, tuple[Callable[[], ModuleType], ...]] = {"structures": _DRAWING, "evidence": _DRAWING}
"""Modules of the parts that a view makes later, when they are asked for."""
_SPECTRA: Mapping[str, Callable[[], Callable[[], QWidget]]] = {
    "spectrum": lambda: spectrum.spectrum_view.SpectrumView,
    "mirror": lambda: spectrum.mirror_view.MirrorView,
}
_MADE_BEFORE = {"identify": _SPECTRA, "import": _SPECTRA, "modified": _SPECTRA}
"""Parts that take as long to make as all others of their view together, by the names of its arguments that take them."""

_Page = Literal["form", "results"]

_FOLLOW_UPS = (
    ("identify", "explain", "E&xplain unidentified spectra…"),
    ("identify", "modified", "Find &modified peptides in unidentified spectra…"),
    ("import", "explain", "E&xplain unidentified spectra…"),
    ("import", "modified", "Find &modified peptides in unidentified spectra…"),
    ("library", "explain", "E&xplain unidentified spectra…"),
    ("library", "modified", "Find &modified peptides in unidentified spectra…"),
    ("modified", "identify", "Search a&gain with these modifications…"),
    *((kind, "quantify", "How &much of each…") for kind in ("identify", "import", "library", "modified", "explain")),
    *((kind, "evidence", "Show on s&tructures…") for kind in ("identify", "modified", "import", "explain", "library")),
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
        self._making: dict[_Page, Iterator[None]] = {}
        """What makes the pages."""
        self._fields: dict[str, Field] = {}
        self._parameters: ParameterForm | None = None
        self._parts: dict[str, QWidget] = {}
        """Parts of a form and of a view that are not whole yet, by their names."""
        self._failed: set[_Page] = set()
        """Pages of which a piece could not be made."""

    @property
    def kind(self) -> str:
        """Of its runs in a project, and of its settings."""
        return self.search.kind

    @property
    def form(self) -> SearchForm:
        """The form; made now, where it was not. What went wrong with it is raised, as often as it is asked for."""
        while self.made_form is None:
            self._go_on("form")
        return self.made_form

    @property
    def results(self) -> RunView:
        """The view of results; made now, where it was not, and raises as `form` does."""
        while self.made_results is None:
            self._go_on("results")
        return self.made_results

    def prepare(self) -> bool:
        """Make the next piece of what is not made yet; whether there was any. So the pages are there before they are asked for, and the
        window never stands still for as long as a whole one takes. A page that could not be made is left until it is asked for."""
        pages: tuple[tuple[_Page, QWidget | None], ...] = (("form", self.made_form), ("results", self.made_results))
        for page, made in pages:
            if made is None and page not in self._failed:
                self._go_on(page)
                return True
        return False

    def _go_on(self, page: _Page) -> None:
        """Make the next piece of a page; one that raises is tried again when the page is asked for again."""
        making = self._making.pop(page, None) or (self._make_form() if page == "form" else self._make_results())
        self._failed.add(page)
        next(making, None)
        self._failed.discard(page)
        self._making[page] = making

    def modules(self) -> Iterator[Callable[[], object]]:
        """Callables that import the modules that the pages are made of; they may be called before in any thread."""
        yield lambda: forms.search_form
        yield lambda: _view_of(self.kind)
        yield from _PARTS.get(self.kind, ())

    def _make_form(self) -> Iterator[None]:
        """Make the form in pieces of some milliseconds, each after a step of the iterator."""
        for description in self.search.model.describe():
            if description.name not in self._fields:
                self._fields[description.name] = forms.field.Field(description)
                yield
        if self._parameters is None:
            self._parameters = forms.parameter_form.ParameterForm(self.search.model, self._fields.values())
            yield
        form = forms.search_form.SearchForm(self.search, self._survey, self._devices, self._parameters)
        yield
        self._fields, self._parameters = {}, None
        self.made_form = form
        self.form_made.emit(form)

    def _make_results(self) -> Iterator[None]:
        """Make the view in pieces, each after a step of the iterator."""
        for name, load in _MADE_BEFORE.get(self.kind, {}).items():
            if name not in self._parts:
                self._parts[name] = load()()
                yield
        results = _view_of(self.kind)(self.search, **self._parts)
        self._parts = {}
        for of, then, text in _FOLLOW_UPS:
            if of == self.kind:
                results.offer_search(registry.search_of_kind(then), text)
        self.made_results = results
        self.results_made.emit(results)

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
