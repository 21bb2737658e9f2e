"""Read result files: recognised by what they begin with, each by the reader of its format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.recognition import recognise_as
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.listed.identifications import Identifications, joined

__all__ = ["read_identifications"]

_LARGEST_SCORE = 1e30
_LARGEST_NUMBER = 1e9
"""Of seconds, thomson and dalton."""


def read_identifications(paths: Sequence[str | Path], progress: Progress | None = None) -> Identifications:
    """The matches of result files of one format, in their order.

    Raises
    ------
    InputError : a file is missing, or no results, or of another format than the first, or broken, or holds no match; where, and what to do.
    Cancelled : the user asked to stop.
    """
    progress = progress or Progress()
    parts: list[Identifications] = []
    for path in paths:
        with ByteSource(path) as source:
            written_as = recognise_as(source, "identifications")
            if parts and parts[0].format != written_as.name:
                raise InputError(
                    path, f"is {written_as.name}, and {parts[0].files[0].name} is {parts[0].format}: their scores cannot be compared",
                    remedy="Import each by itself; both can go into one project",
                )  # fmt: skip
            progress.stage(f"Reading {Path(path).name}", source.size)
            module, _, name = written_as.reader.partition(":")
            found: Identifications = getattr(import_module(module), name)(source, progress)
        if not len(found):
            reason = next(iter(found.unread), "")
            raise InputError(
                path, f"holds no match of a spectrum and a peptide{f': {reason}' if reason else ''}", remedy="Give other results"
            )
        parts.append(_bounded(found))
    return joined(parts)


def _bounded(found: Identifications) -> Identifications:
    """The same, without numbers that nothing measured or scored can be: they count as not given."""

    def known(values: NDArray[np.float64], most: float) -> NDArray[np.float64]:
        return np.where(np.abs(values) <= most, values, np.nan)

    return replace(
        found, retention_time=known(found.retention_time, _LARGEST_NUMBER), precursor_mz=known(found.precursor_mz, _LARGEST_NUMBER),
        calculated_mass=known(found.calculated_mass, _LARGEST_NUMBER),
        scores={name: known(values, _LARGEST_SCORE) for name, values in found.scores.items()},
    )  # fmt: skip
