"""The list of all searches, from which the command line, the window, presets, exports and the tests that go over all of them are made.

A new search is a folder with its entry, and a line here; CONTRIBUTING says how.
"""

from __future__ import annotations

from engine.clustering.entry import CLUSTERING, EXPLANATION
from engine.entry import Search
from engine.errors import ParameterError
from engine.identification.entry import IDENTIFICATION
from engine.modified_search.entry import MODIFIED_SEARCH
from engine.read_alignment.entry import READ_ALIGNMENT
from engine.sequence_search.entry import SEQUENCE_SEARCH
from engine.structure_search.entry import STRUCTURE_SEARCH

__all__ = ["SEARCHES", "search_of_kind"]

SEARCHES: tuple[Search, ...] = (
    IDENTIFICATION, SEQUENCE_SEARCH, STRUCTURE_SEARCH, CLUSTERING, EXPLANATION, MODIFIED_SEARCH, READ_ALIGNMENT,
)  # fmt: skip


def search_of_kind(kind: str) -> Search:
    """The search of a kind.

    Raises
    ------
    ParameterError : this version of the program has none.
    """
    for one in SEARCHES:
        if one.kind == kind:
            return one
    raise ParameterError(f"there is no search '{kind:.40}'; there are {', '.join(one.kind for one in SEARCHES)}")
