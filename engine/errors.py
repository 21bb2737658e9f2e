"""Errors that a user can correct: each message names the location of the problem, its reason and a remedy."""

from __future__ import annotations

from pathlib import Path

__all__ = ["InputError", "ParameterError", "ProteoscopeError", "RunExistsError", "StorageError", "WorkersError", "shortened"]

_SHOWN_CHARACTERS = 100


class ProteoscopeError(Exception):
    """Base class of errors that the user can correct.

    The command line prints the message on one line and exits with code 2; the window shows it in a dialog.
    """


class InputError(ProteoscopeError):
    """Error about a file that cannot be used.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    reason : str
        Description of the problem, as a predicate or sentence without a full stop.
    place : str
        Position in the file, such as ``line 12``, ``spectrum scan=4`` or ``byte 4096``; '' if the problem concerns the whole file.
    remedy : str
        What the user can do, as a sentence without a full stop; it may end with a question mark.
    """

    def __init__(self, path: str | Path, reason: str, *, place: str = "", remedy: str = "") -> None:
        self.path, self.reason, self.place, self.remedy = str(path), reason, place, remedy
        where = f"{self.path}, {place}" if place else self.path
        super().__init__(f"{where}: {reason}" + (f". {remedy}{'' if remedy.endswith('?') else '.'}" if remedy else "."))

    def __reduce__(self) -> tuple[object, ...]:
        """Return the constructor and its arguments for pickling, so that a worker process can send the error."""
        return (_rebuild_input_error, (self.path, self.reason, self.place, self.remedy))


def _rebuild_input_error(path: str, reason: str, place: str, remedy: str) -> InputError:
    return InputError(path, reason, place=place, remedy=remedy)


class RunExistsError(InputError):
    """Error about a project that has a finished run with the requested name.

    Parameters
    ----------
    project : str or Path
        Folder of the project.
    run : str
        Name of the run.
    differences : tuple of str
        Differences between the finished run and the requested one, such as the name of a parameter.
    options : tuple of str
        Option that replaces the run, and option that uses it, as they are written on the command line or in Python.
    """

    def __init__(
        self,
        project: str | Path,
        run: str,
        differences: tuple[str, ...] = (),
        options: tuple[str, str] = ("--overwrite", "--skip-existing"),
    ) -> None:
        self.run, self.differences, self.options = run, differences, options
        others = f", which differs in {', '.join(differences)}" if differences else ""
        keeps = "" if differences else f", {options[1]} keeps it"
        super().__init__(project, f"holds a finished run '{run}'{others}", remedy=f"{options[0]} replaces it{keeps}")

    def in_python(self) -> RunExistsError:
        """Return the error with the options as arguments in Python."""
        return RunExistsError(self.path, self.run, self.differences, ("overwrite=True", "skip_existing=True"))

    def __reduce__(self) -> tuple[object, ...]:
        """Return the constructor and its arguments for pickling."""
        return (RunExistsError, (self.path, self.run, self.differences, self.options))


class ParameterError(ProteoscopeError):
    """Error about an invalid parameter; the message names the parameter, its value and the allowed values."""


class StorageError(ProteoscopeError):
    """Error about failed writing, since the disk is full, read-only or unavailable. Finished results are not affected."""


class WorkersError(ProteoscopeError):
    """Error about worker processes that are unavailable or have failed; the message gives the reason and a remedy."""


def shortened(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """Return a text from a file or a user in a form for messages: on one line, with at most `limit` characters."""
    text = " ".join(text[: limit + 1].splitlines())
    return text if len(text) <= limit else f"{text[:limit]}..."
