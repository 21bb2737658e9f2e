"""Structure files that the user names for an export, in place of the paths that a project records.

A project may come from somebody else, and its record of inputs with it. So the export opens no path that the project holds: the user names
files or folders, and of these the file with the recorded path or the recorded name is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.structures.building import structure_files
from proteoscope.engine.structures.sources import DATABASE_FILE

__all__ = ["NamedStructures", "recorded_folders"]


def recorded_folders(project: Project, run: str) -> list[str]:
    """Return the folders of the structures that a run records, each once, as text that nothing has checked."""
    paths = [str(given.path) for given in project.inputs(run) if given.kind == "structures"]
    return list(dict.fromkeys(str(_pure(path).parent) for path in paths))


class NamedStructures:
    """The structure files that the user has named.

    Parameters
    ----------
    named : sequence of Path
        Files, folders, or lists of files.
    progress : Progress
        Shows what else the folders hold.

    Raises
    ------
    InputError : one is missing, or is or holds no structure.
    """

    def __init__(self, named: Sequence[Path], progress: Progress) -> None:
        for path in named:
            if (path / DATABASE_FILE).is_file():
                reason = "is a structure database, which holds no atoms to export"
                raise InputError(path, reason, remedy="Name the files that it was made from")
        self._of_name: dict[str, list[Path]] = defaultdict(list)
        for path in structure_files(named, progress):
            self._of_name[path.name].append(path.absolute())

    def find(self, recorded: str) -> Path:
        """Return the named file for a recorded path or name: the only one of its name, or the only one whose path ends with it.

        The recorded path itself is never opened.

        Raises
        ------
        InputError : no named file has this name, or several have it.
        """
        parts = _pure(recorded).parts
        files = self._of_name.get(parts[-1] if parts else "", [])
        ending = [file for file in files if file.parts[-len(parts) :] == parts]
        if len(found := ending or files) == 1:
            return found[0]
        if files:
            raise InputError(recorded, f"{len(files)} of the named files have this name", remedy="Name one of them")
        raise InputError(recorded, "is not among the named files", remedy="Name it, or the folder that it is in")


def _pure(path: str) -> PurePath:
    """Return a path that may have been recorded on another system."""
    return PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
