"""The kinds of search that the window offers: each is a form, a request that runs, and a view of what was found."""

from __future__ import annotations

from dataclasses import dataclass

from gui.devices import DeviceSurvey
from gui.forms.file_survey import FileSurvey
from gui.forms.identification_form import IdentificationForm
from gui.forms.search_form import SearchForm
from gui.forms.sequence_search_form import SequenceSearchForm
from gui.results.hits_view import HitsView
from gui.results.identification_view import IdentificationView
from gui.results.run_view import RunView

__all__ = ["Search", "searches"]


@dataclass(frozen=True)
class Search:
    """A kind of search.

    Attributes
    ----------
    kind : of its runs in a project, and of its settings. name : for menus and buttons. purpose : what it is for, in a sentence.
    icon, shortcut : of the action that begins a new one.
    """

    kind: str
    name: str
    purpose: str
    icon: str
    shortcut: str
    form: SearchForm
    results: RunView


def searches(survey: FileSurvey, devices: DeviceSurvey) -> dict[str, Search]:
    """All kinds of search, by their kind, with pages of their own; the first is the one that the window begins with."""
    offered = (
        Search(
            "identify",
            "identification",
            "Identify peptides and proteins from tandem mass spectra",
            "spectrum",
            "Ctrl+N",
            IdentificationForm(survey, devices),
            IdentificationView(),
        ),
        Search(
            "align",
            "sequence search",
            "Find relatives of proteins in a database, with Smith-Waterman alignments",
            "search",
            "Ctrl+Shift+N",
            SequenceSearchForm(survey, devices),
            HitsView(),
        ),
    )
    return {one.kind: one for one in offered}
