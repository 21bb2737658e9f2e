"""Errors that a user can act on: each gives the place of the problem, its reason and a remedy."""

from __future__ import annotations

from pathlib import Path

__all__ = ["InputError", "ParameterError", "ProteoscopeError", "StorageError", "WorkersError", "shortened"]

_SHOWN_CHARACTERS = 100


class ProteoscopeError(Exception):
    """An error that the user can correct. The command line prints it on one line and exits with 2; the window shows it in a dialog."""


class InputError(ProteoscopeError):
    """An unusable file.

    Parameters
    ----------
    path : str or Path
        File.
    reason : str
        Problem, as a sentence without a full stop.
    place : str
        Place in the file (``line 12``, ``spectrum scan=4``, ``byte 4096``), or '' for the file as a whole.
    remedy : str
        Remedy for the user, as a sentence without a full stop; it may end with a question mark.
    """

    def __init__(self, path: str | Path, reason: str, *, place: str = "", remedy: str = "") -> None:
        self.path, self.reason, self.place, self.remedy = str(path), reason, place, remedy
        where = f"{self.path}, {place}" if place else self.path
        super().__init__(f"{where}: {reason}" + (f". {remedy}{'' if remedy.endswith('?') else '.'}" if remedy else "."))

    def __reduce__(self) -> tuple[object, ...]:
        """Return the parts for pickling, so that a worker process can send the error."""
        return (_rebuild_input_error, (self.path, self.reason, self.place, self.remedy))


def _rebuild_input_error(path: str, reason: str, place: str, remedy: str) -> InputError:
    return InputError(path, reason, place=place, remedy=remedy)


class ParameterError(ProteoscopeError):
    """A parameter with an invalid value; the message names the field, the value and the bound."""


class StorageError(ProteoscopeError):
    """A failed write: the disk is full, read-only, or unavailable. Finished results are untouched."""


class WorkersError(ProteoscopeError):
    """Unavailable workers in other processes, or a failure of their work; the message gives the reason and the remedy."""


def shortened(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """Return a text from a file or the user for a message: on one line, and cut to `limit` characters."""
    text = " ".join(text[: limit + 1].splitlines())
    return text if len(text) <= limit else f"{text[:limit]}..."
