"""Errors that a user can act on: each says where the fault is, what it is and what to do about it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["InputError", "ParameterError", "ProteoscopeError", "StorageError", "WorkersError", "shortened"]

_SHOWN_LETTERS = 100


class ProteoscopeError(Exception):
    """A fault that the user can mend. The command line prints it as one line and exits with 2; the window shows it in a dialog."""


class InputError(ProteoscopeError):
    """A file cannot be used.

    Parameters
    ----------
    path : the file.
    reason : what is wrong, as a sentence without a full stop.
    place : where in the file (``line 12``, ``spectrum scan=4``, ``byte 4096``), empty when it is the file as a whole.
    remedy : what the user can do, as a sentence without a full stop; it may end with a question mark.
    """

    def __init__(self, path: str | Path, reason: str, *, place: str = "", remedy: str = "") -> None:
        self.path, self.reason, self.place, self.remedy = str(path), reason, place, remedy
        where = f"{self.path}, {place}" if place else self.path
        super().__init__(f"{where}: {reason}" + (f". {remedy}{'' if remedy.endswith('?') else '.'}" if remedy else "."))

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from the parts, so that the error survives the way back from a worker process."""
        return (_rebuild_input_error, (self.path, self.reason, self.place, self.remedy))


def _rebuild_input_error(path: str, reason: str, place: str, remedy: str) -> InputError:
    return InputError(path, reason, place=place, remedy=remedy)


class ParameterError(ProteoscopeError):
    """A parameter has a value that it cannot have; the message names the field, the value and the bound."""


class StorageError(ProteoscopeError):
    """The disk refused: full, read-only, or gone. Finished results are untouched."""


class WorkersError(ProteoscopeError):
    """Workers in other processes cannot be had, or cannot do what they were given; the message says why, and what to do."""


def shortened(text: str, most: int = _SHOWN_LETTERS) -> str:
    """Part that a message repeats of a file's own words, or of the user's: on one line,
    the beginning of what is longer than `most` letters."""
    text = " ".join(text[: most + 1].splitlines())
    return text if len(text) <= most else f"{text[:most]}..."
