"""Presets and sample data for scripts."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine import sample_data
from proteoscope.engine.api.arguments import PathLike, choice, one_path
from proteoscope.engine.parameters import preset_description, preset_names
from proteoscope.engine.searches import SEARCHES

__all__ = ["copy_samples", "presets"]


def presets(search: str = "identify") -> dict[str, str]:
    """List the presets of a search.

    Parameters
    ----------
    search : str
        Name of the command, such as ``identify``.

    Returns
    -------
    dict of str to str
        Descriptions by name.

    Raises
    ------
    ParameterError
        If there is no such search.

    Examples
    --------
    >>> import proteoscope
    >>> "low-resolution" in proteoscope.presets("identify")
    True
    """
    choice("search", search, tuple(described.kind for described in SEARCHES))
    return {name: preset_description(search, name) for name in preset_names(search)}


def copy_samples(folder: PathLike) -> list[Path]:
    """Copy the sample data that ship with the program into a folder.

    Parameters
    ----------
    folder : str or Path
        Folder, created if missing; files of the same names are replaced.

    Returns
    -------
    list of Path
        Copied files. The originals are ``proteoscope.resources.path("samples", NAME)`` and must not be changed.

    Raises
    ------
    ParameterError
        If the folder is a project, or belongs to the folders within a project.
    StorageError
        If writing fails.

    Examples
    --------
    >>> import proteoscope, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "BSA1.mzML.gz" in [path.name for path in proteoscope.copy_samples(folder)]
    True
    """
    return sample_data.copy_sample_files(one_path("folder", folder))
