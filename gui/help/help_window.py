"""Help window: manual, glossary and shortcuts, available offline."""

from collections.abc import Callable, Sequence
from html import escape

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage, QKeySequence, QShortcut, QTextCursor, QTextDocument
from PySide6.QtWidgets import (
    QDialog,
    QHeaderView,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QTextBrowser,
    QWidget,
)

from proteoscope.engine.views.glossary import Term, matching
from proteoscope.gui.help.help_targets import BEGINNING, HelpTarget, manual_folder, manual_page
from proteoscope.gui.help.shortcuts import Shortcut
from proteoscope.gui.labels import described, tip_text, toned_label
from proteoscope.gui.layouts import in_column
from proteoscope.gui.tabs import PageTabs

_MANUAL, _GLOSSARY, _SHORTCUTS = range(3)
_LIST_WIDTH = 230
_LEAST_FIGURE = 320
_GENERATED = "reference/"
"""Folder of generated pages that exist only in the HTML manual; in this window, the glossary has the same content."""


class HelpWindow(QDialog):
    """Window with three tabs: manual, glossary and shortcuts.

    Parameters
    ----------
    terms : sequence of Term
        Terms of the glossary.
    shortcuts : callable
        Function that returns the shortcuts that the window has now.
    """

    def __init__(self, terms: Sequence[Term], shortcuts: Callable[[], list[Shortcut]], parent: QWidget) -> None:
        super().__init__(parent)
        self._terms, self._shortcuts = terms, shortcuts
        self.setWindowTitle("Help")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(900, 600)
        self.tabs = PageTabs()
        self.wanted_pages, self.contents, self.page = _search("Find in the manual"), _list("Pages of the manual"), _ManualPage()
        self.wanted_word, self.words, self.meaning = _search("Find a term"), _list("Terms"), _browser("Meaning")
        self.wanted_keys, self.keys = _search("Find keys"), QTableWidget(0, 3)
        self.found = toned_label()
        self._fill_contents()
        self._lay_out()
        self.wanted_pages.textChanged.connect(self._find_pages)
        self.contents.currentItemChanged.connect(lambda item: self._open_page(item))
        self.page.anchorClicked.connect(self._follow)
        self.words.currentItemChanged.connect(lambda item: self._show_term(item))
        self.meaning.anchorClicked.connect(self._follow)
        self.wanted_word.textChanged.connect(self._find_words)
        self.wanted_keys.textChanged.connect(self._find_keys)
        self.tabs.currentChanged.connect(self._focus_first)
        find = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
        find.activated.connect(self._focus_first)
        self._find_words("")
        self._find_keys("")

    def show_place(self, position: HelpTarget) -> None:
        """Show the glossary term of a help target if it has one, otherwise its manual page."""
        self.show_page(position.page)
        if position.term and self.show_term(position.term, position.meaning):
            return
        self.tabs.setCurrentIndex(_MANUAL)
        self.page.setFocus()

    def show_page(self, name: str) -> None:
        """Show a page of the manual, or the first page if the list of contents does not contain it."""
        self.wanted_pages.clear()
        self.contents.setCurrentRow(self._rows().get(name, self._rows().get(BEGINNING, 0)))

    def _rows(self) -> dict[str, int]:
        """Return the rows of the pages in the list of contents, by page name."""
        return {self.contents.item(row).data(Qt.ItemDataRole.UserRole): row for row in range(self.contents.count())}

    def show_term(self, title: str, meaning: str = "") -> bool:
        """Show the glossary terms with a title, and select the term with the given meaning; return False if no term has this title."""
        if not any(term.title == title or term.title.partition(" (")[0] == title for term in self._terms):
            return False
        self.tabs.setCurrentIndex(_GLOSSARY)
        self.wanted_word.setText(title.partition(" (")[0])
        shown = [self.words.item(row).data(Qt.ItemDataRole.UserRole) for row in range(self.words.count())]
        named = [row for row, term in enumerate(shown) if title in (term.title, term.title.partition(" (")[0])]
        meant = [row for row in named if shown[row].meaning == meaning]
        exact = [row for row in named if shown[row].title == title]
        self.words.setCurrentRow([*meant, *exact, *named, 0][0])
        return True

    def show_shortcuts(self) -> None:
        """Show the current keyboard shortcuts."""
        self._find_keys(self.wanted_keys.text())
        self.tabs.setCurrentIndex(_SHORTCUTS)

    def show_glossary(self) -> None:
        """Show the glossary with all terms."""
        self.wanted_word.clear()
        self.tabs.setCurrentIndex(_GLOSSARY)

    def _lay_out(self) -> None:
        for title, top, left, right in (
            ("&Manual", (self.wanted_pages,), self.contents, self.page),
            ("&Glossary", (self.wanted_word, self.found), self.words, self.meaning),
        ):
            parts = QSplitter()
            parts.addWidget(left)
            parts.addWidget(right)
            parts.setSizes([_LIST_WIDTH, 3 * _LIST_WIDTH])
            parts.setStretchFactor(1, 1)
            self.tabs.addTab(_column(*top, parts), title)
        self.keys.setHorizontalHeaderLabels(["Keys", "Action", "Where"])
        self.keys.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.keys.horizontalHeader().setStretchLastSection(True)
        self.keys.verticalHeader().hide()
        self.keys.setShowGrid(False)
        self.keys.setAlternatingRowColors(True)
        self.keys.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.keys.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.keys.setTabKeyNavigation(False)
        self.keys.setAccessibleName("Keyboard shortcuts")
        self.tabs.addTab(_column(self.wanted_keys, self.keys), "&Shortcuts")
        in_column(self.tabs, on=self, margins=None)

    def _fill_contents(self) -> None:
        names = sorted(path.stem for path in manual_folder().glob("*.md"))
        for name in sorted(names, key=lambda name: name != BEGINNING):
            title = manual_page(name).partition("\n")[0].lstrip("# ")
            item = QListWidgetItem(title)
            item.setToolTip(tip_text(title))
            item.setData(Qt.ItemDataRole.UserRole, name)
            self.contents.addItem(item)

    def _find_pages(self, wanted: str) -> None:
        """List only the pages that contain all words in `wanted`, and show the first match in the first of these pages."""
        words = wanted.casefold().split()
        for row in range(self.contents.count()):
            item = self.contents.item(row)
            text = manual_page(item.data(Qt.ItemDataRole.UserRole)).casefold() if words else ""
            item.setHidden(not all(word in text for word in words))
        shown = [row for row in range(self.contents.count()) if not self.contents.item(row).isHidden()]
        if words and shown:
            if self.contents.currentRow() not in shown:
                self.contents.setCurrentRow(shown[0])
            self.page.moveCursor(QTextCursor.MoveOperation.Start)
            if not self.page.find(wanted.strip()):
                self.page.find(words[0])

    def _open_page(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.page.setMarkdown(manual_page(item.data(Qt.ItemDataRole.UserRole)))

    def _follow(self, link: QUrl) -> None:
        """Open the target of a link: pages of the manual in this window, web pages in the browser."""
        if link.scheme() in ("http", "https"):
            QDesktopServices.openUrl(link)
        elif link.path().startswith(_GENERATED):
            self.show_glossary()
        elif link.fileName().endswith(".md"):
            self.tabs.setCurrentIndex(_MANUAL)
            name = link.fileName().removesuffix(".md")
            if name in self._rows():
                self.show_page(name)
            else:  # a page for developers, which is not in the list of contents
                self.contents.setCurrentRow(-1)
                self.page.setMarkdown(manual_page(name))

    def _find_words(self, wanted: str) -> None:
        result = matching(self._terms, wanted)
        self.words.clear()
        for term in result:
            item = QListWidgetItem(term.title)
            item.setToolTip(tip_text(term.meaning))
            item.setData(Qt.ItemDataRole.UserRole, term)
            self.words.addItem(item)
        self.found.setText(
            f"{len(result):,} of {len(self._terms):,} columns and settings" if result else f"No term contains “{wanted.strip()}”"
        )
        self.meaning.clear()
        if result:
            self.words.setCurrentRow(0)

    def _show_term(self, item: QListWidgetItem | None) -> None:
        if item is None:
            return
        term: Term = item.data(Qt.ItemDataRole.UserRole)
        sort = "Setting" if term.is_setting else "Column"
        positions = "".join(f"<li>{escape(position)}</li>" for position in term.used_in)
        names = ", ".join(f"<code>{escape(name)}</code>" for name in term.names)
        self.meaning.setHtml(
            f"<h3>{escape(term.title)}</h3><p>{escape(term.meaning)}</p><p>{sort}, in files and on the command line {names}. Used in:</p>"
            f"<ul>{positions}</ul>"
        )

    def _find_keys(self, wanted: str) -> None:
        words = wanted.casefold().split()
        result = [
            shortcut
            for shortcut in self._shortcuts()
            if all(word in f"{shortcut.keys} {shortcut.description} {shortcut.where}".casefold() for word in words)
        ]
        self.keys.setRowCount(len(result))
        for row, entry in enumerate(result):
            for column, text in enumerate((entry.keys, entry.description, entry.where)):
                item = QTableWidgetItem(text)
                item.setToolTip(tip_text(text))
                self.keys.setItem(row, column, item)

    def _focus_first(self) -> None:
        (self.wanted_pages, self.wanted_word, self.wanted_keys)[self.tabs.currentIndex()].setFocus()


class _ManualPage(QTextBrowser):
    """Text browser for pages of the manual, which scales figures to its width."""

    def __init__(self) -> None:
        super().__init__()
        self.setOpenLinks(False)
        self.setAccessibleName("Manual")
        self.setSearchPaths([str(manual_folder())])

    def loadResource(self, kind: int, name: QUrl | str) -> object:  # noqa: N802 - Qt's name
        if kind != QTextDocument.ResourceType.ImageResource.value:
            return super().loadResource(kind, name)
        image = QImage(str(manual_folder() / QUrl(name).path()))
        # Long pages need the scroll bar, which appears only after the figures are loaded.
        page = self.contentsRect().width() - self.verticalScrollBar().sizeHint().width()
        space = max(page - 4 * int(self.document().documentMargin()), _LEAST_FIGURE)
        return image.scaledToWidth(space, Qt.TransformationMode.SmoothTransformation) if image.width() > space else image


def _column(*widgets: QWidget) -> QWidget:
    whole = QWidget()
    page = in_column(on=whole, margins=8)
    for widget in widgets:
        page.addWidget(widget, int(widget is widgets[-1]))
    return whole


def _list(name: str) -> QListWidget:
    made = described(QListWidget(), name)
    made.setTextElideMode(Qt.TextElideMode.ElideRight)
    made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return made


def _browser(name: str) -> QTextBrowser:
    return described(QTextBrowser(openLinks=False), name)


def _search(name: str) -> QLineEdit:
    return described(QLineEdit(placeholderText=name, clearButtonEnabled=True), name)
