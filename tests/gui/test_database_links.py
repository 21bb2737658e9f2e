"""Tests of links to public databases in the window: offered for accessions of these databases, and opened by a click only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.views.coverage import cover
from proteoscope.gui import database_links
from proteoscope.gui.database_links import LinksButton
from proteoscope.gui.plots.coverage_map import CoverageMap
from proteoscope.gui.results.hits_view import HitsView
from proteoscope.gui.theme import Theme
from tests.engine.views.search_projects import random_protein, relative, write_fasta
from tests.gui.result_views import SharedView, cut_off, settle, shown
from tests.gui.x_events import Hand, move_onto_screen, x_events_problem
from tests.searching import align

HOSTILE = "x|P02769|<b>y</b>"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters

    folder, random = tmp_path_factory.mktemp("links"), np.random.default_rng(3)
    protein = random_protein(random, 120)
    headers = ("sp|P02769|ALBU_BOVIN Serum albumin OS=Bos taurus OX=9913 GN=ALB PE=1 SV=4", f"{HOSTILE} GN=<b>ALB</b>", "4F5S_1|Chains A")
    database = write_fasta(folder / "database.fasta", [(header, relative(random, protein, 0.1)) for header in headers])
    queries = write_fasta(folder / "queries.fasta", [("Q0 query", protein)])
    align([queries], [database], None, SequenceSearchParameters(), project_folder=folder / "project", device="cpu")
    return Project.open(folder / "project")


@pytest.fixture(scope="module")
def cached_view(project: Project, request: pytest.FixtureRequest) -> Iterator[SharedView[HitsView]]:
    opened_view = SharedView(HitsView(), project, request)
    yield opened_view
    opened_view.close()


@pytest.fixture
def view(cached_view: SharedView[HitsView], qtbot: QtBot, theme: Theme) -> HitsView:
    return cached_view.as_opened(qtbot)


@pytest.fixture
def opened_addresses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    addresses: list[str] = []

    def open_url(url: object) -> bool:
        addresses.append(url.toString())  # type: ignore[attr-defined]
        return len(addresses) == 1

    monkeypatch.setattr(database_links, "QDesktopServices", SimpleNamespace(openUrl=open_url))
    return addresses


def test_context_menu_of_hit_opens_database_entry_only_by_click(view: HitsView, qtbot: QtBot, opened_addresses: list[str]) -> None:
    names = shown(view.hits, "subject")
    offered, menus = {}, []
    for position, name in enumerate(names):
        view.hits.view.choose(position)
        settle(view, qtbot)
        menus.append(view.hits.view.row_menu())
        offered[name] = [action for action in menus[-1].actions() if "in the browser" in action.text()]
    assert {name: [action.text() for action in actions] for name, actions in offered.items()} == {
        "sp|P02769|ALBU_BOVIN": ["Open UniProt P02769 in the browser", "Open AlphaFold DB P02769 in the browser"],
        HOSTILE: [],
        "4F5S_1|Chains": ["Open PDB 4F5S in the browser"],
    }
    assert opened_addresses == []
    offered["sp|P02769|ALBU_BOVIN"][0].trigger()
    assert opened_addresses == ["https://www.uniprot.org/uniprotkb/P02769/entry"]
    with qtbot.waitSignal(view.hits.view.message) as signal:
        offered["4F5S_1|Chains"][0].trigger()
    assert signal.args == ["No browser could be opened. The address is https://www.rcsb.org/structure/4F5S"]
    for menu in menus:
        menu.deleteLater()


def test_details_of_a_hit_have_links_to_its_database_entries(view: HitsView, qtbot: QtBot, opened_addresses: list[str]) -> None:
    names = shown(view.hits, "subject")
    view.hits.view.choose(names.index("sp|P02769|ALBU_BOVIN"))
    settle(view, qtbot)
    for widget in (view.alignment, view.subject):
        view.tabs.setCurrentWidget(widget)
        settle(view, qtbot)
        assert widget.links.isVisible() and [link.title for link in widget.links.links] == ["UniProt P02769", "AlphaFold DB P02769"]
        assert not cut_off(widget)
    view.hits.view.choose(names.index(HOSTILE))
    settle(view, qtbot)
    assert not view.alignment.links.isVisible() and not view.subject.links.isVisible() and opened_addresses == []


def test_hits_table_shows_gene_and_organism_only_if_known(view: HitsView, qtbot: QtBot) -> None:
    rows = dict(zip(shown(view.hits, "subject"), zip(shown(view.hits, "gene"), shown(view.hits, "organism"), strict=True), strict=True))
    assert rows == {"sp|P02769|ALBU_BOVIN": ("ALB", "Bos taurus"), HOSTILE: ("<b>ALB</b>", None), "4F5S_1|Chains": (None, None)}


@pytest.mark.parametrize("names", [(), ("unknown", ""), ("P02769",), ("P02769", "P12345", "P00698")])
def test_database_links_button_is_hidden_without_links(names: tuple[str, ...], qtbot: QtBot) -> None:
    button = LinksButton(lambda _: None)
    qtbot.addWidget(button)
    button.show_names(names)
    n_links = 2 * sum(name.startswith(("P0", "P1")) for name in names)
    assert button.isHidden() == (not n_links) and len(button.menu().actions()) == n_links


def test_coverage_map_menu_has_links_to_the_entry_of_the_protein(qtbot: QtBot, opened_addresses: list[str]) -> None:
    plot = CoverageMap()
    qtbot.addWidget(plot)
    for name, titles in (
        ("sp|P02769|ALBU_BOVIN", ["UniProt P02769", "AlphaFold DB P02769"]),
        (HOSTILE, []),
        ("P02768", ["UniProt P02768"]),
    ):
        plot.show_coverage(cover(name, "PEPTIDEK", []))
        texts = [action.text() for action in plot.actions() if "in the browser" in action.text()]
        assert texts[: len(titles)] == [f"Open {title} in the browser" for title in titles] and bool(texts) == bool(titles)
    assert opened_addresses == []
    plot.link_actions[1].trigger()
    assert opened_addresses == ["https://alphafold.ebi.ac.uk/entry/P02768"]
    plot.show_coverage(None)
    assert plot.link_actions == []


class Browser(QObject):
    """Receiver of the web addresses that Qt would open in the browser."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    @Slot(QUrl)
    def open(self, url: QUrl) -> None:
        """Note an address."""
        self.opened.append(url.toString(QUrl.ComponentFormattingOption.FullyEncoded))


SCHEMES = ("https", "http", "javascript", "file", "data")


@pytest.fixture
def browser() -> Iterator[Browser]:
    made = Browser()
    for scheme in SCHEMES:
        QDesktopServices.setUrlHandler(scheme, made, "open")
    yield made
    for scheme in SCHEMES:
        QDesktopServices.unsetUrlHandler(scheme)


UNIPROT, ALPHAFOLD = "https://www.uniprot.org/uniprotkb/P02769/entry", "https://alphafold.ebi.ac.uk/entry/P02769"


@pytest.fixture
def pointer(view: HitsView, qtbot: QtBot) -> Iterator[Hand]:
    if x_events_problem():
        pytest.skip(x_events_problem())
    move_onto_screen(view, qtbot)
    made = Hand(qtbot)
    yield made
    made.close()


def open_menu(
    opens: Callable[[], None], then: Callable[[QMenu, Hand, QtBot], None], pointer: Hand, browser: Browser, qtbot: QtBot
) -> list[str]:
    """Open a menu, which blocks until it closes, act on it, and return the addresses that were opened."""
    done: list[bool] = []

    def act() -> None:
        assert browser.opened == [], "an open menu opens no address"
        then(pointer.menu(), pointer, qtbot)
        done.append(True)

    pointer.do_when(lambda: isinstance(QApplication.activePopupWidget(), QMenu), act)
    opens()
    qtbot.waitUntil(lambda: bool(done) and QApplication.activePopupWidget() is None)
    qtbot.wait(50)
    opened, browser.opened = browser.opened, []
    return opened


def escape(_menu: QMenu, pointer: Hand, _qtbot: QtBot) -> None:
    """Close the menu."""
    pointer.press("escape")


def click_uniprot(menu: QMenu, pointer: Hand, _qtbot: QtBot) -> None:
    """Click the link to UniProt."""
    pointer.choose(menu, link_of(menu, "UniProt"))


def enter_alphafold(menu: QMenu, pointer: Hand, qtbot: QtBot) -> None:
    """Go to the link to AlphaFold DB with the arrow key, and press Enter."""
    wanted = link_of(menu, "AlphaFold DB")
    for _ in menu.actions():
        if menu.activeAction() is not wanted:
            pointer.press("down")
            qtbot.wait(30)
    pointer.press("enter")


def test_database_links_open_by_x_events_of_mouse_and_keys(view: HitsView, pointer: Hand, browser: Browser, qtbot: QtBot) -> None:
    view.hits.view.choose(shown(view.hits, "subject").index("sp|P02769|ALBU_BOVIN"))
    settle(view, qtbot)
    in_menu = partial(open_menu, pointer=pointer, browser=browser, qtbot=qtbot)
    for widget in (view.alignment, view.subject):
        view.tabs.setCurrentWidget(widget)
        settle(view, qtbot)
        button = widget.links
        assert in_menu(lambda button=button: pointer.click(button), click_uniprot) == [UNIPROT]
        button.setFocus(Qt.FocusReason.TabFocusReason)
        assert button.hasFocus() and button.focusPolicy() & Qt.FocusPolicy.TabFocus
        assert in_menu(lambda: pointer.press("space"), escape) == []
        assert in_menu(lambda: pointer.press("space"), enter_alphafold) == [ALPHAFOLD]
    table = view.hits.view
    at = table.visualRect(table.currentIndex()).center()
    table.setFocus()
    assert in_menu(lambda: pointer.click(table.viewport(), at, is_right=True), escape) == []
    assert in_menu(lambda: pointer.click(table.viewport(), at, is_right=True), click_uniprot) == [UNIPROT]
    assert in_menu(lambda: pointer.press("menu"), enter_alphafold) == [ALPHAFOLD]


def link_of(menu: QMenu, title: str) -> QAction:
    """Return the action of a menu that opens an entry of a database."""
    return next(action for action in menu.actions() if action.text().startswith(f"Open {title}"))


def test_coverage_map_opens_database_link_by_x_events(browser: Browser, qtbot: QtBot) -> None:
    if x_events_problem():
        pytest.skip(x_events_problem())
    plot = CoverageMap()
    qtbot.addWidget(plot)
    plot.show_coverage(cover("sp|P02769|ALBU_BOVIN", "PEPTIDEK", []))
    plot.show()
    move_onto_screen(plot, qtbot)
    pointer = Hand(qtbot)
    in_menu = partial(open_menu, pointer=pointer, browser=browser, qtbot=qtbot)
    plot.setFocus()
    assert in_menu(lambda: pointer.click(plot.viewport(), is_right=True), click_uniprot) == [UNIPROT]
    assert in_menu(lambda: pointer.press("menu"), enter_alphafold) == [ALPHAFOLD]
    assert in_menu(lambda: pointer.press("menu"), escape) == []
    pointer.close()


HOSTILE_NAMES = (
    *("javascript:alert(1)", "https://evil.example/P02769", "file:///etc/passwd", "P02769/../x", "P02769?q=1", "P02769#x", "P02769'"),
    *(
        'P02769"',
        "P02769 ",
        "P 02769",
        "P02769\n",
        "P02769%2F..",
        "%50%302769",
        "sp|P02769/x|Y_Z",
        "4f5s/..",
        "4f5s%0A",
        "4f5s\n",
        "../4f5s",
    ),
)


@pytest.mark.parametrize("is_structure", [False, True])
def test_hostile_accessions_have_no_database_link(is_structure: bool, browser: Browser, qtbot: QtBot) -> None:
    button = LinksButton(lambda _: None, is_structure=is_structure)
    plot = CoverageMap()
    qtbot.addWidget(button)
    qtbot.addWidget(plot)
    for name in HOSTILE_NAMES:
        button.show_names([name])
        plot.show_coverage(cover(name, "PEPTIDEK", []))
        assert button.isHidden() and button.menu().isEmpty() and plot.link_actions == [], name
    button.show_names([*HOSTILE_NAMES[:9], "sp|P02769|ALBU_BOVIN", *HOSTILE_NAMES[9:]])
    assert browser.opened == []
    for action in button.menu().actions():
        action.trigger()
    assert browser.opened == [UNIPROT, ALPHAFOLD]


def test_only_three_modules_open_addresses_in_the_browser() -> None:
    folder = Path(database_links.__file__).parent
    users = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if "openUrl" in path.read_text(encoding="utf-8")}
    assert users == {"database_links.py", "run_actions.py", "help/help_window.py"} and QDesktopServices is not None
