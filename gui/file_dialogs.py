"""Dialogs for files and folders, which call a function with the paths that the user chose."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

_MODES = {"file": QFileDialog.FileMode.ExistingFile, "files": QFileDialog.FileMode.ExistingFiles, "folder": QFileDialog.FileMode.Directory}


def prompt_for_path(
    parent: QWidget | None,
    title: str,
    choose: Callable[[Path], object],
    mode: Literal["file", "folder", "save", "new folder"] = "file",
    *,
    folder: str = "",
    filters: Sequence[str] = (),
    name: str = "",
    suffix: str = "",
) -> QFileDialog:
    """Open a dialog for a file or folder.

    Parameters
    ----------
    parent : QWidget or None
        Owner of the dialog.
    title : str
        Title of the dialog.
    choose : callable
        Function that is called with the chosen path.
    mode : str
        Type of path: an existing file or folder, a file to save, or a folder to create.
    folder : str
        Folder, or path of a file, that the dialog shows first.
    filters : sequence of str
        Filters for types of files.
    name : str
        Suggested file name.
    suffix : str
        Extension that is appended to a name without extension.
    """
    dialog = _dialog(parent, title, mode, folder, filters)
    dialog.setDefaultSuffix(suffix)
    if mode == "new folder":
        dialog.setLabelText(QFileDialog.DialogLabel.FileName, "Folder:")
    if name:
        dialog.selectFile(name)
    dialog.fileSelected.connect(lambda path: choose(Path(path)))
    dialog.open()
    return dialog


def prompt_for_paths(
    parent: QWidget | None, title: str, choose: Callable[[list[Path]], object], *, folder: str = "", filters: Sequence[str] = ()
) -> QFileDialog:
    """Open a dialog for several files; see `prompt_for_path`."""
    dialog = _dialog(parent, title, "files", folder, filters)
    dialog.filesSelected.connect(lambda paths: choose(list(map(Path, paths))))
    dialog.open()
    return dialog


def _dialog(parent: QWidget | None, title: str, mode: str, folder: str, filters: Sequence[str]) -> QFileDialog:
    dialog = QFileDialog(parent, title, folder)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    if mode in _MODES:
        dialog.setFileMode(_MODES[mode])
    else:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    if mode == "folder":
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    if filters:
        dialog.setNameFilters(list(filters))
    return dialog
