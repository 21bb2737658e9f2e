"""Handling of dropped files, presets and projects."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from PySide6.QtCore import QMimeData, QObject, QUrl, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from proteoscope.engine.entry import FileContent
from proteoscope.engine.escaped_names import escape_unprintable
from proteoscope.gui.forms.file_inspection import FileInspection, FileInspector
from proteoscope.gui.message_bar import MessageBar
from proteoscope.gui.searches import SearchPages

_NOTHING = "None of the dropped items is a project or a file that a search reads."


_THIS_MACHINE = ("", "localhost")


def has_paths(content: QMimeData) -> bool:
    """Return True if a local file or folder is among the dropped items."""
    return any(_path_of(url) is not None for url in content.urls())


def dropped_paths(content: QMimeData) -> tuple[list[Path], int]:
    """Return the paths of the dropped items, and the number of dropped URLs that are not local files."""
    urls = content.urls()
    paths = [path for path in map(_path_of, urls) if path is not None]
    return paths, len(urls) - len(paths)


def _path_of(url: QUrl) -> Path | None:
    """Return the absolute path of a local URL, or None for other URLs."""
    name = url.toLocalFile()
    # On Windows, the URL of a network share has a host name, and the share can be read like local files.
    if not name or (os.name != "nt" and url.host() not in _THIS_MACHINE):
        return None
    path = Path(name.removeprefix("//localhost"))
    return path if path.is_absolute() else None


class DropHandler(QObject):
    """Handler of dropped files, which are added to forms; files that cannot be used are reported.

    Parameters
    ----------
    searches : callable
        Function that returns all searches, starting with the current one.
    inspector : FileInspector
        Inspector that determines the types of files.
    bar : MessageBar
        Message bar that reports if none of the dropped files can be used.
    parent : QObject
        Owner of this object.

    Signals
    -------
    message
        Text for the status bar.
    project_dropped
        Folder of a project to open.
    page_requested
        Page to show.
    failed
        Error text.
    """

    message = Signal(str)
    project_dropped = Signal(object)
    page_requested = Signal(object)
    failed = Signal(str)

    def __init__(self, searches: Callable[[], list[SearchPages]], inspector: FileInspector, bar: MessageBar, parent: QObject) -> None:
        super().__init__(parent)
        self._searches, self._inspector, self._bar = searches, inspector, bar

    def take(self, paths: Sequence[Path], n_others: int, target: QWidget | None) -> None:
        """Inspect dropped files and folders; use presets, projects, and the files that a form accepts.

        Parameters
        ----------
        paths : sequence of Path
            Dropped files and folders.
        n_others : int
            Number of dropped URLs that are not local files.
        target : QWidget or None
            Widget on which they were dropped.
        """
        self.message.emit("Inspecting files")
        self._inspector.all_within(paths, partial(self._take, n_others, target))

    def _take(self, n_others: int, target: QWidget | None, inspection: FileInspection) -> None:
        self.message.emit("")
        self._bar.clear_complaint()
        problems = [file.problem for file in inspection.files if file.problem]
        if n_others:
            problems.append(
                f"{n_others:,} of the dropped items {'is' if n_others == 1 else 'are'} not on this machine. "
                f"Copy {'it' if n_others == 1 else 'them'} here first."
            )
        searches = self._searches()
        form = searches[0].made_form
        if inspection.projects and form is not None and form.isVisible() and form.given_project is not None:
            form.given_project.files.give_project(inspection.projects[0])
        elif inspection.projects:
            self.project_dropped.emit(inspection.projects[0])
        for preset in inspection.presets[:1]:
            search = next((search_pages for search_pages in searches if search_pages.knows_preset(preset)), searches[0])
            search.form.presets.load_file(preset)
            self.page_requested.emit(search.form)
        taker = _taker(self._searches(), inspection.contents)
        if taker is not None:
            self._fill(taker, inspection, target)
            self._report_others(taker, inspection)
        elif inspection.presets:
            self.page_requested.emit(self._searches()[0].form)
        if problems:
            more = f" ({len(problems) - 1} more like this)" if len(problems) > 1 else ""
            self.failed.emit(" ".join(problems[0].split()) + more)  # file names may contain line breaks
        elif not (taker or inspection.presets or inspection.projects):
            self._bar.show_message(_NOTHING, "attention")

    def _fill(self, taker: SearchPages, inspection: FileInspection, target: QWidget | None) -> None:
        """Show the form of a search with the files that it accepts."""
        if not taker.form.isVisible():
            # The form is not visible: do not add the files to content that the user does not see.
            taker.form.empty_for_new_search()
        # The widget under the pointer may have gone while the files were inspected.
        taker.form.take(inspection, target if target is not None and isValid(target) else None)
        self.page_requested.emit(taker.form)

    def _report_others(self, taker: SearchPages, inspection: FileInspection) -> None:
        """Report the files that the form of `taker` does not accept, and offer to fill them into the form of another search."""
        left = [file for file in inspection.files if file.content is not None and file.content not in taker.search.contents]
        if not left:
            return
        contents: set[FileContent] = {file.content for file in left if file.content is not None}
        other = _taker(self._searches(), contents)
        assert other is not None, "some search reads each type of file"
        name = escape_unprintable(left[0].path.name)
        names = name if len(left) == 1 else f"{name} and {len(left) - 1:,} more"
        verb = "is" if len(left) == 1 else "are"
        self._bar.show_message(
            f"{names} {verb} not used: the {taker.search.name} does not read {'this file' if len(left) == 1 else 'these files'}.",
            "attention",
            f"New {other.search.name}",
            partial(self._fill, other, inspection, None),
        )


def _taker(searches: list[SearchPages], contents: set[FileContent]) -> SearchPages | None:
    """Return the search to which dropped files of the types `contents` are added, or None if no search accepts any of them.

    This is the search whose form is visible if it accepts some of the types; otherwise the first search that accepts all types, or, if
    there is none, the first that accepts some.
    """
    some = [search for search in searches if contents & search.search.contents]
    seen = (search for search in some if search.made_form is not None and search.made_form.isVisible())
    whole = (search for search in some if contents <= search.search.contents)
    return next(chain(seen, whole, some), None)
