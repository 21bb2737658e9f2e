"""Peptides as other programs note them, in the habits of search engines and libraries, read into residues and modifications.

Read are modifications in square brackets or parentheses behind their residues, by name (``M[Oxidation]``, ``M(Oxidation (M))``,
``M[UNIMOD:35]``), by what they add (``M[+15.9949]``) or by the mass of the residue with them (``M[147]``), signed masses without brackets
(``M+15.995``), termini (``n[42.01]PEPTIDE``, ``[Acetyl]-PEPTIDE``, ``.(Acetyl)PEPTIDE``, ``_(ac)PEPTIDE_``, ``PEPTIDEc[17]``), MaxQuant's
``pS``, ``pT`` and ``pY``, and the residues beside the peptide (``K.PEPTIDE.R``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["NotedModification", "NotedPeptide", "is_sequence", "noted_modification", "parse_peptide"]

_MAXIMUM_LETTERS = 5000
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_PREFIXES = {"p": "Phospho"}
"""What a lower-case character before a residue notes, as in MaxQuant's ``pS``."""
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_BARE = re.compile(r"[+-](?:\d+\.?\d*|\.\d+)")


class NotedModification(NamedTuple):
    """A modification as a file notes it: 0 the N-terminus, 1 to L the residues, L + 1 the C-terminus; its name, empty where the file gives
    none; its mass in dalton, None where the file gives none; whether that is the mass of the residue or terminus with it, None where the
    notation has both habits."""

    position: int
    name: str = ""
    mass: float | None = None
    is_whole: bool | None = False


class NotedPeptide(NamedTuple):
    """A peptide as a file notes it: residues as capital letters, and its modifications in the order of their positions."""

    sequence: str
    modifications: tuple[NotedModification, ...] = ()


def is_sequence(text: str) -> bool:
    """Return True if a text is the residues of a peptide: capital letters, not more than any peptide has.

    >>> is_sequence("PEPTIDEK"), is_sequence("PEPTIDEk"), is_sequence("K" * 5001)
    (True, False, False)
    """
    return 0 < len(text) <= _MAXIMUM_LETTERS and text.isascii() and text.isalpha() and text.isupper()


def noted_modification(position: int, text: str) -> NotedModification:
    """A modification from the text between its brackets: a name, a mass that is added (with its sign), or a mass of either habit.

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
    """A peptide from its text.

    Raises
    ------
    ValueError : the text is none; the message says why.

    Examples
    --------
    >>> parse_peptide("K.n[42.0106]PEM[+15.9949]K.R").sequence
    'PEMK'
    >>> [one.position for one in parse_peptide("K.n[42.0106]PEM[+15.9949]K.R").modifications]
    [0, 3]
    """
    text = text.strip()
    if not text or len(text) > _MAXIMUM_LETTERS:
        raise ValueError("it is empty" if not text else f"it has more than {_MAXIMUM_LETTERS:,} letters")
    if text.isascii() and text.isalpha() and text.isupper():
        return NotedPeptide(text)
    if len(text) > 4 and text[1] == "." and text[-2] == ".":
        text = text[2:-2]
    text = text.strip("_")
    residues: list[str] = []
    found: list[NotedModification] = []
    at, is_end = 0, False
    while at < len(text):
        letter = text[at]
        if letter in _CLOSING:
            stop = _closing(text, at)
            position = 0 if not residues else len(residues) + is_end
            found.append(noted_modification(position, text[at + 1 : stop]))
            at = stop + 1
            continue
        if letter in "+-" and (bare := _BARE.match(text, at)):
            found.append(NotedModification(len(residues) + is_end, "", float(bare[0])))
            at = bare.end()
            continue
        if "A" <= letter <= "Z" and not is_end:
            residues.append(letter)
        elif letter in _PREFIXES and not is_end and text[at + 1 : at + 2] in ("S", "T", "Y"):
            found.append(NotedModification(len(residues) + 1, _PREFIXES[letter]))
        elif letter == "n" and not residues:
            pass
        elif letter in "-.c" and residues:
            is_end = True
        elif letter not in "-.":
            raise ValueError(f"{letter!r} stands in it where a residue belongs")
        at += 1
    if not residues:
        raise ValueError("it has no residues")
    return NotedPeptide("".join(residues), tuple(sorted(found, key=lambda one: one.position)))


def _closing(text: str, at: int) -> int:
    """Place of the bracket that closes the one at `at`; names may hold brackets of the same kind."""
    opening, closing, depth = text[at], _CLOSING[text[at]], 0
    for place in range(at, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return place
    raise ValueError(f"a {opening} in it has no {closing}")
