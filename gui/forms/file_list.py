"""A list of input files: added by dialog, by drop or by typing nothing at all; each is looked at and shown as what it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from proteoscope.engine.entry import FileSort, Input
from proteoscope.engine.formats.letters import InputContent, SequenceCount, kind_of_sequences, worth_a_warning
from proteoscope.engine.formats.registry import library_suffixes
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.forms.file_survey import SORTS, FileKind, FileSurvey, SortOfFiles, Survey
from proteoscope.gui.icons import icon, set_icon
from proteoscope.gui.labels import tip_text, toned_label
from proteoscope.gui.theme import colours

if TYPE_CHECKING:
    from proteoscope.engine.formats.spectra_content import SpectraContent
    from proteoscope.engine.structures.counting import StructureCount

__all__ = ["FileList", "count_text", "nucleotide_text", "structure_text"]

_MAXIMUM_ROWS = 7
_MAXIMUM_NAMED = 3
_COUNTING_MS = 50
"""What thousands of files hold is shown together: a look at the whole list takes its time."""
_SHOWN = Qt.ItemDataRole.UserRole + 1
"""Role of what an item shows of its file."""
_COUNTED = ("proteins", "reads")
"""Sorts of files whose sequences are counted."""

_UNKNOWN = FileKind(Path(), None)
"""A file that has not been looked at."""


class FileList(QWidget):
    """Files that a search reads as one of its inputs.

    Parameters
    ----------
    asked : the input.
    survey : looks at the files.
    takes_broken : whether structures that cannot be read are left out by who takes the files, and hence no problem.
    elsewhere : titles of other inputs beside it, and the sorts of files that they take.

    Signals
    -------
    changed : the files, or what is known of them, changed. counted : it is known what a file holds.
    database_asked : the user wants to make a database for this input.
    """

    changed = Signal()
    counted = Signal()
    database_asked = Signal()

    def __init__(
        self, asked: Input, survey: FileSurvey, *, takes_broken: bool = False, elsewhere: Mapping[str, Collection[FileSort]] | None = None
    ) -> None:
        super().__init__()
        self._takes_broken, self._elsewhere = takes_broken, elsewhere or {}
        self._asked, self._sort, self._survey = asked, SORTS[asked.sort], survey
        self._sorts = frozenset(asked.sorts)
        self._known: dict[Path, FileKind] = {}
        self.counts: dict[Path, SequenceCount] = {}
        """What the FASTA and FASTQ files hold that have been counted."""
        self.spectra: dict[Path, SpectraContent] = {}
        """What the first files of spectra are of, where that is known."""
        self._asked_of_spectra: set[Path] = set()
        self._being_counted: set[Path] = set()
        self.structure_counts: dict[Path, StructureCount] = {}
        """What the structures hold that have been looked into."""
        # One look at the whole list for all that is learned together of many files.
        self._showing = QTimer(self)
        self._showing.setSingleShot(True)
        self._showing.timeout.connect(self._show_state)
        self._counting = QTimer(self)
        self._counting.setSingleShot(True)
        self._counting.setInterval(_COUNTING_MS)
        self._counting.timeout.connect(self._show_learned)
        self.start_folder = ""
        """Where the file dialog opens."""
        self._takes_project = asked.sort == "project"
        self._open_project: Path | None = None
        how = "choose it" if self._takes_project else "add them"
        self.lines = _Lines(f"Drop {asked.hint or self._sort.hint} here, or {how} below", self.remove_selected)
        self.lines.setAccessibleName(asked.title)
        self.frame = Outlined(self.lines)
        self.message = toned_label(tone="wrong")
        self.message.hide()
        self.note = toned_label()
        self.note.hide()
        self.warning = toned_label(tone="attention")
        self.warning.hide()
        self.left_out = toned_label(tone="attention")
        """Files of a folder that are not among the files, and why."""
        self.left_out.hide()
        self.add_button = _button("Add files…", "add", self.ask_for_files)
        self.add_button.setHidden(self._takes_project)
        self.folder_button = _button("Choose project…" if self._takes_project else "Add folder…", "folder", self.ask_for_folder)
        self.project_button = _button("The open project", "open", self._take_open_project)
        self.project_button.setHidden(not self._takes_project)
        self.remove_button = _button("Remove", "remove", self.remove_selected)
        self.database_button = _button("New database…", "database", self.database_asked.emit)
        self.database_button.setToolTip("Build a structure database from files: it is read once, and searched much faster from then on")
        self.database_button.setVisible(asked.also == "structure database")
        self.lines.itemSelectionChanged.connect(self._enable)
        buttons = QHBoxLayout()
        for button in (self.add_button, self.folder_button, self.project_button, self.database_button, self.remove_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(4)
        page.addWidget(self.frame)
        for label in (self.message, self.note, self.warning, self.left_out):
            page.addWidget(label)
        page.addLayout(buttons)
        self._enable()

    @property
    def paths(self) -> list[Path]:
        """The files, in their order."""
        return [self.lines.item(i).data(Qt.ItemDataRole.UserRole) for i in range(self.lines.count())]

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self.lines.count()

    def problem(self) -> str:
        """Why a search cannot take these files; empty where it can, or where they are still being looked at."""
        for path in self.paths:
            known = self._known.get(path)
            if known is not None and self._fault(known):
                return self._fault(known)
            counted = self.structure_counts.get(path)
            if counted is not None and counted.problem and not self._takes_broken:
                return counted.problem
            if known is not None and known.sort == self._asked.also is not None and self.lines.count() > 1:
                return f"{path.name} is a {known.format}, which is searched alone; remove it or the others"
        counted_all = [self.counts.get(path) for path in self.paths if self._known.get(path, _UNKNOWN).sort in _COUNTED]
        if counted_all and all(count is not None and count.is_whole and not count.n_residues for count in counted_all):
            return f"{self.paths[0].name} holds names without sequences; give a file with sequences"
        return "" if self._asked.several or self.lines.count() <= 1 else "Only one file can be searched here; remove the others"

    @property
    def spectra_contents(self) -> list[SpectraContent]:
        """What those files of spectra are of that have been looked into."""
        return [self.spectra[path] for path in self.paths if path in self.spectra]

    @property
    def is_counted(self) -> bool:
        """Whether it is known of every file what it holds, as far as that can be known."""
        return self.is_examined and not self._being_counted.intersection(self.paths)

    def content(self) -> InputContent | None:
        """What the first file holds, where it has been counted."""
        path = next(iter(self.paths), None)
        if path is None or path not in self.counts or path not in self._known:
            return None
        return InputContent(self.counts[path], self._known[path].sort == "reads")

    @property
    def is_examined(self) -> bool:
        """Whether it is known of every file what it is."""
        return all(path in self._known for path in self.paths)

    def take(self, found: Iterable[FileKind]) -> None:
        """Add those files of a survey that belong here."""
        self.add(file.path for file in found if file.sorts & self._sorts)

    def add(self, paths: Iterable[Path]) -> None:
        """Add files; one that is there already stays once."""
        present = set(self.paths)
        whole = (path if path.is_absolute() else path.absolute() for path in map(Path, paths))
        new = [path for path in dict.fromkeys(whole) if path not in present]
        for path in new:
            item = QListWidgetItem(f"{path.name}    {path.parent}")
            item.setData(Qt.ItemDataRole.UserRole, path)
            self.lines.addItem(item)
        self._known = {path: known for path, known in self._known.items() if path in present}
        self._survey.files(new, self._learn)
        self._show_state()

    def give_project(self, folder: Path) -> None:
        """Have a project instead of what is there."""
        if self.paths != [folder.absolute()]:
            self.lines.clear()
            self.add([folder])

    def offer_project(self, folder: Path) -> None:
        """Offer the project that is open; where none is given it is taken."""
        self._open_project = folder
        if self.is_empty:
            self.give_project(folder)
        self._enable()

    def remove_selected(self) -> None:
        """Take the selected files out."""
        for item in self.lines.selectedItems():
            self.lines.takeItem(self.lines.row(item))
        self._show_state()

    def clear(self) -> None:
        """Take all files out."""
        self.left_out.hide()
        self.lines.clear()
        self._show_state()

    def look_again(self) -> None:
        """Find out anew what the files are: some may have gone, or changed."""
        self._survey.files(self.paths, self._learn)

    def look_for_missing(self) -> None:
        """Mark files that are gone, before they are searched."""
        gone = [path for path in self.paths if not path.exists()]
        for path in gone:
            self._known[path] = FileKind(path, None, problem=f"{path} is not there any more; remove it, or put it back")
        if gone:
            self._show_state()

    def redraw(self) -> None:
        """Draw the icons again in the colours of the palette."""
        for i in range(self.lines.count()):
            self.lines.item(i).setData(_SHOWN, None)
            self._show_item(self.lines.item(i))

    def ask_for_files(self) -> None:
        """Open a file dialog."""
        dialog = QFileDialog(self, "Choose files", self.start_folder)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters([*self._name_filters(), "All files (*)"])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(self._take_chosen)
        dialog.open()

    def ask_for_folder(self) -> None:
        """Open a dialog for a folder, whose files of this sort are added; for a project, where that is asked for."""
        dialog = QFileDialog(self, "Choose a folder", self.start_folder)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(self._take_folder)
        dialog.open()

    def _name_filters(self) -> list[str]:
        """Of all files that may be given, and where those are of two sorts, of each."""
        sorts = [SORTS[sort] for sort in self._asked.sorts if SORTS[sort].suffixes]
        every = SortOfFiles(" and ".join(sort.title for sort in sorts), self._asked.sorts)
        return [one.name_filter for one in ([every, *sorts] if len(sorts) > 1 else sorts)]

    def _take_chosen(self, names: list[str]) -> None:
        self.start_folder = str(Path(names[0]).parent)
        self.add(Path(name) for name in names)

    def _take_folder(self, names: list[str]) -> None:
        if self._takes_project:
            self.start_folder = str(Path(names[0]).parent)
            self.give_project(Path(names[0]))
            return
        self.start_folder = names[0]
        self._survey.all_within([Path(names[0])], partial(self._take_found, Path(names[0])))

    def _take_found(self, folder: Path, found: Survey) -> None:
        """Add what belongs here of a folder, and tell what does not."""
        self.take(found.files)
        others = [file for file in (*found.files, *found.left_out) if not file.sorts & self._sorts]
        taken = len(found.files) + len(found.left_out) - len(others)
        names = ", ".join(file.path.name for file in others[:_MAXIMUM_NAMED])
        more = f" and {len(others) - _MAXIMUM_NAMED} more" if len(others) > _MAXIMUM_NAMED else ""
        held = self._sort.held
        if others:
            self.left_out.setText(f"{folder.name}: {'left out' if taken else f'holds no {held}; looked at'} {names}{more}")
        else:
            self.left_out.setText("" if taken else f"{folder.name} holds no files")
        reasons = [file.problem or f"{file.path}: {file.format}" for file in others[:_MAXIMUM_ROWS]]
        self.left_out.setToolTip(tip_text("\n".join(reasons)))
        self.left_out.setVisible(bool(self.left_out.text()))

    def _take_open_project(self) -> None:
        if self._open_project is not None:
            self.give_project(self._open_project)

    def _learn(self, found: FileKind) -> None:
        if self._known.get(found.path) == found:
            return
        self._known[found.path] = found
        if found.sort in _COUNTED and found.sort in self._asked.sorts and found.path not in self.counts:
            self._being_counted.add(found.path)
            self._survey.count(found.path, lambda count: self._learn_count(found.path, count))
        if found.sort in self._asked.sorts and self._asked.sort == "structures" and found.path not in self.structure_counts:
            self._survey.count_structures(found, lambda count: self._learn_structures(found.path, count))
        elif found.sort == "spectra" and found.sort in self._sorts and found.path.is_file() and found.path not in self._asked_of_spectra:
            self._asked_of_spectra.add(found.path)
            self._survey.look_into_spectra(found.path, lambda content: self._learn_spectra(found.path, content))
        self._showing.start()

    def _learn_spectra(self, path: Path, content: SpectraContent | None) -> None:
        self._asked_of_spectra.discard(path)
        if content is None:
            return
        self.spectra[path] = content
        self._counting.start()

    def _learn_structures(self, path: Path, count: StructureCount | None) -> None:
        if count is not None:
            self.structure_counts[path] = count
            if count.problem:
                self._showing.start()
            else:
                self._counting.start()

    def _show_learned(self) -> None:
        """Show what files hold; it changes nothing of what is asked for: a form that was just run is still as it was run."""
        self._show_counts()
        for i in range(self.lines.count()):
            self._show_item(self.lines.item(i))
        self.counted.emit()

    def _learn_count(self, path: Path, count: SequenceCount | None) -> None:
        self._being_counted.discard(path)
        if count is not None:
            self.counts[path] = count
            self._show_counts()
            if not count.n_residues:
                self._showing.start()
        self.counted.emit()

    def _fault(self, known: FileKind) -> str:
        if self._takes_project and known.sort != "project":
            return f"{known.path} is no project; choose the folder of one"
        if known.unknown:
            return f"{known.path.name} {known.unknown.replace('is in no', 'is text in no', 1)}; give {self._asked.hint or self._sort.hint}"
        if known.problem or known.sorts & self._sorts:
            return known.problem
        if known.sort is None or known.sort in ("structure database", "project"):
            return f"{known.path.name} is a {known.format}; give files here"
        if (known.sort, self._asked.sort) == ("proteins", "spectra"):
            return f"{known.path.name} is a {known.format} file of sequences; add it to the protein databases"
        if known.sort == "spectra" and self._asked.sort == "libraries" and known.path.name.lower().endswith(library_suffixes()):
            return f"{known.path.name} holds spectra ({known.format}) that do not say what they are of (SEQ=, NAME=): no spectral library"
        place = next((title for title, sorts in self._elsewhere.items() if known.sort in sorts), "")
        belongs = f". Add it to {place}" if place else ""
        return f"{known.path.name} holds {SORTS[known.sort].held} ({known.format}), not {self._sort.held}{belongs}"

    def _show_state(self) -> None:
        for i in range(self.lines.count()):
            self._show_item(self.lines.item(i))
        problem = self.problem()
        self.frame.mark(bool(problem))
        self.message.setText(problem)
        self.message.setVisible(bool(problem))
        self._show_counts()
        self.lines.updateGeometry()
        self._enable()
        self.changed.emit()

    def _show_counts(self) -> None:
        """Tell what the files hold; that changes nothing of what is asked for."""
        counted = {path: self.counts[path] for path in self.paths if path in self.counts}
        looked_into = [self.structure_counts[path] for path in self.paths if path in self.structure_counts]
        spectra = self.spectra_contents
        held = spectra[0].text if spectra else count_text(list(counted.values()), self._asked)
        self.note.setText(structure_text(looked_into) if looked_into else held)
        self.note.setToolTip(tip_text("\n".join(text for one in looked_into for text in one.left_out)))
        self.note.setVisible(bool(counted or looked_into or spectra))
        warnings = (nucleotide_text(path.name, count, self._asked) for path, count in counted.items())
        warning = next(filter(None, warnings), "")
        self.warning.setText(warning)
        self.warning.setVisible(bool(warning))

    def _show_item(self, item: QListWidgetItem) -> None:
        path: Path = item.data(Qt.ItemDataRole.UserRole)
        known = self._known.get(path)
        shown = (known, self.structure_counts.get(path), self.spectra.get(path))
        if item.data(_SHOWN) == shown:
            return
        item.setData(_SHOWN, shown)
        if known is None:
            item.setIcon(icon("queued", QColor(colours().faint_text)))
        elif self._fault(known):
            item.setIcon(icon("failed", QColor(colours().wrong)))
            item.setToolTip(tip_text(self._fault(known)))
        else:
            item.setIcon(icon(SORTS[known.sort or self._asked.sort].icon, QColor(colours().good)))
            size = f", {_size(known.size, self.locale().decimalPoint())}" if known.size else ""
            counted = self.structure_counts.get(path)
            held = [] if counted is None else [counted.problem or structure_text([counted]), *counted.left_out]
            held += [self.spectra[path].text] if path in self.spectra else []
            item.setToolTip(tip_text("\n".join([str(path), f"{known.format}{size}", *held])))
            if counted is not None and counted.problem and not self._takes_broken:
                item.setIcon(icon("failed", QColor(colours().wrong)))

    def _enable(self) -> None:
        self.remove_button.setEnabled(bool(self.lines.selectedItems()))
        self.project_button.setEnabled(self._open_project is not None and self.paths != [self._open_project])


class _Lines(QListWidget):
    """The list itself: as high as its content, within reason, with a hint where it is empty."""

    def __init__(self, empty_text: str, remove: Callable[[], None]) -> None:
        super().__init__()
        self._empty_text, self._remove = empty_text, remove
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
            painter.drawText(
                self.viewport().rect().adjusted(8, 4, -8, -4), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._empty_text
            )


def _counted(number: int, name: str) -> str:
    """Return a number, with the separators of the locale, and its noun."""
    return f"{QLocale().toString(number)} {name}{'' if number == 1 else 's'}"


def count_text(counts: Sequence[SequenceCount], asked: Input) -> str:
    """How many sequences and residues there are, in words; for an input that may be of both, also whether they are nucleotides."""
    n_sequences, n_residues = sum(count.n_sequences for count in counts), sum(count.n_residues for count in counts)
    parts = [_counted(n_sequences, "sequence"), _counted(n_residues, "letter" if asked.takes_nucleotides else "residue")]
    if asked.takes_nucleotides and (kind := kind_of_sequences(counts)):
        parts.append(kind)
    return ("" if all(count.is_whole for count in counts) else "more than ") + ", ".join(parts)


def structure_text(counts: Sequence[StructureCount]) -> str:
    """How many chains and residues there are, whether they are predictions, and what is left out, in words."""
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


def nucleotide_text(name: str, count: SequenceCount, asked: Input) -> str:
    """The warning that sequences look like DNA or RNA where an input is of proteins, and it is worth one; see `worth_a_warning`."""
    n, n_all = count.n_nucleotides, count.n_sequences
    # Who pastes sequences means each of them.
    if asked.takes_nucleotides or not worth_a_warning(n, n_all, is_each_meant=asked.can_be_pasted):
        return ""
    if n == n_all:
        return f"{name} looks like DNA or RNA, where proteins belong; translate it first"
    locale = QLocale()
    looks, them = ("looks", "it") if n == 1 else ("look", "them")
    who = f"{name}: {locale.toString(n)} of {locale.toString(n_all)} sequences"
    return f"{who} {looks} like DNA or RNA, where proteins belong; translate {them} first"


def _button(text: str, icon_name: str, clicked: Callable[[], None]) -> QPushButton:
    button = QPushButton(text)
    set_icon(button, icon_name)
    # In a dialog the key Enter is for what the dialog does.
    button.setAutoDefault(False)
    button.clicked.connect(clicked)
    return button


def _size(n_bytes: int, decimal_point: str) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}".replace(".", decimal_point)
    return f"{n_bytes} bytes"
