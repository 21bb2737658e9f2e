"""Molecules and models that share the name of a chain: where they begin, their names, and the sentences on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from proteoscope.engine.results.counts import counted

__all__ = ["copies_note", "copy_name", "free_codes", "models_note", "molecule_starts"]


def models_note(n_models: int, n_atoms: int) -> str:
    """Return the sentence on models that are not read."""
    return (
        f"only the first of {n_models:,} models is read ({counted(n_atoms, 'atom')} of the others left out). "
        "A structure search, a superposition and a structure database read all of them as chains with models=all"
    )


def copy_name(name: str, used: set[str]) -> str:
    """Return a name for another chain of this name, and add it to those used.

    >>> copy_name("A", {"A", "A_2"})
    'A_3'
    """
    number = 2
    while f"{name}_{number}" in used:
        number += 1
    used.add(f"{name}_{number}")
    return f"{name}_{number}"


def copies_note(shown: str, made: list[tuple[str, int]]) -> str:
    """Return the sentence on molecules of one name; `made`: the names of the others and their first lines (0: unknown)."""
    names = ", ".join(name for name, _ in made[:4]) + (f" and {len(made) - 4:,} more" if len(made) > 4 else "")
    line = made[0][1]
    whole = f"chain {shown}" if shown else "the chain without a name"
    where = f", the second from line {line:,}" if line else ""
    return f"{whole} holds {len(made) + 1:,} molecules with the same residue numbers{where}: those after the first are read as {names}"


def free_codes(used: set[str]) -> Iterator[str]:
    """Names of two characters that no chain has."""
    return (code for code in map("".join, product(ascii_lowercase + ascii_uppercase + digits, repeat=2)) if code not in used)


def molecule_starts(places: Sequence[Any], alternatives: Sequence[Any], breaks: Sequence[Any], models: Sequence[Any]) -> list[int]:
    """Return where the second and further molecules of a chain begin, of Cα in the order of the file.

    One begins with another model, and where a residue is met again: with the last break or step back of the numbers before, else there.

    Parameters
    ----------
    places
        Residue number and insertion code, which are ordered.
    alternatives
        Names of alternative locations.
    breaks
        Change where a molecule may end.
    models
        Change where another model begins.
    """
    starts, met = list[int](), set[tuple[Any, Any]]()
    begins = -1
    for k, (place, alternative) in enumerate(zip(places, alternatives, strict=True)):
        is_other_model = k > 0 and models[k] != models[k - 1]
        if k and (breaks[k] != breaks[k - 1] or place < places[k - 1]):
            begins = k
        is_again = (place, alternative) in met and place != places[k - 1]
        if is_other_model or is_again:
            at = k if is_other_model or begins < 0 else begins
            starts.append(at)
            met, begins = {(places[i], alternatives[i]) for i in range(at, k)}, -1
        met.add((place, alternative))
    return starts
