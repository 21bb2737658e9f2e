"""The kernels of an identification: those of every search, and apart from them, since most users never need it, those of wide windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from engine.execution.compilation import Kernels

__all__ = ["FRAGMENT_INDEX", "SCORING"]


def _last_of_scoring() -> Callable[..., Any]:
    from kernels.cpu.fragment_intensities import compare_intensities

    return compare_intensities


def _last_of_index() -> Callable[..., Any]:
    from kernels.cpu.candidates import score_candidates

    return score_candidates


def _use(*, with_index: bool) -> None:
    from engine.identification.parameters import IdentificationParameters
    from engine.matches.compilation import use_scoring

    use_scoring(IdentificationParameters(), with_index=with_index)


SCORING = Kernels("kernels", _last_of_scoring, partial(_use, with_index=False))
FRAGMENT_INDEX = Kernels("fragment index", _last_of_index, partial(_use, with_index=True))
"""Comes after `SCORING`, whose kernels must not come in pieces."""
