"""Searches in the window, each with a form and a view of results, which are created when needed."""

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
from proteoscope.gui.devices import DeviceDetector
from proteoscope.gui.forms.file_inspection import FileInspector

if TYPE_CHECKING:
    from proteoscope.gui.forms.field import Field
    from proteoscope.gui.forms.parameter_form import ParameterForm
    from proteoscope.gui.forms.search_form import SearchForm
    from proteoscope.gui.results.run_view import RunView
    from proteoscope.gui.tables.panel import TablePanel

_OWN_VIEWS: Mapping[str, Callable[[], type[RunView]]] = {
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
"""Functions that import the view of results of a search kind; other kinds have the standard view.

Views are imported on first use, since importing plots takes longer than opening the window. Only the tables of this module distinguish
searches in the window.
"""


def _view_of(kind: str) -> type[RunView]:
    """Import and return the view class of a search kind."""
    load = _OWN_VIEWS.get(kind)
    return results_package.standard_view.StandardView if load is None else load()


_DRAWING: tuple[Callable[[], ModuleType], ...] = (
    lambda: structure.structure_panel,
    lambda: structure.opengl_renderer,
    lambda: structure.drawn_renderer,
)
_PARTS: Mapping[str, tuple[Callable[[], ModuleType], ...]] = {"structures": _DRAWING, "evidence": _DRAWING}
"""Modules of widgets that a view creates on demand, by search kind."""
_Part = Callable[[], Callable[[], QObject]]
_SPECTRA: Mapping[str, _Part] = {
    "spectrum": lambda: spectrum.spectrum_view.SpectrumView,
    "mirror": lambda: spectrum.mirror_view.MirrorView,
    "spectra": lambda: results_package.run_spectra.RunSpectra,
}
_IDENTIFICATION: Mapping[str, _Part] = {
    **_SPECTRA,
    "sites": lambda: results_package.sites_page.SitesPage,
    "filters": lambda: results_package.identification_filter.IdentificationFilter,
}
_MADE_BEFORE: Mapping[str, Mapping[str, _Part]] = {
    "identify": _IDENTIFICATION,
    "import": _IDENTIFICATION,
    "modified": _SPECTRA,
    "library": {name: _SPECTRA[name] for name in ("mirror", "spectra")},
    "explain": {"mirror": _SPECTRA["mirror"]},
}
"""Parts that are created before a view and passed to its constructor, by search kind and argument name.

Creating the whole view in one step would block the window for longer than 50 ms.
"""

_Page = Literal["form", "results"]

_FOLLOW_UPS = (
    ("identify", "explain", "E&xplain unidentified spectra…"),
    ("identify", "modified", "Open &modification search…"),
    ("import", "explain", "E&xplain unidentified spectra…"),
    ("import", "modified", "Open &modification search…"),
    ("library", "explain", "E&xplain unidentified spectra…"),
    ("library", "modified", "Open &modification search…"),
    ("modified", "identify", "Search a&gain with these modifications…"),
    *((kind, "quantify", "&Quantify…") for kind in ("identify", "import", "library", "modified", "explain")),
    *((kind, "evidence", "Map onto s&tructures…") for kind in ("identify", "modified", "import", "explain", "library")),
)
"""Follow-up searches in the results views: kind of the search, kind of the follow-up search, menu text."""


class SearchPages(QObject):
    """Search with its form and its view of results, which are created on first use.

    Creating a form takes a third of a second, and most forms of the window are never used.

    Signals
    -------
    form_made, results_made
        The new form, or the new view of results.
    """

    form_made = Signal(object)
    results_made = Signal(object)

    def __init__(self, search: Search, inspector: FileInspector, devices: DeviceDetector, parent: QObject) -> None:
        super().__init__(parent)
        self.search = search
        self.made_form: SearchForm | None = None
        """The form, or None before its first use."""
        self.made_results: RunView | None = None
        """The results view, or None before its first use."""
        self._inspector, self._devices = inspector, devices
        self._making: dict[_Page, Iterator[None]] = {}
        """Unfinished iterators that create the pages step by step, by page name."""
        self._fields: dict[str, Field] = {}
        self._parameters: ParameterForm | None = None
        self._parts: dict[str, QObject] = {}
        """Finished parts of an incomplete form or view, by name."""
        self._panels: dict[str, TablePanel] = {}
        """Finished tables of an incomplete view, by name."""
        self._failed: set[_Page] = set()
        """Pages whose creation failed."""

    @property
    def kind(self) -> str:
        """Key of the search in projects and settings."""
        return self.search.kind

    @property
    def form(self) -> SearchForm:
        """The form, created on first use. If creating it fails, each later access tries again and may raise the error."""
        while self.made_form is None:
            self._next_step("form")
        return self.made_form

    @property
    def results(self) -> RunView:
        """The results view, created on first use. If creating it fails, each later access tries again and may raise the error."""
        while self.made_results is None:
            self._next_step("results")
        return self.made_results

    def prepare(self) -> bool:
        """Do the next step of creating the pages and return True, or return False if nothing is left to create.

        Pages are thus ready before they are needed, and the window is never blocked while a whole page is created. A page whose creation
        has failed is skipped until it is used.
        """
        pages: tuple[tuple[_Page, QWidget | None], ...] = (("form", self.made_form), ("results", self.made_results))
        for page, made in pages:
            if made is None and page not in self._failed:
                self._next_step(page)
                return True
        return False

    def _next_step(self, page: _Page) -> None:
        """Do the next step of creating a page. If the step fails, mark the page as failed; the next use of the page creates it anew."""
        making = self._making.pop(page, None) or (self._make_form() if page == "form" else self._make_results())
        self._failed.add(page)
        next(making, None)
        self._failed.discard(page)
        self._making[page] = making

    def modules(self) -> Iterator[Callable[[], object]]:
        """Yield functions that import the modules of the pages. They may be called in any thread."""
        yield lambda: forms.search_form
        yield lambda: _view_of(self.kind)
        yield from _PARTS.get(self.kind, ())

    def _make_form(self) -> Iterator[None]:
        """Create the form in steps of a few milliseconds."""
        for description in self.search.model.describe():
            if description.name not in self._fields:
                self._fields[description.name] = forms.field.Field(description)
                yield
        if self._parameters is None:
            self._parameters = forms.parameter_form.ParameterForm(self.search.model, self._fields.values())
            yield
        presets = forms.preset_choice.PresetChoice(self.search, self._parameters)
        yield
        presets.choose(self.search.preset)
        yield
        form = forms.search_form.SearchForm(self.search, self._inspector, self._devices, presets)
        yield
        self._fields, self._parameters = {}, None
        self.made_form = form
        self.form_made.emit(form)

    def _make_results(self) -> Iterator[None]:
        """Create the results view in steps."""
        view = _view_of(self.kind)
        for table in view.shown_tables(self.search):
            if table.name not in self._panels:
                self._panels[table.name] = view.make_panel(table)
                yield
        for name, load in _MADE_BEFORE.get(self.kind, {}).items():
            if name not in self._parts:
                self._parts[name] = load()()
                yield
        make: Callable[..., RunView] = view
        results = make(self.search, panels=self._panels, **self._parts)
        self._parts, self._panels = {}, {}
        yield
        for of, then, text in _FOLLOW_UPS:
            if of == self.kind:
                results.offer_search(registry.search_of_kind(then), text)
        self.made_results = results
        self.results_made.emit(results)

    def knows_preset(self, path: Path) -> bool:
        """Return True if a preset file contains parameters of this search."""
        try:
            return set(read_preset(self.kind, str(path))) <= set(self.search.model.model_fields)
        except ProteoscopeError:
            return False

    def has_page(self, page: QWidget) -> bool:
        """Return True if a page of the window belongs to this search."""
        return page is self.made_form or page is self.made_results


def search_pages(inspector: FileInspector, devices: DeviceDetector, window: QObject) -> dict[str, SearchPages]:
    """Return the pages of all searches by kind, starting with the default search."""
    return {search.kind: SearchPages(search, inspector, devices, window) for search in registry.SEARCHES}
