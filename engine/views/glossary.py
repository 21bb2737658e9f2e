"""Glossary of table columns and search parameters, from the same descriptions that define the tables and forms."""

from collections.abc import Iterable
from dataclasses import dataclass

from proteoscope.engine.entry import Search
from proteoscope.engine.parameters import ParameterDescription
from proteoscope.engine.results.columns import MARK_COLUMNS, Table
from proteoscope.engine.views.quantities import PEPTIDES_BY_SAMPLE, PROTEINS_BY_SAMPLE

__all__ = ["Term", "glossary", "matching"]

_MADE = {"quantify": (PROTEINS_BY_SAMPLE, PEPTIDES_BY_SAMPLE)}
"""Tables that the window derives from the tables of a search, by kind of search."""


@dataclass(frozen=True)
class Term:
    """Column or search parameter with one title and meaning.

    Attributes
    ----------
    title
        Title with unit, such as ``Mass (Da)``.
    names
        Names in files (columns) or on the command line (parameters).
    meaning
        Explanation in one or more sentences.
    used_in
        Tables and forms that contain the term, such as ``PSMs of identification``.
    is_setting
        True for a search parameter.
    """

    title: str
    names: tuple[str, ...]
    meaning: str
    used_in: tuple[str, ...]
    is_setting: bool = False


def glossary(searches: Iterable[Search]) -> list[Term]:
    """Return the columns and parameters of searches, sorted by title; columns with equal title and meaning are one term."""
    result: dict[tuple[str, str, bool], tuple[dict[str, None], dict[str, None]]] = {}
    for search in searches:
        for table in (*search.result_tables, *_MADE.get(search.kind, ())):
            for column in (*(MARK_COLUMNS if table.takes_marks else ()), *table.columns):
                if column.title and column.meaning:
                    _note(result, (column.header, column.description, False), column.name, _place(table, search))
        for field in search.model.describe():
            _note(result, (_header(field), field.help, True), field.name, f"form of {search.name}")
        for command in search.commands:
            for field in command.model.describe() if command.parameters else ():
                _note(result, (_header(field), field.help, True), field.name, f"form of {command.name}")
    terms = [
        Term(title, tuple(names), meaning, tuple(positions), is_setting)
        for (title, meaning, is_setting), (names, positions) in result.items()
    ]
    return sorted(terms, key=lambda term: (term.title.casefold(), term.is_setting, term.meaning))


def matching(terms: Iterable[Term], wanted: str) -> list[Term]:
    """Return the terms that contain all words of the text `wanted`, ignoring case; matches in titles or names come first."""
    words = wanted.casefold().split()
    result = []
    for term in terms:
        title = " ".join([term.title, *term.names]).casefold()
        whole = " ".join([title, term.meaning.casefold(), *(position.casefold() for position in term.used_in)])
        if all(word in whole for word in words):
            result.append((sum(word not in title for word in words), term))
    return [term for _, term in sorted(result, key=lambda named: named[0])]


def _note(
    terms: dict[tuple[str, str, bool], tuple[dict[str, None], dict[str, None]]], key: tuple[str, str, bool], name: str, place: str
) -> None:
    names, positions = terms.setdefault(key, ({}, {}))
    names[name] = None
    positions[place] = None


def _header(field: ParameterDescription) -> str:
    return f"{field.title} ({field.unit})" if field.unit else field.title


def _place(table: Table, search: Search) -> str:
    return f"{table.title} of {search.name}"
