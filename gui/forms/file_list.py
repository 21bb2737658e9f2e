"""List of input files, which are added with a dialog or by drag and drop, inspected, and shown with their types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QLocale, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSizePolicy,
    QWidget,
)
from shiboken6 import isValid

from proteoscope.engine.entry import FileContent, Input
from proteoscope.engine.formats.registry import library_suffixes
from proteoscope.engine.formats.sequence_type import InputContent, SequenceCount, are_nucleotides_suspicious, classify_sequences
from proteoscope.gui.actions import delayed
from proteoscope.gui.buttons import push_button
from proteoscope.gui.file_dialogs import prompt_for_path, prompt_for_paths
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.forms.file_inspection import FILE_CATEGORIES, FileCategory, FileInspection, FileInspector, FileKind
from proteoscope.gui.icons import icon
from proteoscope.gui.labels import show_text, tip_text, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row
from proteoscope.gui.theme import colours
from proteoscope.gui.undo import Change, forget_changes, record

if TYPE_CHECKING:
    from proteoscope.engine.formats.spectra_content import SpectraContent
    from proteoscope.engine.structures.counting import StructureCount

_Found = TypeVar("_Found")
_MAXIMUM_ROWS = 7
_MAXIMUM_NAMED = 3
_MAXIMUM_NAME = 26
"""Maximum number of characters of a file name on a button."""
_COUNTING_MS = 50
"""Milliseconds for which facts about files are collected before the list is updated, since an update with thousands of files is slow."""
_SHOWN = Qt.ItemDataRole.UserRole + 1
"""Qt item role of the text with facts about a file."""
_COUNTED = ("proteins", "reads")
"""File types for which the list shows the number of sequences."""

_UNKNOWN = FileKind(Path(), None)
"""Placeholder for a file that has not been inspected yet."""


class FileList(QWidget):
    """List of the files of one input of a search, with buttons to add and remove files.

    Parameters
    ----------
    spec : Input
        Description of the input.
    inspector : FileInspector
        Inspector that determines the types of the files.
    takes_broken : bool
        True if the search skips unreadable structures, so that they are not an error.
    elsewhere : mapping of str to collection of FileContent, optional
        File types of the other inputs of the form, by input title.

    Signals
    -------
    changed
        The files have changed, or one of them has been inspected.
    counted
        The content of a file has been read.
    database_requested
        A database is to be built for this input.
    """

    changed = Signal()
    counted = Signal()
    database_requested = Signal()

    def __init__(
        self,
        spec: Input,
        inspector: FileInspector,
        *,
        takes_broken: bool = False,
        elsewhere: Mapping[str, Collection[FileContent]] | None = None,
    ) -> None:
        super().__init__()
        self._takes_broken, self._elsewhere = takes_broken, elsewhere or {}
        self._spec, self._category, self._inspector = spec, FILE_CATEGORIES[spec.content], inspector
        self._contents = frozenset(spec.contents)
        self._known: dict[Path, FileKind] = {}
        self.counts: dict[Path, SequenceCount] = {}
        """Sequence counts of FASTA and FASTQ files."""
        self.spectra: dict[Path, SpectraContent] = {}
        """Contents of the first spectrum files, as far as they have been read."""
        self._pending_spectra: set[Path] = set()
        self._being_counted: set[Path] = set()
        self.structure_counts: dict[Path, StructureCount] = {}
        """Contents of inspected structures."""
        # Facts about many files are shown with a single update of the list.
        self._showing = delayed(self, self._show_state)
        self._counting = delayed(self, self._show_facts, _COUNTING_MS)
        self.start_folder = ""
        """Start folder of the file dialog; '' to start where the form has other files."""
        self.folder_of_others: Callable[[], str] = lambda: ""
        """Function that returns the folder of the files of the other inputs, or ''."""
        self._takes_project = spec.content == "project"
        self._open_project: Path | None = None
        self._last_files: tuple[Path, ...] = ()
        how = "choose it" if self._takes_project else "add them"
        optional = " (optional)" if spec.is_optional else ""
        self.lines = _Lines(f"Drop {spec.hint or self._category.hint} here, or {how} below{optional}", self.remove_selected)
        self.lines.setAccessibleName(spec.title)
        self.frame = Outlined(self.lines)
        self.message = self.frame.message
        self.note = toned_label(is_hidden=True)
        self.warning = toned_label(tone="attention", is_hidden=True)
        self.left_out = toned_label(tone="attention", is_hidden=True)
        """Label with the skipped files of an added folder and the reasons."""
        self.add_button = _button("Add files…", "add", self.prompt_for_files)
        self.folder_button = _button("Choose project…" if self._takes_project else "Add folder…", "folder", self.prompt_for_folder)
        self.project_button = _button("The open project", "open", self._take_open_project)
        self.last_button = _button("", "reset", self._take_last)
        """Button that adds the files of the previous search."""
        self.remove_button = _button("Remove", "remove", self.remove_selected)
        self.database_button = _button("New database…", "database", self.database_requested.emit)
        self.database_button.setToolTip("Build a structure database from files, which makes repeated searches much faster")
        # Show buttons only after they have a parent: without a parent they would briefly appear as windows.
        for button, is_wanted in (
            (self.add_button, not self._takes_project),
            (self.project_button, self._takes_project),
            (self.database_button, spec.second_content == "structure database"),
        ):
            if not is_wanted:
                button.hide()
        self.lines.itemSelectionChanged.connect(self._enable)
        in_column(
            self.frame,
            self.message,
            self.note,
            self.warning,
            self.left_out,
            in_row(
                self.add_button,
                self.folder_button,
                self.project_button,
                self.last_button,
                self.database_button,
                self.remove_button,
                STRETCH,
            ),
            on=self,
            spacing=4,
        )
        self._enable()

    @property
    def paths(self) -> list[Path]:
        """The files in their order in the list."""
        return [self.lines.item(i).data(Qt.ItemDataRole.UserRole) for i in range(self.lines.count())]

    @property
    def is_empty(self) -> bool:
        """True if there are no files."""
        return not self.lines.count()

    def problem(self) -> str:
        """Return the reason why a search cannot use these files, or ''; also '' while the files are being inspected."""
        for path in self.paths:
            file = self._known.get(path)
            if file is not None and self._problem_of(file):
                return self._problem_of(file)
            counted = self.structure_counts.get(path)
            if counted is not None and counted.problem and not self._takes_broken:
                return counted.problem
            if file is not None and file.content == self._spec.second_content is not None and self.lines.count() > 1:
                return f"{path.name} is a {file.format}, which cannot be combined with other files; remove it or the others"
        counted_all = [self.counts.get(path) for path in self.paths if self._known.get(path, _UNKNOWN).content in _COUNTED]
        if counted_all and all(count is not None and count.is_whole and not count.n_residues for count in counted_all):
            return f"{self.paths[0].name} contains names without sequences; choose a file with sequences"
        return "" if self._spec.several or self.lines.count() <= 1 else "Only one file can be searched here; remove the others"

    @property
    def spectra_contents(self) -> list[SpectraContent]:
        """Contents of the inspected spectrum files."""
        return [self.spectra[path] for path in self.paths if path in self.spectra]

    @property
    def is_counted(self) -> bool:
        """True if all files have been inspected and no content is still being read."""
        return self.is_examined and not self._being_counted.intersection(self.paths)

    def content(self) -> InputContent | None:
        """Return the content of the first file: number and type of its sequences. Return None if they have not been counted."""
        path = next(iter(self.paths), None)
        if path is None or path not in self.counts or path not in self._known:
            return None
        return InputContent(self.counts[path], self._known[path].content == "reads")

    @property
    def is_examined(self) -> bool:
        """True if the types of all files are known."""
        return all(path in self._known for path in self.paths)

    def take(self, files: Iterable[FileKind]) -> None:
        """Add the inspected files that this input accepts."""
        self.add(file.path for file in files if file.contents & self._contents)

    def add(self, paths: Iterable[Path]) -> None:
        """Add files that are not in the list yet."""
        present = set(self.paths)
        whole = (path if path.is_absolute() else path.absolute() for path in map(Path, paths))
        new = [path for path in dict.fromkeys(whole) if path not in present]
        for path in new:
            item = QListWidgetItem(f"{path.name}    {path.parent}")
            item.setData(Qt.ItemDataRole.UserRole, path)
            self.lines.addItem(item)
        self._known = {path: file for path, file in self._known.items() if path in present}
        self._inspector.files(new, self._while_open(self._add_facts))
        self._show_state()

    def give_project(self, folder: Path) -> None:
        """Replace the files by a project folder."""
        if self.paths != [folder.absolute()]:
            self.lines.clear()
            self.add([folder])

    def offer_project(self, folder: Path) -> None:
        """Suggest the open project, and use it if no project is selected."""
        self._open_project = folder
        if self.is_empty:
            self.give_project(folder)
        self._enable()

    def offer_last(self, paths: Iterable[Path]) -> None:
        """Suggest the files of the previous search with a button, which is shown while the list is empty."""
        self._last_files = tuple(paths)
        names = ", ".join(path.name for path in self._last_files)
        names = names if len(names) <= _MAXIMUM_NAME else f"{names[: _MAXIMUM_NAME - 1]}…"
        self.last_button.setText(f"Use {names}".replace("&", "&&"))
        self.last_button.setToolTip(tip_text("Used by the last search:\n" + "\n".join(map(str, self._last_files))))
        self._enable()

    def empty_for_new_search(self) -> None:
        """Remove all files; if the input is a project, use the open project."""
        self.clear()
        if self._open_project is not None:
            self.give_project(self._open_project)

    def remove_selected(self) -> None:
        """Remove the selected files."""
        before = self.paths
        for item in self.lines.selectedItems():
            self.lines.takeItem(self.lines.row(item))
        self._show_state()
        if n := len(before) - self.lines.count():
            record(Change("remove a file" if n == 1 else f"remove {n} files", self, before, self.paths, self._set_paths))

    def _set_paths(self, paths: list[Path]) -> None:
        self.lines.clear()
        self.add(paths)

    def clear(self) -> None:
        """Remove all files."""
        self.left_out.hide()
        self.lines.clear()
        forget_changes(self)
        self._show_state()

    def inspect_again(self) -> None:
        """Inspect the files again, since they may have changed."""
        self._inspector.files(self.paths, self._while_open(self._add_facts))

    def mark_missing(self) -> None:
        """Mark files that no longer exist, before a search starts."""
        gone = [path for path in self.paths if not path.exists()]
        for path in gone:
            self._known[path] = FileKind(path, None, problem=f"{path} no longer exists; remove it from the list or restore it")
        if gone:
            self._show_state()

    def redraw(self) -> None:
        """Redraw the icons in the colours of the palette."""
        for i in range(self.lines.count()):
            self.lines.item(i).setData(_SHOWN, None)
            self._show_item(self.lines.item(i))

    def prompt_for_files(self) -> None:
        """Open a file dialog."""
        folder, filters = self.start_folder or self.folder_of_others(), [*self._name_filters(), "All files (*)"]
        prompt_for_paths(self, "Choose files", self._take_chosen, folder=folder, filters=filters)

    def prompt_for_folder(self) -> None:
        """Open a dialog for a folder: a project, if the input is a project, or else a folder whose suitable files are added."""
        folder = self.start_folder or self.folder_of_others()
        prompt_for_path(self, "Choose a folder", self._take_folder, "folder", folder=folder)

    def _name_filters(self) -> list[str]:
        """Return the filters of the file dialog: one for all files of this input and, if it accepts several file types, one for each."""
        categories = [FILE_CATEGORIES[content] for content in self._spec.contents if FILE_CATEGORIES[content].suffixes]
        every = FileCategory(" and ".join(category.title for category in categories), self._spec.contents)
        return [category.name_filter for category in ([every, *categories] if len(categories) > 1 else categories)]

    def _take_chosen(self, paths: list[Path]) -> None:
        self.start_folder = str(paths[0].parent)
        self.add(paths)

    def _take_folder(self, folder: Path) -> None:
        self.start_folder = str(folder.parent if self._takes_project else folder)
        if self._takes_project:
            self.give_project(folder)
        else:
            self._inspector.all_within([folder], self._while_open(partial(self._take_found, folder)))

    def _take_found(self, folder: Path, inspection: FileInspection) -> None:
        """Add those files of a folder that this input accepts, and report its other files."""
        self.take(inspection.files)
        others = [file for file in (*inspection.files, *inspection.left_out) if not file.contents & self._contents]
        taken = len(inspection.files) + len(inspection.left_out) - len(others)
        names = ", ".join(file.path.name for file in others[:_MAXIMUM_NAMED])
        more = f" and {len(others) - _MAXIMUM_NAMED} more" if len(others) > _MAXIMUM_NAMED else ""
        held = self._category.held
        if others:
            show_text(self.left_out, f"{folder.name}: {'left out' if taken else f'contains no {held}, only'} {names}{more}")
        else:
            show_text(self.left_out, "" if taken else f"{folder.name} contains no files")
        reasons = [file.problem or f"{file.path}: {file.format}" for file in others[:_MAXIMUM_ROWS]]
        self.left_out.setToolTip(tip_text("\n".join(reasons)))

    def _take_open_project(self) -> None:
        if self._open_project is not None:
            self.give_project(self._open_project)

    def _take_last(self) -> None:
        self.add(self._last_files)

    def _while_open(self, take: Callable[[_Found], object]) -> Callable[[_Found], None]:
        """Return a function that calls `take` unless this list was deleted meanwhile, for example because its dialog was closed."""

        def take_if_open(result: _Found) -> None:
            if isValid(self):
                take(result)

        return take_if_open

    def _add_facts(self, file: FileKind) -> None:
        if self._known.get(file.path) == file:
            return
        self._known[file.path] = file
        if file.content in _COUNTED and file.content in self._spec.contents and file.path not in self.counts:
            self._being_counted.add(file.path)
            self._inspector.count(file.path, self._while_open(partial(self._store_count, file.path)))
        if file.content in self._spec.contents and self._spec.content == "structures" and file.path not in self.structure_counts:
            self._inspector.count_structures(file, self._while_open(partial(self._store_structure_count, file.path)))
        elif (
            file.content == "spectra" and file.content in self._contents and file.path.is_file() and file.path not in self._pending_spectra
        ):
            self._pending_spectra.add(file.path)
            self._inspector.inspect_spectra(file.path, self._while_open(partial(self._store_spectra, file.path)))
        self._showing.start()

    def _store_spectra(self, path: Path, content: SpectraContent | None) -> None:
        self._pending_spectra.discard(path)
        if content is None:
            return
        self.spectra[path] = content
        self._counting.start()

    def _store_structure_count(self, path: Path, count: StructureCount | None) -> None:
        if count is not None:
            self.structure_counts[path] = count
            if count.problem:
                self._showing.start()
            else:
                self._counting.start()

    def _show_facts(self) -> None:
        """Show new facts about the files, without emitting `changed`, since the search request of the form is unchanged."""
        self._show_counts()
        for i in range(self.lines.count()):
            self._show_item(self.lines.item(i))
        self.counted.emit()

    def _store_count(self, path: Path, count: SequenceCount | None) -> None:
        self._being_counted.discard(path)
        if count is not None:
            self.counts[path] = count
            self._show_counts()
            if not count.n_residues:
                self._showing.start()
        self.counted.emit()

    def _problem_of(self, file: FileKind) -> str:
        if self._takes_project and file.content != "project":
            return f"{file.path} is not a project; choose a project folder"
        if file.unknown:
            accepted = (self._spec.hint or self._category.hint).rstrip(",")
            return f"{file.path.name} {file.unknown.replace('is in no', 'is text in no', 1)}; choose {accepted}"
        if file.problem or file.contents & self._contents:
            return file.problem
        if file.content is None or file.content in ("structure database", "project"):
            return f"{file.path.name} is a {file.format}; choose files here"
        if (file.content, self._spec.content) == ("proteins", "spectra"):
            return f"{file.path.name} is a {file.format} file of sequences; add it to the protein databases"
        if file.content == "spectra" and self._spec.content == "libraries" and file.path.name.lower().endswith(library_suffixes()):
            return f"{file.path.name} is not a spectral library: its spectra ({file.format}) have no identities (SEQ=, NAME=)"
        position = next((title for title, contents in self._elsewhere.items() if file.content in contents), "")
        belongs = f". Add it to {position}" if position else ""
        return f"{file.path.name} contains {FILE_CATEGORIES[file.content].held} ({file.format}), not {self._category.held}{belongs}"

    def _show_state(self) -> None:
        for i in range(self.lines.count()):
            self._show_item(self.lines.item(i))
        problem, inspected = self.problem(), [self._known.get(path) for path in self.paths]
        n_more = sum(file is not None and bool(self._problem_of(file)) for file in inspected) - 1
        self.frame.show_problem(f"{problem} ({_counted(n_more, 'more file')} cannot be used)" if problem and n_more > 0 else problem)
        self._show_counts()
        self.lines.updateGeometry()
        self._enable()
        self.changed.emit()

    def _show_counts(self) -> None:
        """Show a note on the content of all files below the list, and a warning, without emitting `changed`."""
        counted = {path: self.counts[path] for path in self.paths if path in self.counts}
        inspected = [self.structure_counts[path] for path in self.paths if path in self.structure_counts]
        spectra = self.spectra_contents
        held = spectra[0].text if spectra else count_text(list(counted.values()), self._spec)
        self.note.setText(structure_text(inspected) if inspected else held)
        self.note.setToolTip(tip_text("\n".join(text for content in inspected for text in content.left_out)))
        self.note.setVisible(bool(counted or inspected or spectra))
        warnings = (nucleotide_text(path.name, count, self._spec) for path, count in counted.items())
        warning = next(filter(None, warnings), "")
        show_text(self.warning, warning)

    def _show_item(self, item: QListWidgetItem) -> None:
        path: Path = item.data(Qt.ItemDataRole.UserRole)
        file = self._known.get(path)
        shown = (file, self.structure_counts.get(path), self.spectra.get(path))
        if item.data(_SHOWN) == shown:
            return
        item.setData(_SHOWN, shown)
        if file is None:
            item.setIcon(icon("queued", QColor(colours().faint_text)))
        elif self._problem_of(file):
            item.setIcon(icon("failed", QColor(colours().wrong)))
            item.setToolTip(tip_text(self._problem_of(file)))
        else:
            item.setIcon(icon(FILE_CATEGORIES[file.content or self._spec.content].icon, QColor(colours().good)))
            size = f", {_size(file.size, self.locale().decimalPoint())}" if file.size else ""
            counted = self.structure_counts.get(path)
            held = [] if counted is None else [counted.problem or structure_text([counted]), *counted.left_out]
            held += [self.spectra[path].text] if path in self.spectra else []
            item.setToolTip(tip_text("\n".join([str(path), f"{file.format}{size}", *held])))
            if counted is not None and counted.problem and not self._takes_broken:
                item.setIcon(icon("failed", QColor(colours().wrong)))

    def _enable(self) -> None:
        self.remove_button.setEnabled(bool(self.lines.selectedItems()))
        self.project_button.setEnabled(self._open_project is not None and self.paths != [self._open_project])
        self.last_button.setVisible(self.is_empty and bool(self._last_files))


class _Lines(QListWidget):
    """List whose height follows its content up to a maximum, with a hint while the list is empty."""

    def __init__(self, empty_text: str, remove: Callable[[], None]) -> None:
        super().__init__()
        self._empty_text, self._remove = empty_text, remove
        self.replacement = ""
        """Text that names the replacement of the files, shown in place of the hint; or ''."""
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setUniformItemSizes(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        row = self.sizeHintForRow(0) if self.count() else self.fontMetrics().height() + 4
        return QSize(260, row * min(max(self.count(), 3), _MAXIMUM_ROWS) + 2 * self.frameWidth() + 4)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return QSize(160, self.sizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        if event.key() == Qt.Key.Key_Delete:
            self._remove()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        super().paintEvent(event)
        if self.count():
            return
        with QPainter(self.viewport()) as painter:
            painter.setPen(QColor(colours().faint_text))
            space = self.viewport().rect().adjusted(8, 4, -8, -4)
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(space, flags, self.replacement or self._empty_text)


def _counted(number: int, name: str) -> str:
    """Return a text with a number and a noun in singular or plural."""
    return f"{QLocale().toString(number)} {name}{'' if number == 1 else 's'}"


def count_text(counts: Sequence[SequenceCount], spec: Input) -> str:
    """Return a text such as ``2 sequences, 800 residues``; if the input accepts nucleotides, the unit depends on the sequences."""
    n_sequences, n_residues = sum(count.n_sequences for count in counts), sum(count.n_residues for count in counts)
    kind = classify_sequences(counts) if spec.takes_nucleotides else ""
    unit = "nucleotide" if kind == "nucleotides" else "residue" if kind or not spec.takes_nucleotides else "symbol"
    parts = [_counted(n_sequences, "sequence"), _counted(n_residues, unit)]
    return ("" if all(count.is_whole for count in counts) else "more than ") + ", ".join(parts)


def structure_text(counts: Sequence[StructureCount]) -> str:
    """Return a text with the numbers of chains, residues, predicted chains and skipped chains, and the reason for the first skipped one."""
    locale = QLocale()
    n_files, n_read = sum(count.n_files for count in counts), sum(count.n_read for count in counts)
    n_chains, n_predicted = sum(count.n_chains for count in counts), sum(count.n_predicted for count in counts)
    beginning = "" if n_read == n_files else f"The first {_counted(n_read, 'file')} of {locale.toString(n_files)}: "
    parts = [_counted(n_chains, "protein chain"), _counted(sum(count.n_residues for count in counts), "residue")]
    if n_predicted:
        parts.append("predicted" if n_predicted == n_chains else f"{locale.toString(n_predicted)} of the chains predicted")
    left_out = [text for count in counts for text in count.left_out]
    ending = "" if not left_out else f"; {_counted(len(left_out), 'chain')} left out ({left_out[0].partition(': ')[2]})"
    return beginning + ", ".join(parts) + ending


def nucleotide_text(name: str, count: SequenceCount, spec: Input) -> str:
    """Return a warning if sequences look like DNA or RNA although proteins are expected, otherwise ''; see `are_nucleotides_suspicious`."""
    n, n_all = count.n_nucleotides, count.n_sequences
    # `is_any_suspicious`: the user selected every pasted sequence, so a single suspicious sequence counts.
    if spec.takes_nucleotides or not are_nucleotides_suspicious(n, n_all, is_any_suspicious=spec.can_be_pasted):
        return ""
    if n == n_all:
        return f"{name} looks like DNA or RNA, but proteins are expected; translate it first"
    locale = QLocale()
    verb, them = ("looks", "it") if n == 1 else ("look", "them")
    counted_sequences = f"{name}: {locale.toString(n)} of {locale.toString(n_all)} sequences"
    return f"{counted_sequences} {verb} like DNA or RNA, but proteins are expected; translate {them} first"


def _button(text: str, icon_name: str, clicked: Callable[[], None]) -> QPushButton:
    button = push_button(text, icon=icon_name)
    # In a dialog, Enter must trigger the main action of the dialog instead.
    button.setAutoDefault(False)
    button.clicked.connect(clicked)
    return button


def _size(n_bytes: int, decimal_point: str) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}".replace(".", decimal_point)
    return f"{n_bytes} bytes"
