"""Parser of peptides in the notations of search engines and libraries.

Modifications may be in square brackets or parentheses after their residues, by name (``M[Oxidation]``, ``M(Oxidation (M))``,
``M[UNIMOD:35]``), by added mass (``M[+15.9949]``), or by the mass of the modified residue (``M[147]``). They may also be signed masses
without brackets (``M+15.995``). The parser also accepts termini (``n[42.01]PEPTIDE``, ``[Acetyl]-PEPTIDE``, ``.(Acetyl)PEPTIDE``,
``_(ac)PEPTIDE_``, ``PEPTIDEc[17]``), MaxQuant's ``pS``, ``pT`` and ``pY``, and flanking residues (``K.PEPTIDE.R``).
"""

import re
from typing import NamedTuple

__all__ = ["NotedModification", "NotedPeptide", "is_sequence", "noted_modification", "parse_peptide"]

_MAXIMUM_CHARACTERS = 5000
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_PREFIXES = {"p": "Phospho"}
"""Modifications by the lower-case character before a residue, such as MaxQuant's ``pS``."""
_NUMBER = re.compile(r"[+-]?(?:\d++\.?\d*+|\.\d+)(?:[eE][+-]?\d+)?")
_BARE = re.compile(r"[+-](?:\d+\.?\d*|\.\d+)")


class NotedModification(NamedTuple):
    """Modification as written in a file.

    Attributes
    ----------
    position : int
        0 for the N-terminus, 1 to L for the residues, L + 1 for the C-terminus.
    name : str
        Name, '' if the file has none.
    mass : float, optional
        Mass in dalton; None if the file has none.
    is_whole : bool, optional
        True if `mass` is the mass of the residue or terminus with its modification, False if it is the added mass, None if the notation is
        ambiguous.
    """

    position: int
    name: str = ""
    mass: float | None = None
    is_whole: bool | None = False


class NotedPeptide(NamedTuple):
    """Peptide as written in a file.

    Attributes
    ----------
    sequence : str
        Residues in capitals.
    modifications : tuple of NotedModification
        Modifications, ordered by position.
    """

    sequence: str
    modifications: tuple[NotedModification, ...] = ()


def is_sequence(text: str) -> bool:
    """Return True if a text can be the sequence of a peptide: it consists of capitals, and is not too long.

    Examples
    --------
    >>> is_sequence("PEPTIDEK"), is_sequence("PEPTIDEk"), is_sequence("K" * 5001)
    (True, False, False)
    """
    return 0 < len(text) <= _MAXIMUM_CHARACTERS and text.isascii() and text.isalpha() and text.isupper()


def noted_modification(position: int, text: str) -> NotedModification:
    """Return a modification from the text in its brackets.

    Parameters
    ----------
    position : int
        Position of the modification in the peptide, see `NotedModification`.
    text : str
        Name, added mass (with a sign), or mass of unknown meaning.

    Examples
    --------
    >>> noted_modification(3, "+15.9949").mass, noted_modification(3, "147").is_whole, noted_modification(3, "Oxidation (M)").name
    (15.9949, None, 'Oxidation (M)')
    """
    text = text.strip()
    if text.lower().startswith("chemmod:"):
        text = text[len("chemmod:") :].strip()
    if _NUMBER.fullmatch(text):
        return NotedModification(position, "", float(text), False if text[0] in "+-" else None)
    return NotedModification(position, text)


def parse_peptide(text: str) -> NotedPeptide:
    """Parse a peptide with modifications.

    Raises
    ------
    ValueError
        If the text is not a peptide; the message describes the reason.

    Examples
    --------
    >>> parse_peptide("K.n[42.0106]PEM[+15.9949]K.R").sequence
    'PEMK'
    >>> [modification.position for modification in parse_peptide("K.n[42.0106]PEM[+15.9949]K.R").modifications]
    [0, 3]
    """
    text = text.strip()
    if not text or len(text) > _MAXIMUM_CHARACTERS:
        raise ValueError("it is empty" if not text else f"it has more than {_MAXIMUM_CHARACTERS:,} characters")
    if text.isascii() and text.isalpha() and text.isupper():
        return NotedPeptide(text)
    if len(text) > 4 and text[1] == "." and text[-2] == ".":
        text = text[2:-2]
    text = text.strip("_")
    residues: list[str] = []
    modifications: list[NotedModification] = []
    at, is_end = 0, False
    while at < len(text):
        character = text[at]
        if character in _CLOSING:
            stop = _closing(text, at)
            position = 0 if not residues else len(residues) + is_end
            modifications.append(noted_modification(position, text[at + 1 : stop]))
            at = stop + 1
            continue
        if character in "+-" and (bare := _BARE.match(text, at)):
            modifications.append(NotedModification(len(residues) + is_end, "", float(bare[0])))
            at = bare.end()
            continue
        if "A" <= character <= "Z" and not is_end:
            residues.append(character)
        elif character in _PREFIXES and not is_end and text[at + 1 : at + 2] in ("S", "T", "Y"):
            modifications.append(NotedModification(len(residues) + 1, _PREFIXES[character]))
        elif character == "n" and not residues:
            pass
        elif character in "-.c" and residues:
            is_end = True
        elif character not in "-.":
            raise ValueError(f"it has {character!r} in place of a residue")
        at += 1
    if not residues:
        raise ValueError("it has no residues")
    return NotedPeptide("".join(residues), tuple(sorted(modifications, key=lambda noted: noted.position)))


def _closing(text: str, at: int) -> int:
    """Return the position of the bracket that closes the bracket at position `at`; names may contain brackets of the same type."""
    opening, closing, depth = text[at], _CLOSING[text[at]], 0
    for position in range(at, len(text)):
        depth += (text[position] == opening) - (text[position] == closing)
        if depth == 0:
            return position
    raise ValueError(f"a {opening} in it has no {closing}")
