"""Atom records of PDB files as columns of characters, which are read and rewritten."""

import re
from collections.abc import Callable, Iterator
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start
from proteoscope.engine.structures.chain_copies import molecule_starts
from proteoscope.engine.structures.residue_names import dynamics_parent, residue_kind

__all__ = [
    "ATOM_COLUMNS",
    "DECIMAL_NUMBER",
    "FIRST_HEXADECIMAL",
    "LAST_DECIMAL",
    "NOT_READABLE",
    "PdbAtoms",
    "begins_early",
    "hybrid_36",
    "read_residue_numbers",
]

LAST_DECIMAL = 9999
"""Largest number in four columns of decimal digits."""
FIRST_HEXADECIMAL = f"{LAST_DECIMAL + 1:x}"
"""Text of the number after `LAST_DECIMAL` in programs that continue in hexadecimal."""
DECIMAL_NUMBER = re.compile(r" *-?\d+ *")
_GREATEST_NUMBER = 2_436_111  # largest number of hybrid-36 in four columns
_HEXADECIMAL = re.compile(r"\d[0-9A-Fa-f]{3}|[0-9A-Fa-f]{4}")
_HYBRID = re.compile(r"[A-Z][0-9A-Z]{3}|[a-z][0-9a-z]{3}")


def read_residue_numbers(texts: list[str]) -> tuple[list[int], list[int], list[int]]:
    """Parse the residue numbers of a chain.

    Parameters
    ----------
    texts : list of str
        For each residue, the five characters of residue number and insertion code.

    Returns
    -------
    numbers : list of int
        Number of each residue; an unreadable number is replaced by the previous number plus 1.
    counted : list of int
        Indices of residues with unreadable numbers.
    hexadecimal : list of int
        Indices of residues with hexadecimal numbers.
    """
    result, is_counted, hexadecimal = list[int](), list[int](), list[int]()
    is_hexadecimal = False
    for k, text in enumerate(texts):
        number, before = text[:4], result[-1] if result else 0
        begins = number == FIRST_HEXADECIMAL and before == LAST_DECIMAL
        if not is_hexadecimal and (begins or (re.fullmatch(r"\d[0-9A-Fa-f]{3}", number) and not number.isdigit())):
            is_hexadecimal = True
            hexadecimal += _earlier_hexadecimal(texts, result, int(number, 16), k)
        is_hexadecimal = is_hexadecimal and _HEXADECIMAL.fullmatch(number) is not None
        if is_hexadecimal:
            result.append(int(number, 16))
            hexadecimal.append(k)
        elif number.isdigit() and text[4].isdigit():
            result.append(int(text))
        elif DECIMAL_NUMBER.fullmatch(number):
            result.append(int(number))
        elif _HYBRID.fullmatch(number):
            result.append(_from_hybrid(number))
        else:
            result.append(before + 1)
            is_counted.append(k)
        result[-1] = min(result[-1], _GREATEST_NUMBER)
    return result, is_counted, hexadecimal


def _earlier_hexadecimal(texts: list[str], numbers: list[int], value: int, stop: int) -> list[int]:
    """Reinterpret as hexadecimal the numbers directly before a hexadecimal number that lead up to it without a gap; return their indices.

    Changes `numbers` before the index `stop`, where `value` is the number.
    """
    changed = []
    for k in range(stop - 1, -1, -1):
        number = texts[k][:4]
        if not number.isdigit() or not 0 <= value - int(number, 16) <= 1 or int(number, 16) <= LAST_DECIMAL:
            break
        value = numbers[k] = int(number, 16)
        changed.append(k)
    return changed


def _from_hybrid(text: str) -> int:
    value = int(text, 36)
    return value - 10 * 36**3 + 10_000 if text[0].isupper() else value + 16 * 36**3 + 10_000


def hybrid_36(number: int) -> str:
    """Return a residue number as the four characters of its PDB columns.

    Examples
    --------
    >>> hybrid_36(-5), hybrid_36(9999), hybrid_36(10000), hybrid_36(_from_hybrid("zzzz"))
    ('  -5', '9999', 'A000', 'zzzz')
    """
    if -1000 < number <= LAST_DECIMAL:
        return f"{number:4d}"
    value = number - 10_000 + 10 * 36**3
    is_lower = value >= 36**4
    value -= 26 * 36**3 if is_lower else 0
    text = ""
    for _ in range(4):
        value, rest = divmod(value, 36)
        text = (digits + ascii_lowercase + ascii_uppercase)[rest] + text
    return text if is_lower else text.upper()


ATOM_COLUMNS = 54
"""Number of columns of an atom record up to its coordinates."""
NOT_READABLE = -(10**9)
"""Residue number for texts that are not decimal."""
_CHAIN, _NUMBER, _INSERTION, _NAME = slice(20, 22), slice(22, 26), 26, slice(17, 20)
_OFFSET = 1 << 20  # added to the keys of residues, so that negative residue numbers give positive keys


def begins_early(name: str) -> bool:
    """Return True if the text of columns 17 to 20 is a four-character residue name; some programs start such names one column too early."""
    return bool(dynamics_parent(name)) and not residue_kind(name[1:])[1]


class PdbAtoms:
    """Atom records (n) of a PDB file.

    Parameters
    ----------
    lines : ndarray of int64, shape (n,)
        Index of the line of each record.
    cells : ndarray of uint8, shape (n, ATOM_COLUMNS)
        Characters of each record, which are changed in place.
    part : ndarray of int64, shape (n,)
        Index of the section of the file, as in `_Rewriting._parts`.

    Attributes
    ----------
    lines, part : ndarray of int64, shape (n,)
        Index of the line, and of the section of the file, as given.
    chain : ndarray of int64, shape (n,)
        Both characters of the chain name as one number.
    run : ndarray of int64, shape (n,)
        Index of the segment of consecutive records that belong to one residue.
    """

    def __init__(self, lines: NDArray[np.int64], cells: NDArray[np.uint8], part: NDArray[np.int64]) -> None:
        self.lines, self.part, self._cells = lines, part, cells
        self._is_changed = np.zeros(len(lines), np.bool_)
        self._set_runs()

    def _set_runs(self) -> None:
        self.chain = self._cells[:, 20].astype(np.int64) << 8 | self._cells[:, 21]
        here = np.concatenate([self._cells[:, 17:27], self.part.astype("<i8").view(np.uint8).reshape(-1, 8)], axis=1)
        self.run = np.cumsum(np.concatenate([[False], (here[1:] != here[:-1]).any(axis=1)]))

    def _text(self, row: int, columns: slice) -> str:
        return self._cells[row, columns].tobytes().decode("latin-1")

    def chain_text(self, chain: int) -> str:
        """Return the name of a chain as in the file."""
        return bytes([chain >> 8, chain & 255]).decode("latin-1").strip()

    def number_text(self, row: int) -> str:
        """Return the columns of the residue number and the insertion code of an atom."""
        return self._text(row, slice(22, 27))

    def _first_of_runs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows[is_group_start(self.run[rows])]

    def long_names(self) -> Iterator[tuple[NDArray[np.int64], str]]:
        """Yield groups of atoms whose residues have a name of four characters: the indices of the atoms, and the name."""
        result = []
        for chain in np.unique(self.chain[self._cells[:, 20] != ord(" ")]).tolist():
            rows = np.flatnonzero(self.chain == chain)
            firsts = self._first_of_runs(rows)
            names = {self._text(row, slice(17, 21)) for row in firsts.tolist()}
            if all(dynamics_parent(name) for name in names) or self._is_amid(rows, chain, names):
                result += [(rows, name) for name in names]
        for rows, name in result:
            yield rows[(self._cells[rows, 17:21] == np.frombuffer(name.encode("latin-1"), np.uint8)).all(axis=1)], name
        for row in self._first_of_runs(np.flatnonzero(self._cells[:, 16] != ord(" "))).tolist():
            name = self._text(row, slice(16, 20))
            if begins_early(name):
                rows = np.flatnonzero(self.run == self.run[row])
                self._cells[rows, 16] = ord(" ")
                yield rows, name

    def _is_amid(self, rows: NDArray[np.int64], chain: int, names: set[str]) -> bool:
        """Return True if the apparent two-character chain name is the end of a residue name and the actual chain name.

        This is so if the residues before and after the atoms `rows` belong to the chain named by the second character, and their numbers
        are consecutive.
        """
        if not all(residue_kind(name[:3].strip())[1] for name in names):
            return False
        near = []
        for step in (-1, 1):
            neighbours = rows + step
            is_inside = (neighbours >= 0) & (neighbours < len(self.lines))
            here, neighbours = rows[is_inside], neighbours[is_inside]
            here, neighbours = here[self.chain[neighbours] != chain], neighbours[self.chain[neighbours] != chain]
            is_same = self.chain[neighbours] == (ord(" ") << 8 | chain & 255)
            ours, theirs = (self._decimal(some) for some in (here, neighbours))
            near.append((is_same & (ours - theirs == -step)).all() and len(here) > 0)
        return all(near)

    def _decimal(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([int(text) if DECIMAL_NUMBER.fullmatch(text := self._text(row, _NUMBER)) else 0 for row in rows.tolist()], np.int64)

    def rename(self, rows: NDArray[np.int64], name: str) -> None:
        """Set the residue name of atoms, and reduce their chain name to its last character.

        Parameters
        ----------
        rows : ndarray of int64
            Indices of the atoms.
        name : str
            Residue name, at most three characters.
        """
        self._cells[rows, _NAME] = np.frombuffer(f"{name:>3.3}".encode("latin-1"), np.uint8)
        self._cells[rows, 20] = ord(" ")
        self._is_changed[rows] = True
        self._set_runs()

    def rechain(self, rows: NDArray[np.int64], code: str) -> None:
        """Set the chain name of atoms.

        Parameters
        ----------
        rows : ndarray of int64
            Indices of the atoms.
        code : str
            Chain name of exactly two characters.
        """
        self._cells[rows, _CHAIN] = np.frombuffer(code.encode(), np.uint8)
        self._is_changed[rows] = True
        self.chain[rows] = ord(code[0]) << 8 | ord(code[1])

    def renumber(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Set the residue numbers of atoms, using hybrid-36 for numbers above 9999.

        Parameters
        ----------
        rows : ndarray of int64, shape (k,)
            Indices of the atoms.
        numbers : ndarray of int64, shape (k,)
            Residue number of each of these atoms.
        """
        for number in np.unique(numbers).tolist():
            here = rows[numbers == number]
            self._cells[here, _NUMBER] = np.frombuffer(hybrid_36(number).encode(), np.uint8)
        is_wide = (self._cells[rows, _INSERTION] >= ord("0")) & (self._cells[rows, _INSERTION] <= ord("9")) & (numbers > LAST_DECIMAL)
        self._cells[rows[is_wide], _INSERTION] = ord(" ")
        self._is_changed[rows] = True

    def plain_numbers(self) -> NDArray[np.int64]:
        """Return the decimal residue numbers, (n,); `NOT_READABLE` for other texts."""
        cells = self._cells[:, _NUMBER]
        is_digit = (cells >= ord("0")) & (cells <= ord("9"))
        is_blank, is_minus = cells == ord(" "), cells == ord("-")
        # A valid number has blanks, then a minus, then digits: these ranks never decrease.
        order = np.where(is_digit, 2, np.where(is_minus, 1, np.where(is_blank, 0, 9)))
        is_plain = (order[:, 3] == 2) & (np.diff(order, axis=1) >= 0).all(axis=1) & (is_minus.sum(axis=1) < 2)
        insertion = self._cells[:, _INSERTION]
        is_plain &= ~(is_digit.all(axis=1) & (insertion >= ord("0")) & (insertion <= ord("9")))
        value = (np.where(is_digit, cells, ord("0")).astype(np.int64) - ord("0")) @ np.array([1000, 100, 10, 1])
        return np.where(is_plain, np.where(is_minus.any(axis=1), -value, value), NOT_READABLE)

    def numbered_runs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first atom of each residue of a chain; where residue numbers are missing, a repeated atom name starts a residue."""
        firsts = set(self._first_of_runs(rows).tolist())
        starts, met = [], set[bytes]()
        for row in rows.tolist():
            atom = self._cells[row, 12:17].tobytes()
            is_hidden = not self._text(row, _NUMBER).strip(" *")
            if row in firsts or (is_hidden and atom in met):
                starts.append(row)
                met = set()
            met.add(atom)
        return np.array(starts, np.int64)

    def _alpha(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        atom = self._cells[rows, 12:16]
        is_alpha = (atom == np.frombuffer(b" CA ", np.uint8)).all(axis=1)
        alphas: NDArray[np.int64] = rows[is_alpha & ~((self._cells[rows, _NAME] == np.frombuffer(b" CA", np.uint8)).all(axis=1))]
        return alphas

    def _places(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each atom an integer that encodes residue number and insertion code."""
        places: NDArray[np.int64] = numbers[rows] << 8 | self._cells[rows, _INSERTION]
        return places

    def repeated_chains(self, numbers: NDArray[np.int64], is_forced: NDArray[np.bool_]) -> list[int]:
        """Return the chains that may contain several molecules: those in which a residue's Cα occurs again, and those of forced sections.

        Parameters
        ----------
        numbers : ndarray of int64, shape (n,)
            Residue number of each atom.
        is_forced : ndarray of bool, shape (p,)
            True for each section of the file that is a separate model: its chains differ from those of earlier sections.

        Returns
        -------
        list of int
            Values of `chain`, ascending.
        """
        rows = self._alpha(np.arange(len(self.lines)))
        if not len(rows):
            return []
        order = rows[np.argsort(self.chain[rows], kind="stable")]
        # 16 bits for the chain, 32 for the residue and 8 for the alternative location.
        position = self.chain[order] << 32 | (self._places(order, numbers) + _OFFSET)
        is_new = is_group_start(position, self.part[order])
        keys = np.sort((position << 8 | self._cells[order, 16])[is_new])
        repeated = set((keys[1:][keys[1:] == keys[:-1]] >> 40).tolist())
        if is_forced.any():
            repeated |= set(np.unique(self.chain[is_forced[self.part]]).tolist())
        return sorted(repeated)

    def unwrap(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> bool:
        """Continue residue numbers that restart after 9999 within a chain.

        Parameters
        ----------
        rows : ndarray of int64
            Indices of the atoms of the chain.
        numbers : ndarray of int64, shape (n,)
            Residue number of each atom; changed in place.

        Returns
        -------
        bool
            True if a number was changed.
        """
        here = numbers[rows]
        is_wrap = (here[:-1] == LAST_DECIMAL) & ((here[1:] == 0) | (here[1:] == 1)) & (self.part[rows[1:]] == self.part[rows[:-1]])
        if not is_wrap.any():
            return False
        turns = np.concatenate([[0], np.cumsum(is_wrap)])
        # A restart at 1 skips the number 10000.
        numbers[rows] = here + turns * (LAST_DECIMAL + 1)
        return True

    def copies(
        self, rows: NDArray[np.int64], numbers: NDArray[np.int64], breaks: NDArray[np.int64], is_forced: NDArray[np.bool_]
    ) -> list[int]:
        """Return the first atoms of the second and further molecules of a chain (see `molecule_starts`).

        Parameters
        ----------
        rows : ndarray of int64
            Indices of the atoms of the chain.
        numbers : ndarray of int64, shape (n,)
            Residue number of each atom.
        breaks : ndarray of int64, shape (n,)
            Number that changes at each TER and END, where a molecule may end.
        is_forced : ndarray of bool, shape (p,)
            True for each section of the file that is a separate model: its chains differ from those of earlier sections.

        Returns
        -------
        list of int
            Indices of the atoms.
        """
        alpha = self._alpha(rows)
        if not len(alpha):
            return []
        positions, alternatives = self._places(alpha, numbers).tolist(), self._cells[alpha, 16].tolist()
        part = self.part[alpha]
        models = np.cumsum(np.concatenate([[False], (part[1:] != part[:-1]) & is_forced[part[1:]]])).tolist()
        starts = molecule_starts(positions, alternatives, breaks[alpha].tolist(), models)
        return [self._first_of_residue(int(alpha[k])) for k in starts]

    def _first_of_residue(self, row: int) -> int:
        while row and self.run[row - 1] == self.run[row]:
            row -= 1
        return row

    def is_amino_acid(self) -> NDArray[np.bool_]:
        """Return True for ATOM records of amino acids, (n,)."""
        names = self._cells[:, 17:20].astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
        result, inverse = np.unique(names, return_inverse=True)
        table = np.array([residue_kind(int(name).to_bytes(3, "big").decode("latin-1").strip())[1] for name in result.tolist()], np.bool_)
        is_residue: NDArray[np.bool_] = table[inverse.reshape(-1)] & (self._cells[:, 0] == ord("A"))
        return is_residue

    def changed(self, record: Callable[[int], bytes]) -> dict[int, bytes]:
        """Return the text of each changed record by line number; its last columns are taken from ``record(line)``, the current text."""
        lines = self.lines[self._is_changed].tolist()
        return {
            line: cells.tobytes() + record(line)[ATOM_COLUMNS:] for line, cells in zip(lines, self._cells[self._is_changed], strict=True)
        }
