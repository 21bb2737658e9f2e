"""The searches of the window: for each entry of the list of searches, a form and a view of what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine import searches as registry
from engine.entry import Search
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
}
"""Views of results, by kind, where the standard one does not do. Here alone the window asks which search it is."""

_FOLLOW_UPS = (
    ("identify", "explain", "E&xplain unidentified spectra…"),
    ("identify", "modified", "Find &modified peptides in unidentified spectra…"),
    ("modified", "identify", "Search a&gain with these modifications…"),
)
"""Of which search the results offer which other one, and in which words."""


@dataclass(frozen=True)
class SearchPages:
    """A search in the window: its entry, its form and the view of its results."""

    search: Search
    form: SearchForm
    results: RunView

    @property
    def kind(self) -> str:
        """Of its runs in a project, and of its settings."""
        return self.search.kind


def search_pages(survey: FileSurvey, devices: DeviceSurvey) -> dict[str, SearchPages]:
    """The pages of all searches, by their kind; the first is the one that the window begins with."""
    pages = {
        one.kind: SearchPages(one, SearchForm(one, survey, devices), _OWN_VIEWS.get(one.kind, StandardView)(one))
        for one in registry.SEARCHES
    }
    for of, then, text in _FOLLOW_UPS:
        pages[of].results.offer_search(pages[then].search, text)
    return pages
