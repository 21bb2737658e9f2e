"""The kinds of work that are known: the entries of searches add theirs. Light, so that an entry is."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["KINDS", "register_kinds"]

KINDS: dict[str, str] = {}
"""The name of each kind, and where its `proteoscope.engine.execution.work.Kind` is, as ``module:class``."""


def register_kinds(kinds: Iterable[tuple[str, str]]) -> None:
    """Make kinds of work known, by their names and where they are; the same may be made known again.

    Raises
    ------
    ValueError : a name stands for another kind already.
    """
    for name, place in kinds:
        if KINDS.setdefault(name, place) != place:
            raise ValueError(f"the kind of work '{name}' is {KINDS[name]}, and cannot be {place} too")
