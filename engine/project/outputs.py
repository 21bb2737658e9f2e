"""Checks of a command's inputs and outputs: no file is given twice, overwrites an input, or belongs to a project."""

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.files import is_packed_name
from proteoscope.engine.project.paths import DATABASE, OWN_NAMES

__all__ = [
    "check_distinct",
    "check_folder_name",
    "check_folder_of_outputs",
    "check_new_project",
    "check_outputs",
    "folder_name",
    "is_on_another_share",
    "refuse_packed",
]


_FILE_ENDINGS = (
    *(".bam", ".bcif", ".cif", ".csv", ".fasta", ".gz", ".html", ".json", ".mgf", ".msp", ".mzid", ".mzml", ".parquet", ".pdb", ".pdf"),
    *(".png", ".sam", ".svg", ".tsv", ".txt", ".xml", ".zip"),
)
"""Endings, in lower case, of names that users intend for a file."""


def folder_name(text: str) -> str:
    """Return the name of an output folder on the command line.

    Raises
    ------
    argparse.ArgumentTypeError
        If the name is that of standard output or of a file.
    """
    try:
        check_folder_name(text)
    except ParameterError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def check_folder_name(text: str) -> None:
    """Raise ParameterError if the name of an output folder is that of standard output or of a file."""
    if text == "-":
        raise ParameterError("several files are written, which cannot go to standard output; give the name of a folder")
    path = Path(text)
    if path.suffix.lower() in _FILE_ENDINGS and not path.exists():  # an existing file is reported later
        raise ParameterError(f"{text} looks like a file, but several files are written; give the name of a folder")


def check_outputs(outputs: Sequence[Path], inputs: Iterable[Path], project: Path | None = None) -> None:
    """Raise ParameterError for an output that would overwrite an input, a file of a project or another output; links are resolved first.

    Parameters
    ----------
    outputs
        Files, or folders of files, that will be written.
    inputs
        Files that are read.
    project
        Folder of the project of the run, which may not exist yet.

    Raises
    ------
    ParameterError
        If an output is rejected; the message names it.
    """
    inputs = list(inputs)
    for k, out in enumerate(outputs):
        if any(_is_one_file(out, path) for path in inputs):
            raise ParameterError(f"{out} is read and would be overwritten; choose another name for the results")
        if any(_is_one_file(out, other) for other in outputs[:k]):
            raise ParameterError(f"{out} would be written twice; choose another name")
        for folder, inside in _projects_around(out, project):
            if not inside.parts:
                raise ParameterError(f"{out} is the folder of a project; choose another name for the results")
            if inside.parts[0] in OWN_NAMES:
                raise ParameterError(f"{out} belongs to the project {folder}; choose another name for the results")


def refuse_packed(path: Path, format: str) -> None:
    """Reject a name that ends with ``.gz`` for a file in a format that is not text.

    Raises
    ------
    ParameterError
        If the name is rejected; the message names the format.
    """
    if is_packed_name(path):
        raise ParameterError(f"{path}: {format} is not text, and is not written gzipped; choose a name without .gz")


def check_folder_of_outputs(folder: Path) -> None:
    """Check that an output folder is neither a project nor a folder of a project's files, so that different files are not mixed.

    A folder in a project that does not belong to the project's own files is accepted.

    Raises
    ------
    ParameterError
        If the folder is rejected; the message names it and suggests another.
    """
    for place, inside in _projects_around(folder):
        if not inside.parts or inside.parts[0] in OWN_NAMES:
            reason = "is a project" if not inside.parts else f"belongs to the project {place}"
            raise ParameterError(
                f"{folder} {reason}, to which these files do not belong; choose another folder, such as {place / 'comparison'}"
            )


def check_new_project(folder: Path) -> None:
    """Raise ParameterError if a new project would be among the files of another project.

    Raises
    ------
    ParameterError
        If the folder is rejected; the message names it.
    """
    for place, inside in _projects_around(folder):
        if inside.parts and inside.parts[0] in OWN_NAMES:
            raise ParameterError(f"{folder} belongs to the project {place}; choose another folder for the new project")


def _projects_around(path: Path, project: Path | None = None) -> Iterator[tuple[Path, Path]]:
    """Yield each project folder that contains `path`, and `path` relative to this folder.

    The folder `project` counts as a project even if it does not exist yet.
    """
    real = Path(os.path.realpath(path))
    for folder in (real, *real.parents):
        if _is_there(folder / DATABASE) or (project is not None and str(folder) == os.path.realpath(project)):
            yield folder, real.relative_to(folder)


def check_distinct(inputs: Sequence[Path]) -> None:
    """Raise InputError for a file that is given twice, directly or by links, since its content would count twice.

    Raises
    ------
    InputError
        If a file is given twice; the message names it.
    """
    seen = set()
    for path in filter(_is_there, inputs):
        status = path.stat()
        if (status.st_dev, status.st_ino) in seen:
            raise InputError(path, "is given twice", remedy="Name each file once")
        seen.add((status.st_dev, status.st_ino))


def _is_one_file(path: Path, other: Path) -> bool:
    if is_on_another_share(path, other):
        return False  # an untrusted project may record any path, and inspecting it would access the network
    if _is_there(path) and _is_there(other):
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def is_on_another_share(path: PurePath, other: PurePath) -> bool:
    r"""Return True if `other` is on a network share of Windows (``\\\\host\\share``), and `path` is not on the same share."""
    return other.drive.startswith("\\\\") and other.drive.casefold() != path.drive.casefold()


def _is_there(path: Path) -> bool:
    """Return True if a file exists and is accessible; writing an inaccessible file fails later anyway."""
    return os.access(path, os.F_OK)
