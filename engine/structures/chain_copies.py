"""Detection, naming and reporting of molecules and models with the same chain name."""

from collections.abc import Iterator, Sequence
from itertools import product
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from proteoscope.engine.results.counts import counted

__all__ = ["copies_note", "copy_name", "free_codes", "models_note", "molecule_starts"]


def models_note(n_models: int, n_atoms: int) -> str:
    """Return the message about models that are not read.

    Parameters
    ----------
    n_models : int
        Number of models of the file.
    n_atoms : int
        Number of atoms of the models that are not read.
    """
    return (
        f"only the first of {n_models:,} models is read ({counted(n_atoms, 'atom')} of the other models left out). "
        "With models=all, structure searches, superpositions and structure databases read the chains of all models"
    )


def copy_name(name: str, used: set[str]) -> str:
    """Return an unused name for a further chain with the given name, and add it to the used names.

    Parameters
    ----------
    name : str
        Name of the first chain.
    used : set of str
        Names in use; changed in place.

    Examples
    --------
    >>> copy_name("A", {"A", "A_2"})
    'A_3'
    """
    number = 2
    while f"{name}_{number}" in used:
        number += 1
    used.add(f"{name}_{number}")
    return f"{name}_{number}"


def copies_note(shown: str, made: list[tuple[str, int]]) -> str:
    """Return the message about several molecules with the same chain name.

    Parameters
    ----------
    shown : str
        Chain name, or ''.
    made : list of (str, int)
        New name of each molecule after the first, and its first line (0 if unknown).
    """
    names = ", ".join(name for name, _ in made[:4]) + (f" and {len(made) - 4:,} more" if len(made) > 4 else "")
    line = made[0][1]
    whole = f"chain {shown}" if shown else "the chain without a name"
    where = f", the second from line {line:,}" if line else ""
    return f"{whole} holds {len(made) + 1:,} molecules with the same residue numbers{where}: further molecules are read as {names}"


def free_codes(used: set[str]) -> Iterator[str]:
    """Yield chain names of two characters that are not used."""
    return (code for code in map("".join, product(ascii_lowercase + ascii_uppercase + digits, repeat=2)) if code not in used)


def molecule_starts(positions: Sequence[Any], alternatives: Sequence[Any], breaks: Sequence[Any], models: Sequence[Any]) -> list[int]:
    """Return the indices of the Cα atoms at which the second and further molecules of a chain start.

    A molecule starts where another model starts. If a residue occurs again in the same model, a molecule starts before the repeated
    residue: at the last break (see `breaks`) or decrease of the residue numbers; without these, at the repeated residue itself.

    Parameters
    ----------
    positions : sequence, length n
        (Residue number, insertion code) of each Cα in the order of the file, as comparable values.
    alternatives : sequence, length n
        Name of the alternative location of each Cα.
    breaks : sequence, length n
        Value of each Cα that differs from the previous value where a molecule may end.
    models : sequence, length n
        Value of each Cα that differs from the previous value where another model starts.

    Returns
    -------
    list of int
        Indices, ascending.
    """
    starts, met = list[int](), set[tuple[Any, Any]]()
    begins = -1
    for k, (position, alternative) in enumerate(zip(positions, alternatives, strict=True)):
        is_other_model = k > 0 and models[k] != models[k - 1]
        if k and (breaks[k] != breaks[k - 1] or position < positions[k - 1]):
            begins = k
        is_again = (position, alternative) in met and position != positions[k - 1]
        if is_other_model or is_again:
            at = k if is_other_model or begins < 0 else begins
            starts.append(at)
            met, begins = {(positions[i], alternatives[i]) for i in range(at, k)}, -1
        met.add((position, alternative))
    return starts
