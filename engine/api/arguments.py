"""Checks of the arguments of functions for scripts."""

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.jobs.progress import Progress, ProgressEvent
from proteoscope.engine.project.outputs import check_folder_name
from proteoscope.engine.searches import paths_of

__all__ = ["OnProgress", "PathLike", "choice", "number", "one_folder", "one_path", "optional_package", "progress_of"]

PathLike: TypeAlias = str | os.PathLike[str]
OnProgress: TypeAlias = Callable[[ProgressEvent], object] | Progress | None
"""Function that receives each `ProgressEvent`, or a `Progress`, which can also cancel, or None."""


def progress_of(requested: OnProgress) -> Progress:
    """Return `requested` if it is a `Progress`; for a function, a `Progress` that calls the function; for None, a new `Progress`.

    Raises
    ------
    ParameterError
        If `requested` is neither a function, a `Progress` nor None.
    """
    if requested is None:
        return Progress()
    if isinstance(requested, Progress):
        return requested
    if not callable(requested):
        raise ParameterError(f"progress = {requested!r:.100}: expected a function that takes a ProgressEvent, such as print")
    function = requested
    return Progress(lambda event: (function(event), None)[1])


def one_path(name: str, given: object) -> Path:
    """Return the value `given` of the argument `name` as a path.

    Raises
    ------
    ParameterError
        If the argument is not a single path.
    """
    paths = paths_of(name, given)
    if len(paths) != 1:
        raise ParameterError(f"{name} = {given!r:.100}: expected one path")
    return paths[0]


def one_folder(name: str, given: object) -> Path:
    """Return the value `given` of the argument `name`, an output folder, as a path.

    Raises
    ------
    ParameterError
        If the argument is not a single path, or has the ending of a file name.
    """
    folder = one_path(name, given)
    check_folder_name(str(folder))
    return folder


def number(name: str, given: object, low: float, high: float) -> float:
    """Return the value `given` of the argument `name` if it is a number from `low` to `high`.

    Raises
    ------
    ParameterError
        If the argument is not a number, or not between the bounds.
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not low <= given <= high:
        raise ParameterError(f"{name} = {given!r:.100}: expected a number from {low:g} to {high:g}")
    return given


def choice(name: str, given: object, allowed: tuple[str, ...]) -> None:
    """Check that the value `given` of the argument `name` is one of the allowed texts.

    Raises
    ------
    ParameterError
        If the text is not allowed.
    """
    if given not in allowed:
        raise ParameterError(f"{name} = {given!r:.100}: expected {', '.join(allowed[:-1])} or {allowed[-1]}")


def optional_package(name: str, purpose: str) -> Any:
    """Import and return a package that only some functions need, so that it may be missing; the error message begins with `purpose`.

    Raises
    ------
    ProteoscopeError
        If the package is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ProteoscopeError(f"{purpose} needs {package}, which is not installed. Run pip install {package}.") from None
