"""Tests that every column of every result table is shown, copied, saved and filtered with the same value and unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QGuiApplication, QTextDocument
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.results.cluster_view import ClusterView
from proteoscope.gui.results.explanation_view import ExplanationView
from proteoscope.gui.results.hits_view import HitsView
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.results.run_view import RunView
from proteoscope.gui.tables.panel import TablePanel
from proteoscope.gui.theme import Theme
from tests.engine.views.cluster_projects import project_with_clusters, project_with_explanation
from tests.engine.views.result_projects import project_with_results
from tests.engine.views.search_projects import project_with_search
from tests.gui.result_views import settle

TABLES = [
    ("identify", "proteins"),
    ("identify", "peptides"),
    ("identify", "psms"),
    ("align", "queries"),
    ("align", "hits"),
    ("cluster", "clusters"),
    ("cluster", "members"),
    ("explain", "explained"),
]
Views = dict[tuple[str, str], RunView]
WITH_TIMES = ("PSMs", "Clusters", "Spectra", "Explained spectra")
"""Tables of spectra, which have retention times."""
_GERMAN = ("psms", "hits", "explained")
"""Tables that are also checked in German; all of them are checked with the tests marked `long`."""
LOCALES = [QLocale(QLocale.Language.English, QLocale.Country.UnitedStates), QLocale(QLocale.Language.German, QLocale.Country.Germany)]
UNITS = {"min": 1 / 60, "%": 100, "ppm": 1, "Da": 1}
"""Factors between the engine's tables and the window: times are in seconds, shares are fractions, other values are unchanged."""


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Project]:
    folder = tmp_path_factory.mktemp("projects")
    return {
        "identify": project_with_results(folder / "identify")[0],
        "align": project_with_search(folder / "align"),
        "cluster": project_with_clusters(folder / "cluster", with_labels=True),
        "explain": project_with_explanation(folder / "explain"),
    }


@pytest.fixture
def locale(request: pytest.FixtureRequest) -> Iterator[QLocale]:
    before = QLocale()
    QLocale.setDefault(request.param)
    yield request.param
    QLocale.setDefault(before)


@pytest.fixture(scope="module")
def views(projects: dict[str, Project], qapp: QApplication) -> Iterator[Views]:
    """Views by kind and locale, opened once for all tests."""
    made: Views = {}
    usual = QLocale()
    for locale in (usual, *LOCALES):
        QLocale.setDefault(locale)
        for kind, of in (("identify", IdentificationView), ("align", HitsView), ("cluster", ClusterView), ("explain", ExplanationView)):
            if (kind, locale.name()) not in made:
                made[kind, locale.name()] = of(search_of_kind(kind))
    QLocale.setDefault(usual)
    yield made
    for view in made.values():
        view.clear()
        view.close()
        view.deleteLater()


def opened(kind: str, projects: dict[str, Project], views: Views, qtbot: QtBot) -> RunView:
    """Open all rows and columns of all tables of a run, including those filtered or hidden at first."""
    for other in views.values():
        other.hide()
    key = kind, QLocale().name()
    if views[key].run is None:
        views[key].resize(900, 600)
        views[key].show_run(projects[kind], None)
    view = views[key]
    view.show()
    settle(view, qtbot)
    for panel in view.panels.values():
        panel.remember_columns([])
    view.filter_bar.reset()
    if isinstance(view, IdentificationView | ExplanationView):
        view.filters.q_value.setValue(1.0)
        view.filters.text.returnPressed.emit()
    if isinstance(view, IdentificationView):
        view.filters.decoys.setChecked(True)
    show_all(view, qtbot)
    return view


def show_all(view: RunView, qtbot: QtBot) -> None:
    settle(view, qtbot)
    for name in view.panels:
        view.show_all(name)
    settle(view, qtbot)


@pytest.fixture
def table(
    request: pytest.FixtureRequest, projects: dict[str, Project], views: Views, qtbot: QtBot, theme: Theme
) -> tuple[RunView, TablePanel]:
    kind, name = request.param
    view = opened(kind, projects, views, qtbot)
    return view, view.panels[name]


def read(text: str, locale: QLocale) -> float:
    value, is_number = locale.toDouble(text)
    assert is_number, f"{text!r} is not a number"
    return value


def last_digit(text: str, locale: QLocale) -> float:
    """Return the change in a number when its last digit grows by one."""
    plain = text.replace(locale.groupSeparator(), "").replace(locale.decimalPoint(), ".").lower()
    mantissa, _, exponent = plain.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(10.0 ** ((int(exponent) if exponent else 0) - decimals))


def lines_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.removesuffix("\n").split("\n")]


def as_read(tip: str | None) -> str | None:
    """Return a tooltip as displayed, with escaped names unescaped."""
    if tip is None or not tip.startswith("<p"):
        return tip
    document = QTextDocument()
    document.setHtml(tip)
    return document.toPlainText()


@pytest.mark.parametrize(
    ("locale", "table"),
    [
        pytest.param(locale, table, id=f"{language}-{table[1]}", marks=[pytest.mark.long] * (at == 1 and table[1] not in _GERMAN))
        for at, (locale, language) in enumerate(zip(LOCALES, ("English", "German"), strict=True))
        for table in TABLES
    ],
    indirect=True,
)
def test_shown_copied_and_saved_values_have_the_same_unit(
    locale: QLocale, table: tuple[RunView, TablePanel], tmp_path: Path, qtbot: QtBot
) -> None:
    _, panel = table
    model, view = panel.model, panel.view
    stored = pq.read_table(panel._source.path).to_pylist()  # type: ignore[union-attr]
    assert len(model.rows) == len(stored) == panel.total > 0
    view.setFocus()
    view.selectAll()
    with qtbot.waitSignal(view.message):
        view.copy_action.trigger()
    copied = lines_of(QGuiApplication.clipboard().text())
    with qtbot.waitSignal(view.message):
        view.save(tmp_path / "saved.tsv")
    saved = lines_of((tmp_path / "saved.tsv").read_text(encoding="utf-8"))
    assert len(copied) == len(saved) == len(stored) + 1
    assert copied[0] == [column.header for column in model.columns], "every column is shown"
    seen_units = set()
    for at, column in enumerate(model.columns):
        if column.name not in stored[0]:  # Only some runs have it.
            continue
        unit = match[1] if (match := re.search(r"\((\S+)\)$", column.header)) else ""
        seen_units.add(unit)
        factor = UNITS.get(unit, 1)
        is_converted = factor != 1
        assert saved[0][at] == column.name + ({"min": "_minutes", "%": "_percent"}[unit] if is_converted else "")
        n_values = 0
        for row in range(len(stored)):
            value = stored[int(model.rows[row])][column.name]
            shown = model.index(row, at).data()
            tip = as_read(model.index(row, at).data(Qt.ItemDataRole.ToolTipRole))
            where = f"{column.name}, row {row}: stored {value!r}, shown {shown!r}, tooltip {tip!r}, copied {copied[row + 1][at]!r}"
            assert model.cell(row, at)[0] == shown, where
            if value is None or (isinstance(value, float) and math.isnan(value)):
                assert (shown, tip, copied[row + 1][at], saved[row + 1][at]) == ("", None, "", ""), where
                continue
            n_values += 1
            if isinstance(value, bool):
                assert shown == tip == copied[row + 1][at] == ("yes" if value else "no"), where
                assert saved[row + 1][at] == ("true" if value else "false"), where
            elif isinstance(value, int | float):
                expected = value * factor
                digits = last_digit(shown, locale)
                assert abs(read(shown, locale) - expected) <= 0.5000001 * digits, where
                assert digits <= abs(expected) * 0.2 or digits <= 1, f"hardly a digit of it is shown: {where}"
                for text, of in ((tip, locale), (copied[row + 1][at], locale), (saved[row + 1][at], QLocale.c())):
                    assert read(text, of) == pytest.approx(expected, rel=1e-13, abs=0), where
                assert locale.groupSeparator() not in copied[row + 1][at], where
            else:
                plain = re.sub(r"[\t\n]", " ", "; ".join(value) if isinstance(value, list) else value)
                assert shown == copied[row + 1][at] == plain, where
                assert saved[row + 1][at] == (re.sub(r"[\t\n]", " ", ";".join(value)) if isinstance(value, list) else plain), where
                if 0 < len(plain) < 90 and "<" not in plain:
                    assert tip == plain.strip() or tip == plain, where
        assert n_values, f"{column.name} has no value to test with"
    assert ("min" in seen_units) == (panel.title in WITH_TIMES)
    assert ("%" in seen_units) == (panel.title in ("Proteins", "Hits", "Clusters"))


def number_in_view(panel: TablePanel, name: str) -> list[float]:
    """Return the values of the cells of a column with all digits."""
    at = [column.name for column in panel.model.columns].index(name)
    return [read(panel.model.index(row, at).data(Qt.ItemDataRole.ToolTipRole), QLocale()) for row in range(len(panel.model.rows))]


def column_texts(panel: TablePanel, name: str) -> list[str]:
    at = [column.name for column in panel.model.columns].index(name)
    return [panel.model.index(row, at).data() for row in range(len(panel.model.rows))]


FILTERS = [
    ("identify", "q_value", {"proteins": "q_value", "peptides": "q_value", "psms": "q_value"}, "at most"),
    ("align", "e_value", {"hits": "e_value"}, "at most"),
    ("align", "identity", {"hits": "identity"}, "at least"),
    ("align", "coverage", {"hits": "query_coverage"}, "at least"),
]


@pytest.mark.parametrize(("kind", "field", "columns", "which"), FILTERS, ids=[case[1] for case in FILTERS])
def test_number_typed_in_a_filter_has_the_unit_of_the_column(
    kind: str, field: str, columns: dict[str, str], which: str, projects: dict[str, Project], views: Views, theme: Theme, qtbot: QtBot
) -> None:
    view = opened(kind, projects, views, qtbot)
    box: Any = getattr(view.filters, field)  # type: ignore[attr-defined]
    before = {name: number_in_view(view.panels[name], column) for name, column in columns.items()}
    middle = sorted(value for values in before.values() for value in values)[sum(map(len, before.values())) // 2]
    for typed in (middle, middle * 0.5, min(middle * 1.5, 99)):
        box.setValue(round(typed) if field in ("identity", "coverage") else typed)
        limit = box.value()
        view.filter_bar.filterChanged.emit()
        show_all(view, qtbot)
        for name, column in columns.items():
            expected = [value for value in before[name] if (value <= limit if which == "at most" else value >= limit)]
            assert sorted(number_in_view(view.panels[name], column)) == sorted(expected), f"{name}, {which} {limit}"


def test_charge_filter_lists_only_psms_of_the_selected_charge(
    projects: dict[str, Project], views: Views, theme: Theme, qtbot: QtBot
) -> None:
    view = opened("identify", projects, views, qtbot)
    assert isinstance(view, IdentificationView)
    before = column_texts(view.psms, "charge")
    for at in range(1, view.filters.charge.count()):
        view.filters.charge.setCurrentIndex(at)
        view.filters.charge.activated.emit(at)
        show_all(view, qtbot)
        wanted = view.filters.charge.currentText().removesuffix("+")
        assert column_texts(view.psms, "charge") == [text for text in before if text == wanted] != []


TEXTS = [
    ("identify", "proteins", ("group", "description")),
    ("identify", "peptides", ("peptide", "sequence", "proteins")),
    ("identify", "psms", ("peptide", "proteins")),
    ("align", "hits", ("query", "subject", "description")),
]


@pytest.mark.parametrize(("kind", "name", "columns"), TEXTS, ids=[case[1] for case in TEXTS])
def test_cell_text_typed_in_the_filter_finds_its_row(
    kind: str, name: str, columns: tuple[str, ...], projects: dict[str, Project], views: Views, theme: Theme, qtbot: QtBot
) -> None:
    """Check texts with a tab, a quotation mark, and several accessions, too."""
    view = opened(kind, projects, views, qtbot)
    panel = view.panels[name]
    cells = {column: column_texts(panel, column) for column in columns}
    everything = set(panel.model.rows.tolist())
    rows = {text: int(panel.model.rows[at]) for column in columns for at, text in enumerate(cells[column])}
    texts = sorted({max(cells[column], key=lambda text: (len(re.findall(r'[";|]', text)), text)) for column in columns})
    assert all(texts)
    for text in texts:
        view.filter_bar.text.setText(text)
        view.filter_bar.text.returnPressed.emit()
        show_all(view, qtbot)
        listed = set(panel.model.rows.tolist())
        assert rows[text] in listed, text
        assert listed <= everything
