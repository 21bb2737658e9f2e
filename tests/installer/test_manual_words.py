"""The manual refers to parts of the window by their names in the window.

The manual writes the names of the window in italics: buttons, menus and their entries, tabs, tables, fields. Such names begin with a
capital, a digit or a bracket, and do not end like sentences; a path through menus has > in between. Other emphasis is bold, or begins in
lower case.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from proteoscope.engine.searches import SEARCHES
from proteoscope.engine.views.quantity_figures import QUANTITY_FIGURES

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
_NAMED = re.compile(r"(?<![*\w])\*([A-Z0-9(][^*]*?[^*.\s])\*(?![*\w])")
_CODE = re.compile(r"```.*?```|^    [^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
MINIMUM_CHARACTERS = 3
"""Minimum number of characters of a text outside its gaps, as in ``New {name}``, so that it does not match everything."""


def named(text: str) -> list[str]:
    """Return the names of the window on a page of the manual."""
    return [part for name in _NAMED.findall(_CODE.sub("", text)) for part in " ".join(name.split()).split(" > ")]


def plain(text: str) -> str:
    """Return a text of the window without the ``&`` of its shortcut and the ``…`` of a dialog."""
    return text.replace("&", "").rstrip("….").strip()


def texts_of(source: str) -> tuple[set[str], list[re.Pattern[str]]]:
    """Return the texts in the source of a module, and those with gaps for values at run time."""
    whole, with_gaps = set[str](), list[re.Pattern[str]]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            whole.add(plain(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
            if sum(residue.isalpha() for part in parts for residue in part or "") >= MINIMUM_CHARACTERS:
                with_gaps.append(re.compile("".join(".+" if part is None else re.escape(part) for part in parts)))
    return whole, with_gaps


@pytest.fixture(scope="module")
def window() -> set[str]:
    """Return the texts in the sources of the window, in the descriptions of searches, and of the buttons that start a search."""
    texts, gaps = set[str](), list[re.Pattern[str]]()
    for path in (REPOSITORY / "gui").rglob("*.py"):
        whole, with_gaps = texts_of(path.read_text(encoding="utf-8"))
        texts |= whole
        gaps += with_gaps
    texts |= {title for figure in QUANTITY_FIGURES for title in (figure.tab, figure.title)}
    for search in SEARCHES:
        texts |= {
            search.question,
            *(parameter.title for parameter in search.model.describe()),
            *(option.title for option in search.options),
        }
        texts |= {title for table in search.all_tables for title in (table.title, *(column.title for column in table.columns))}
        texts |= {f"New {search.name}"} if any(gap.fullmatch(f"New {search.name}") for gap in gaps) else set()
    return texts


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_window_names_in_the_manual_exist_in_the_window(page: Path, window: set[str]) -> None:
    assert [words for words in named(page.read_text(encoding="utf-8")) if plain(words) not in window] == []


def test_window_names_in_the_manual_are_recognised_by_italics() -> None:
    text = "*Run* and *Show on\nstructures…*, *Help > About*, but *not this*, **Nor this**, *Nor that.*, `a *B* c`\n\n    *Code*\n"
    assert named(text) == ["Run", "Show on structures…", "Help", "About"]
    assert sum(len(named(page.read_text(encoding="utf-8"))) for page in PAGES) > 70


def test_window_texts_are_read_from_source_code() -> None:
    whole, gaps = texts_of('QPushButton("&Resume")\nQAction(f"New {name}")\nprint(f"{a} {b}")\n')
    assert whole >= {"Resume"} and "Go on" not in whole
    assert [gap.pattern for gap in gaps] == [r"New\ .+"]


@pytest.mark.parametrize("page", ["README.md", "docs/from_python.md", "docs/methods.md"])
def test_table_of_searches_in_manual_has_a_row_for_each_search(page: str) -> None:
    rows = [line for line in (REPOSITORY / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert {search.kind for search in SEARCHES} <= {kind for row in rows for kind in re.findall(r"`(\w+)`", row)}


def test_manual_lists_the_searches_that_show_all_spectra() -> None:
    pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
    from proteoscope.gui import searches
    from proteoscope.gui.results.spectra_run_view import SpectraRunView

    views = {search.kind: searches._view_of(search.kind) for search in SEARCHES}
    listing = {kind for kind, view in views.items() if issubclass(view, SpectraRunView)}
    page = (REPOSITORY / "docs" / "spectra.md").read_text(encoding="utf-8")
    sentence = next(paragraph for paragraph in page.split("\n\n") if "*All spectra*" in paragraph).partition(")")[0]
    assert set(re.findall(r"`(\w+)`", sentence)) == listing


def test_manual_lists_the_searches_that_export_msp() -> None:
    page = (REPOSITORY / "docs" / "library_search.md").read_text(encoding="utf-8")
    listed = page.partition("writes the spectra that a run identified at its false discovery rate (")[2].partition(")")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == {
        search.kind for search in SEARCHES if "msp" in {export.name for export in search.exports}
    }
