"""Positions of modifications at termini and terminal residues, for files that lack these positions or number them differently.

This program assigns a modification of a residue that must be at a terminus (such as ``Gln->pyro-Glu`` of an N-terminal Q) to the residue;
mzIdentML assigns it to the terminus, position 0 or the length plus 1.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from proteoscope.engine.chemistry.modification_naming import find_unimod_entry
from proteoscope.engine.chemistry.modifications import Modification, unimod
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide

__all__ = ["SearchedModification", "locate_modification", "move_to_terminal_residues", "terminal_position"]

_WITHIN = 0.01  # dalton; masses in files have two or more decimals


class SearchedModification(NamedTuple):
    """Modification that a search allowed.

    Attributes
    ----------
    name : str
        Name, or ''.
    mass : float
        Mass in dalton, NaN if not given.
    residues : str
        Residues that may have the modification, '' for any.
    at_front, at_back : bool
        True for a modification of the N-terminus (`at_front`) or the C-terminus (`at_back`).
    """

    name: str
    mass: float
    residues: str
    at_front: bool
    at_back: bool


def locate_modification(
    noted: NotedModification, residues: str, sequence: str, occupied: Collection[int], searched: Sequence[SearchedModification]
) -> int | None:
    """Return the only possible position of a modification that a file does not locate; None if there are several or none.

    Parameters
    ----------
    noted : NotedModification
        Modification; its position is ignored.
    residues : str
        Residues that the file names for it, or ''.
    sequence : str
        Residues of the peptide.
    occupied : collection of int
        Positions of the peptide's other modifications.
    searched : sequence of SearchedModification
        Modifications of the search; if this modification is not among them, Unimod's sites are used.
    """
    alike = [modification for modification in searched if _is_same(modification, noted)]
    allowed = "".join(character for character in residues if character.isalpha())
    if not allowed and alike:
        termini = {0 if same.at_front else len(sequence) + 1 for same in alike if same.at_front != same.at_back}
        allowed = "".join(same.residues for same in alike if not (same.at_front or same.at_back))
    elif not allowed:
        termini = _unimod_termini(noted, len(sequence))
    else:
        termini = set()
    free = [position for position in sorted(termini) if position not in occupied]
    free = free or [position for position, residue in enumerate(sequence, 1) if residue in allowed and position not in occupied]
    return free[0] if len(free) == 1 else None


def move_to_terminal_residues(peptide: NotedPeptide) -> NotedPeptide:
    """Return a peptide in which modifications of a terminus are moved to the terminal residue if they are bound to it (`_is_bound`)."""
    length = len(peptide.sequence)

    def moved(noted: NotedModification) -> NotedModification:
        if noted.position not in (0, length + 1):
            return noted
        position = 1 if noted.position == 0 else length
        entry = find_unimod_entry(noted.name) if noted.name else None
        is_bound = entry is not None and _is_bound(entry, peptide.sequence[position - 1], is_front=noted.position == 0)
        return noted._replace(position=position) if is_bound else noted

    return NotedPeptide(peptide.sequence, tuple(sorted(map(moved, peptide.modifications), key=lambda noted: noted.position)))


def terminal_position(position: int, sequence: str, unimod_id: int | None) -> int:
    """Return the position of a modification in mzIdentML's numbering; this is the inverse of `move_to_terminal_residues`.

    Parameters
    ----------
    position : int
        Position of the modified residue, from 1.
    sequence : str
        Residues of the peptide.
    unimod_id : int, optional
        Record number of the modification in Unimod; None if unknown.

    Returns
    -------
    int
        0 for the N-terminus, the length plus 1 for the C-terminus; otherwise `position`.

    Examples
    --------
    >>> terminal_position(1, "QAK", 28), terminal_position(1, "MAK", 35)
    (0, 1)
    """
    if unimod_id is None or position not in (1, len(sequence)):
        return position
    entry, residue = unimod().by_id(unimod_id), sequence[position - 1]
    if position == 1 and _is_bound(entry, residue, is_front=True):
        return 0
    return len(sequence) + 1 if position == len(sequence) and _is_bound(entry, residue, is_front=False) else position


def _is_bound(entry: Modification, residue: str, *, is_front: bool) -> bool:
    """Return True if a modification is bound to the terminal residue, not to the terminus itself.

    This is so if Unimod lists the modification for this residue only at this terminus, and does not list it for the terminus without a
    residue.
    """
    end = "N-term" if is_front else "C-term"
    at_residue = [site.position for site in entry.sites if site.residue == residue]
    is_on_any = any(not site.residue and site.position.endswith(end) for site in entry.sites)
    return bool(at_residue) and all(position.endswith(end) for position in at_residue) and not is_on_any


def _is_same(searched: SearchedModification, noted: NotedModification) -> bool:
    masses = (searched.mass, noted.mass)
    if None not in masses and abs(searched.mass - (noted.mass or 0.0)) <= _WITHIN:
        return True
    return bool(searched.name) and searched.name == noted.name


def _unimod_termini(noted: NotedModification, length: int) -> set[int]:
    """Return the positions (0, `length` + 1) of the termini at which Unimod lists a modification, whatever residue the entry requires."""
    entry = find_unimod_entry(noted.name) if noted.name else None
    sites: Iterable[str] = [] if entry is None else [site.position for site in entry.sites]
    return {0 if site.endswith("N-term") else length + 1 for site in sites if site != "anywhere"}
