"""Links to entries of public databases. A click opens the entry in the system's browser; the program itself does not download it."""

from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from proteoscope.engine.views.database_links import DatabaseLink, links_of_names
from proteoscope.gui.actions import make_action


def open_link(link: DatabaseLink, report: Callable[[str], object]) -> None:
    """Open a database entry in the browser; if there is no browser, call `report` with a message."""
    if not QDesktopServices.openUrl(QUrl(link.url)):
        report(f"No browser could be opened. The address is {link.url}")


def link_actions(links: Iterable[DatabaseLink], report: Callable[[str], object], parent: QObject) -> list[QAction]:
    """Return a menu action for each database entry; if there is no browser, an action calls `report` with a message."""
    actions = []
    for link in links:
        action = make_action(parent, f"Open {link.title} in the browser", partial(_open, link, report), tip=link.url)
        actions.append(action)
    return actions


def _open(link: DatabaseLink, report: Callable[[str], object], _: bool = False) -> None:
    open_link(link, report)


class LinksButton(QToolButton):
    """A button with a menu of the database entries to which protein or structure names refer. It is hidden if there are none.

    Parameters
    ----------
    report : callable
        Function that is called with a message if there is no browser.
    is_structure : bool
        True if the names are structure names, False if they are protein names.
    """

    def __init__(self, report: Callable[[str], object], parent: QWidget | None = None, *, is_structure: bool = False) -> None:
        super().__init__(parent)
        self._report, self._is_structure = report, is_structure
        self.links: tuple[DatabaseLink, ...] = ()
        self.setText("Databases")
        self.setToolTip("Open the entry in UniProt, AlphaFold DB or the PDB in the browser")
        self.setAccessibleName("Entries in public databases")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setMenu(QMenu(self))
        self.show_names(())

    def show_names(self, names: Iterable[str]) -> None:
        """Set the names of the proteins or structures whose database entries the menu lists."""
        self.links = links_of_names(names, is_structure=self._is_structure)
        menu = self.menu()
        menu.clear()
        menu.addActions(link_actions(self.links, self._report, menu))
        self.setVisible(bool(self.links))
