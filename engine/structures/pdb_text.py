"""PDB files as programs write them, put into the form that the format describes before gemmi reads them.

What other programs do, and what is made of it:

* Files put together hold END between their atoms: what follows is read too.
* TER inside a chain: what follows is of the chain, where amino acids of ATOM records follow.
* Two molecules of one name and the same residue numbers: the second of chain A is chain A_2.
* Residue names of four characters, and serial numbers of six digits, that reach into the next columns.
* Residue numbers beyond 9999: hexadecimal, hybrid-36, five digits, asterisks, or begun anew at 0.
* Models: the first alone, or all of them as chains.

Records without readable coordinates are left out and counted. A file of the plain form is passed on as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from string import ascii_letters, digits
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.results.counts import counted
from proteoscope.engine.structures.residue_names import dynamics_parent, residue_kind

__all__ = ["PlainPdb", "copies_note", "copy_name", "models_note", "molecule_starts", "plain_pdb"]

_WIDTH = 54
"""Columns of an atom's record up to its coordinates."""
_RECORD = 80
"""Columns of a record."""
_CHAIN, _NUMBER, _INSERTION, _NAME = slice(20, 22), slice(22, 26), 26, slice(17, 20)
_NOT_READABLE = -(10**9)
_GREATEST_NUMBER = 2_436_111  # of hybrid-36 in four columns
_LAST_DECIMAL = 9999
_FIRST_HEXADECIMAL = f"{_LAST_DECIMAL + 1:x}"
_OFFSET = 1 << 20  # makes places of negative numbers positive
_DECIMAL, _HEXADECIMAL = re.compile(r" *-?\d+ *"), re.compile(r"\d[0-9A-Fa-f]{3}|[0-9A-Fa-f]{4}")
_HYBRID = re.compile(r"[A-Z][0-9A-Z]{3}|[a-z][0-9a-z]{3}")
_LONGEST_SHIFT = 2  # columns that a serial number may be too long


@dataclass(frozen=True)
class PlainPdb:
    """A PDB file in the plain form.

    Attributes
    ----------
    text : what gemmi reads. chain_names : names of chains by the codes that stand for them in `text`, where these differ.
    notes : what the user should know: what was left out, and what was read otherwise than it is written.
    """

    text: bytes
    chain_names: dict[str, str]
    notes: tuple[str, ...]


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


def plain_pdb(text: bytes, *, all_models: bool = False) -> PlainPdb:
    """Put a PDB file into the plain form.

    Parameters
    ----------
    text : ASCII. all_models : read the chains of all models, those of the second and further ones by other names.
    """
    if b"\n" not in text and b"\r" in text:
        text = text.replace(b"\r", b"\n")
    return _plain_form(text, all_models) or _Rewriting(text, all_models).result()


def _plain_form(text: bytes, all_models: bool) -> PlainPdb | None:
    """Return a file of the plain form, of several models the first; None for any other."""
    buffer = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(buffer == ord("\n"))
    alpha, names = np.empty(len(ends) + 1, np.int64), np.empty(kernels.cpu.pdb_text.MAXIMUM_NAMES, np.int64)
    result = np.zeros(kernels.cpu.pdb_text.N_PDB_RESULTS, np.int64)
    if not kernels.cpu.pdb_text.scan_pdb(buffer, ends, alpha, names, result):
        return None
    n_alpha, n_names, n_models, n_others, second, after = result.tolist()
    keys = np.sort(alpha[:n_alpha])
    is_repeated = bool((keys[1:] == keys[:-1]).any())
    if is_repeated or any(_begins_early(name.to_bytes(4).decode("latin-1")) for name in names[:n_names].tolist()):
        return None
    if n_models < 2:
        return PlainPdb(text, {}, ())
    return None if all_models else PlainPdb(text[:second] + text[after:], {}, (models_note(n_models, n_others),))


def _begins_early(name: str) -> bool:
    """True if columns 17 to 20 hold a residue name of four characters: some programs begin it in the column of the alternative location."""
    return bool(dynamics_parent(name)) and not residue_kind(name[1:])[1]


def molecule_starts(
    places: Sequence[Any], alternatives: Sequence[Any], breaks: Sequence[Any], models: Sequence[Any]
) -> list[int]:  # fmt: skip
    """Return where the second and further molecules of a chain begin, of Cα in the order of the file.

    One begins with another model, and where a residue is met again: with the last break or step back of the numbers before, else there.

    Parameters
    ----------
    places : residue number and insertion code, which are ordered. alternatives : names of alternative locations. breaks : change where a
        molecule may end. models : change where another model begins.
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


class _Rewriting:
    """The records of a file, and what is changed of them."""

    def __init__(self, text: bytes, all_models: bool) -> None:
        self._text, self._all_models = text, all_models
        buffer = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(buffer == ord("\n"))
        self._starts = np.concatenate([np.zeros(1, np.int64), ends + 1])
        self._stops = np.concatenate([ends, np.array([len(text)], np.int64)])
        self._padded = np.concatenate([buffer, np.full(_RECORD + 8, ord(" "), np.uint8)])
        self._has_returns = b"\r" in text
        heads = self._columns(np.arange(len(self._starts)), 4)
        heads[(heads >= ord("a")) & (heads <= ord("z"))] -= 32
        four, three = heads.view("S4")[:, 0], np.ascontiguousarray(heads[:, :3]).view("S3")[:, 0]
        self._is_atom = (four == b"ATOM") | (four == b"HETA")
        self._is_ter = (three == b"TER") & ((heads[:, 3] == ord(" ")) | (heads[:, 3] < 32))
        self._is_end = (three == b"END") & ((heads[:, 3] == ord(" ")) | (heads[:, 3] < 32))
        self._is_model = (four == b"ENDM") | (four == b"MODE")
        self._notes: list[str] = []
        self._names: dict[str, str] = {}
        self._changed: dict[int, bytes] = {}
        self._left_out = np.zeros(len(self._starts), np.bool_)

    def _columns(self, lines: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
        """(n, width) the first columns of these lines; blanks after their ends."""
        found = np.lib.stride_tricks.sliding_window_view(self._padded, width)[self._starts[lines]]
        lengths = self._stops[lines] - self._starts[lines]
        short = np.flatnonzero(lengths < width)
        if len(short):
            found[short] = np.where(np.arange(width) >= lengths[short, None], ord(" "), found[short])
        if self._has_returns:
            found[found == ord("\r")] = ord(" ")
        return found

    def result(self) -> PlainPdb:
        part = self._parts()
        lines = np.flatnonzero(self._is_atom & (part >= 0))
        if not len(lines):
            return PlainPdb(self._text, {}, ())
        lines, cells = self._readable(lines)
        if len(lines):
            atoms = _Atoms(lines, cells, part[lines])
            self._long_names(atoms)
            self._split_chains(atoms, self._read_numbers(atoms))
            self._changed |= atoms.changed(self._record)
            self._end_chains(atoms)
        return PlainPdb(self._written(), self._names, tuple(self._notes))

    def _parts(self) -> NDArray[np.int64]:
        """The number of each line's part of the file, -1 of models that are not read.

        Parts end with END and models; the first model of what lies between two ENDs is read. Where all is the same atoms as before the
        first END, it is another frame of a trajectory, which counts as a model.
        """
        section = np.cumsum(self._is_end) - self._is_end
        group = np.cumsum(self._is_model)
        atoms = np.flatnonzero(self._is_atom)
        if not len(atoms) or (section[atoms[0]] == section[atoms[-1]] and group[atoms[0]] == group[atoms[-1]]):
            return np.zeros(len(section), np.int64)
        keys = section[atoms] * (int(group[-1]) + 1) + group[atoms]
        found, first, part, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        sections = section[atoms[first]]
        is_read = np.concatenate([[True], sections[1:] != sections[:-1]])
        content = self._columns(atoms, 27)[:, 12:]
        stops = first + sizes
        for k in np.flatnonzero(is_read)[1:].tolist():
            is_frame = sizes[k] == sizes[0] and bool((content[first[k] : stops[k]] == content[: sizes[0]]).all())
            is_read[k] = not is_frame
        if not is_read.all() and not self._all_models:
            n_models = int((~is_read).sum()) + 1
            self._notes.append(models_note(n_models, int(sizes[~is_read].sum())))
        of_line = np.zeros(len(section), np.int64)
        of_line[atoms] = np.where(is_read | self._all_models, np.arange(len(found)), -1)[part.reshape(-1)]
        self._is_forced = ~is_read
        last = np.maximum.accumulate(np.where(self._is_atom, np.arange(len(section)), -1))
        of_line = np.where(last >= 0, of_line[np.maximum(last, 0)], 0)
        self._left_out |= (of_line < 0) & (self._is_atom | self._is_ter)
        self._left_out |= self._is_model
        self._left_out |= self._is_end & (np.arange(len(section)) < atoms[-1])
        return of_line

    _is_forced: NDArray[np.bool_] = np.zeros(1, np.bool_)
    """(p,) True for parts whose chains are others than those of the parts before, since they are models."""

    def _readable(self, lines: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """The lines of atoms whose coordinates can be read, and their columns; serial numbers that are too long are cut."""
        cells = self._columns(lines, _WIDTH)
        places = cells[:, 30:]
        is_plain = (places[:, [4, 12, 20]] == ord(".")).all(axis=1)
        is_digit = (places >= ord("0")) & (places <= ord("9"))
        is_known = is_digit | (places == ord(" ")) | (places == ord("-")) | (places == ord("."))
        is_plain &= is_known.all(axis=1) & is_digit[:, [3, 11, 19]].all(axis=1) & is_digit[:, [5, 13, 21]].all(axis=1)
        is_plain &= (places == ord(".")).sum(axis=1) == 3
        kept = np.ones(len(lines), np.bool_)
        is_plain &= self._stops[lines] - self._starts[lines] >= _WIDTH
        n_shifted = 0
        for k in np.flatnonzero(~is_plain).tolist():
            line = int(lines[k])
            record = self._text[self._starts[line] : self._stops[line]]
            shift = next((shift for shift in range(_LONGEST_SHIFT + 1) if _has_place(record, shift)), None)
            kept[k] = shift is not None
            if shift is None:
                continue
            if shift:
                n_shifted += 1
                record = b"%-6s%b" % (record[:6].rstrip(digits.encode()), record[6 + shift :])
            self._changed[line] = record = record.rstrip().ljust(_WIDTH)
            cells[k] = np.frombuffer(record[:_WIDTH], np.uint8)
        if n_shifted:
            self._notes.append(
                f"{counted(n_shifted, 'record')} of atoms with serial numbers that are too long, read as the next columns say"
            )
        self._blank_charges(lines[kept])
        bad = lines[~kept]
        if len(bad):
            self._left_out[bad] = True
            self._notes.append(
                f"{counted(len(bad), 'atom')} without readable coordinates left out, the first in line {bad[0] + 1:,}. "
                "Write the file anew, or correct these lines"
            )
        return lines[kept], cells[kept]

    def _blank_charges(self, lines: NDArray[np.int64]) -> None:
        """Blank what is no charge in its columns, which nothing here reads: gemmi refuses the file for it."""
        charge = self._columns(lines, 80)[:, 78:]
        is_digit, is_sign = (charge >= ord("0")) & (charge <= ord("9")), (charge == ord("+")) | (charge == ord("-"))
        is_right = (charge == ord(" ")).all(axis=1) | (is_digit.any(axis=1) & is_sign.any(axis=1))
        for line in lines[~is_right].tolist():
            record = self._record(line)
            self._changed[line] = record[:78] + b"  " + record[80:]

    def _record(self, line: int) -> bytes:
        return self._changed.get(line, self._text[self._starts[line] : self._stops[line]])

    def _long_names(self, atoms: _Atoms) -> None:
        """Names of four characters, whose last stands where chains of two characters have their first."""
        n_before = Counter[str]()
        for rows, name in atoms.long_names():
            parent = dynamics_parent(name) or name[:3]
            atoms.rename(rows, parent)
            n_before[name] += len(np.unique(atoms.run[rows]))
        if n_before:
            n = sum(n_before.values())
            shown = ", ".join(sorted(n_before)[:4])
            self._notes.append(f"{counted(n, 'residue')} with names of four characters ({shown}), read as the standard residues")

    def _read_numbers(self, atoms: _Atoms) -> NDArray[np.int64]:
        """(n,) the residue number of each atom."""
        numbers = atoms.plain_numbers()
        is_odd = numbers == _NOT_READABLE
        is_odd[1:] |= (numbers[:-1] == _LAST_DECIMAL) & (numbers[1:] == int(_FIRST_HEXADECIMAL))
        for chain in np.unique(atoms.chain[is_odd]).tolist():
            rows = np.flatnonzero(atoms.chain == chain)
            shown = atoms.chain_text(chain) or "without a name"
            runs = atoms.numbered_runs(rows)
            found, is_counted, is_hexadecimal = _numbers_of([atoms.number_text(row) for row in runs.tolist()])
            numbers[rows] = np.array(found, np.int64)[np.searchsorted(runs, rows, side="right") - 1]
            atoms.renumber(rows, numbers[rows])
            for some, what in (
                (is_counted, "have no readable number: counted on from the one before"),
                (is_hexadecimal, "have hexadecimal numbers, read as such"),
            ):
                if some:
                    line = int(atoms.lines[runs[min(some)]]) + 1
                    self._notes.append(f"{counted(len(some), 'residue')} of chain {shown} (from line {line:,}) {what}")
        return numbers

    def _split_chains(self, atoms: _Atoms, numbers: NDArray[np.int64]) -> None:
        """Give molecules that share a chain's name and residue numbers names of their own."""
        used = {atoms.chain_text(chain) for chain in np.unique(atoms.chain).tolist()}
        codes = _free_codes(used)
        breaks = np.cumsum(self._is_ter | self._is_end)[atoms.lines] + (atoms.part << 32)
        for chain in atoms.repeated_chains(numbers, self._is_forced):
            rows = np.flatnonzero(atoms.chain == chain)
            shown = atoms.chain_text(chain)
            if atoms.unwrap(rows, numbers):
                atoms.renumber(rows, numbers[rows])
                self._notes.append(
                    f"residue numbers of chain {shown or 'without a name'} begin anew after {_LAST_DECIMAL}: counted on from there"
                )
            starts = atoms.copies(rows, numbers, breaks, self._is_forced)
            made = []
            for k, start in enumerate(starts):
                name, code = copy_name(shown, used), next(codes, "")
                if not code:
                    self._notes.append(
                        f"{len(starts) - k:,} more molecules of chain {shown} are left out: a PDB file has no names for so many chains"
                    )
                    self._left_out[atoms.lines[rows[rows >= start]]] = True
                    break
                stop = starts[k + 1] if k + 1 < len(starts) else len(atoms.lines)
                atoms.rechain(rows[(rows >= start) & (rows < stop)], code)
                self._names[code] = name
                made.append((name, int(atoms.lines[start]) + 1))
            if made:
                self._notes.append(copies_note(shown, made))

    def _end_chains(self, atoms: _Atoms) -> None:
        """Leave out TER inside chains: gemmi takes what follows for ligands."""
        lines = np.flatnonzero(self._is_ter & ~self._left_out)
        if not len(lines):
            return
        chain_after = atoms.chain
        is_residue = atoms.is_amino_acid()
        order: dict[int, int] = {}
        for chain in np.unique(chain_after).tolist():
            rows = np.flatnonzero((chain_after == chain) & is_residue)
            order[chain] = int(atoms.lines[rows[-1]]) if len(rows) else -1
        before = np.searchsorted(atoms.lines, lines) - 1
        for line, row in zip(lines.tolist(), before.tolist(), strict=True):
            self._left_out[line] |= row < 0 or order[int(chain_after[row])] > line

    def _written(self) -> bytes:
        if not self._changed and not self._left_out.any():
            return self._text
        lines = self._text.split(b"\n")
        for number, record in self._changed.items():
            lines[number] = record
        return b"\n".join(line for line, is_left in zip(lines, self._left_out.tolist(), strict=True) if not is_left)


class _Atoms:
    """The records of atoms that are read, by their columns.

    `lines` : of the file. `part` : see `_Rewriting._parts`. `run` : (n,) number of the run of records of one residue.
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
        """A chain's name as the file has it."""
        return bytes([chain >> 8, chain & 255]).decode("latin-1").strip()

    def number_text(self, row: int) -> str:
        """Columns of the residue number and the insertion code of an atom."""
        return self._text(row, slice(22, 27))

    def _first_of_runs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows[np.concatenate([[True], self.run[rows[1:]] != self.run[rows[:-1]]])] if len(rows) else rows

    def long_names(self) -> Iterator[tuple[NDArray[np.int64], str]]:
        """Rows of atoms of residues whose names have four characters, with these names."""
        found = []
        for chain in np.unique(self.chain[self._cells[:, 20] != ord(" ")]).tolist():
            rows = np.flatnonzero(self.chain == chain)
            firsts = self._first_of_runs(rows)
            names = {self._text(row, slice(17, 21)) for row in firsts.tolist()}
            if all(dynamics_parent(name) for name in names) or self._is_amid(rows, chain, names):
                found += [(rows, name) for name in names]
        for rows, name in found:
            yield rows[(self._cells[rows, 17:21] == np.frombuffer(name.encode("latin-1"), np.uint8)).all(axis=1)], name
        for row in self._first_of_runs(np.flatnonzero(self._cells[:, 16] != ord(" "))).tolist():
            name = self._text(row, slice(16, 20))
            if _begins_early(name):
                rows = np.flatnonzero(self.run == self.run[row])
                self._cells[rows, 16] = ord(" ")
                yield rows, name

    def _is_amid(self, rows: NDArray[np.int64], chain: int, names: set[str]) -> bool:
        """True if standard residues of a chain of two characters continue the numbers of the chain without the first of them."""
        if not all(residue_kind(name[:3].strip())[1] for name in names):
            return False
        near = []
        for step in (-1, 1):
            beside = rows + step
            is_inside = (beside >= 0) & (beside < len(self.lines))
            here, beside = rows[is_inside], beside[is_inside]
            here, beside = here[self.chain[beside] != chain], beside[self.chain[beside] != chain]
            is_same = self.chain[beside] == (ord(" ") << 8 | chain & 255)
            ours, theirs = (self._decimal(some) for some in (here, beside))
            near.append((is_same & (ours - theirs == -step)).all() and len(here) > 0)
        return all(near)

    def _decimal(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([int(text) if _DECIMAL.fullmatch(text := self._text(row, _NUMBER)) else 0 for row in rows.tolist()], np.int64)

    def rename(self, rows: NDArray[np.int64], name: str) -> None:
        """Give atoms another residue name of three characters, and a chain of the last character."""
        self._cells[rows, _NAME] = np.frombuffer(f"{name:>3.3}".encode("latin-1"), np.uint8)
        self._cells[rows, 20] = ord(" ")
        self._is_changed[rows] = True
        self._set_runs()

    def rechain(self, rows: NDArray[np.int64], code: str) -> None:
        """Give atoms another chain."""
        self._cells[rows, _CHAIN] = np.frombuffer(code.encode(), np.uint8)
        self._is_changed[rows] = True
        self.chain[rows] = ord(code[0]) << 8 | ord(code[1])

    def renumber(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Give atoms other residue numbers, beyond 9999 as hybrid-36."""
        for number in np.unique(numbers).tolist():
            here = rows[numbers == number]
            self._cells[here, _NUMBER] = np.frombuffer(_hybrid(number).encode(), np.uint8)
        is_wide = (self._cells[rows, _INSERTION] >= ord("0")) & (self._cells[rows, _INSERTION] <= ord("9")) & (numbers > _LAST_DECIMAL)
        self._cells[rows[is_wide], _INSERTION] = ord(" ")
        self._is_changed[rows] = True

    def plain_numbers(self) -> NDArray[np.int64]:
        """(n,) decimal residue numbers; `_NOT_READABLE` for others."""
        cells = self._cells[:, _NUMBER]
        is_digit = (cells >= ord("0")) & (cells <= ord("9"))
        is_blank, is_minus = cells == ord(" "), cells == ord("-")
        # Blanks, a minus, digits: no column is less than the one before in this order.
        order = np.where(is_digit, 2, np.where(is_minus, 1, np.where(is_blank, 0, 9)))
        is_plain = (order[:, 3] == 2) & (np.diff(order, axis=1) >= 0).all(axis=1) & (is_minus.sum(axis=1) < 2)
        insertion = self._cells[:, _INSERTION]
        is_plain &= ~(is_digit.all(axis=1) & (insertion >= ord("0")) & (insertion <= ord("9")))
        value = (np.where(is_digit, cells, ord("0")).astype(np.int64) - ord("0")) @ np.array([1000, 100, 10, 1])
        return np.where(is_plain, np.where(is_minus.any(axis=1), -value, value), _NOT_READABLE)

    def numbered_runs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """First rows of the residues of a chain; without a number, a residue begins where an atom is met again."""
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
        return rows[is_alpha & ~((self._cells[rows, _NAME] == np.frombuffer(b" CA", np.uint8)).all(axis=1))]

    def _places(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """One number for the residue number and the insertion code of each row."""
        return numbers[rows] << 8 | self._cells[rows, _INSERTION]

    def repeated_chains(self, numbers: NDArray[np.int64], is_forced: NDArray[np.bool_]) -> list[int]:
        """Chains in which a Cα is met again, apart from the place where it was met first."""
        rows = self._alpha(np.arange(len(self.lines)))
        if not len(rows):
            return []
        order = rows[np.argsort(self.chain[rows], kind="stable")]
        # 16 bits of the chain, 32 of the place and 8 of the alternative location.
        place = self.chain[order] << 32 | (self._places(order, numbers) + _OFFSET)
        is_new = np.concatenate([[True], (place[1:] != place[:-1]) | (self.part[order[1:]] != self.part[order[:-1]])])
        keys = np.sort((place << 8 | self._cells[order, 16])[is_new])
        repeated = set((keys[1:][keys[1:] == keys[:-1]] >> 40).tolist())
        if is_forced.any():
            repeated |= set(np.unique(self.chain[is_forced[self.part]]).tolist())
        return sorted(repeated)

    def unwrap(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> bool:
        """Count on where a chain's numbers begin anew after 9999; True if they do. Changes `numbers`."""
        here = numbers[rows]
        is_wrap = (here[:-1] == _LAST_DECIMAL) & ((here[1:] == 0) | (here[1:] == 1)) & (self.part[rows[1:]] == self.part[rows[:-1]])
        if not is_wrap.any():
            return False
        turns = np.concatenate([[0], np.cumsum(is_wrap)])
        # What begins at 1 has left out the number 10000.
        numbers[rows] = here + turns * (_LAST_DECIMAL + 1)
        return True

    def copies(
        self, rows: NDArray[np.int64], numbers: NDArray[np.int64], breaks: NDArray[np.int64], is_forced: NDArray[np.bool_]
    ) -> list[int]:
        """First rows of the second and further molecules of a chain.

        One begins where a residue is met again: with the last TER, END or step back of the numbers before it, else there.
        """
        alpha = self._alpha(rows)
        if not len(alpha):
            return []
        places, alternatives = self._places(alpha, numbers).tolist(), self._cells[alpha, 16].tolist()
        part = self.part[alpha]
        models = np.cumsum(np.concatenate([[False], (part[1:] != part[:-1]) & is_forced[part[1:]]])).tolist()
        starts = molecule_starts(places, alternatives, breaks[alpha].tolist(), models)
        return [self._first_of_residue(int(alpha[k])) for k in starts]

    def _first_of_residue(self, row: int) -> int:
        while row and self.run[row - 1] == self.run[row]:
            row -= 1
        return row

    def is_amino_acid(self) -> NDArray[np.bool_]:
        """(n,) True for ATOM records of amino acids."""
        names = self._cells[:, 17:20].astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
        found, inverse = np.unique(names, return_inverse=True)
        table = np.array([residue_kind(int(name).to_bytes(3, "big").decode("latin-1").strip())[1] for name in found.tolist()], np.bool_)
        return table[inverse.reshape(-1)] & (self._cells[:, 0] == ord("A"))

    def changed(self, record: Callable[[int], bytes]) -> dict[int, bytes]:
        """Records that are written anew, by their lines; `record`: what a line is until now."""
        lines = self.lines[self._is_changed].tolist()
        return {line: cells.tobytes() + record(line)[_WIDTH:] for line, cells in zip(lines, self._cells[self._is_changed], strict=True)}


def _has_place(record: bytes, shift: int) -> bool:
    """True if three numbers stand in the columns of coordinates, so many columns to the right."""
    if len(record.rstrip()) < 31 + shift + 16:
        return False
    for first in (30, 38, 46):
        text = record[first + shift : first + shift + 8].strip()
        if not re.fullmatch(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
            return False
    return not shift or record[10 + shift : 12 + shift].strip(b"0123456789") in (b" ", b"  ", b"")


def _numbers_of(texts: list[str]) -> tuple[list[int], list[int], list[int]]:
    """Numbers of the residues of a chain from their columns; which had to be counted, and which are hexadecimal."""
    found, is_counted, hexadecimal = list[int](), list[int](), list[int]()
    is_hexadecimal = False
    for k, text in enumerate(texts):
        number, before = text[:4], found[-1] if found else 0
        begins = number == _FIRST_HEXADECIMAL and before == _LAST_DECIMAL
        if not is_hexadecimal and (begins or (re.fullmatch(r"\d[0-9A-Fa-f]{3}", number) and not number.isdigit())):
            is_hexadecimal = True
            hexadecimal += _earlier_hexadecimal(texts, found, int(number, 16), k)
        is_hexadecimal = is_hexadecimal and _HEXADECIMAL.fullmatch(number) is not None
        if is_hexadecimal:
            found.append(int(number, 16))
            hexadecimal.append(k)
        elif number.isdigit() and text[4].isdigit():
            found.append(int(text))
        elif _DECIMAL.fullmatch(number):
            found.append(int(number))
        elif _HYBRID.fullmatch(number):
            found.append(_from_hybrid(number))
        else:
            found.append(before + 1)
            is_counted.append(k)
        found[-1] = min(found[-1], _GREATEST_NUMBER)
    return found, is_counted, hexadecimal


def _earlier_hexadecimal(texts: list[str], found: list[int], value: int, stop: int) -> list[int]:
    """Read the numbers before a hexadecimal one as such, as far as they lead up to it; which these are."""
    changed = []
    for k in range(stop - 1, -1, -1):
        number = texts[k][:4]
        if not number.isdigit() or not 0 <= value - int(number, 16) <= 1 or int(number, 16) <= _LAST_DECIMAL:
            break
        value = found[k] = int(number, 16)
        changed.append(k)
    return changed


def _from_hybrid(text: str) -> int:
    value = int(text, 36)
    return value - 10 * 36**3 + 10_000 if text[0].isupper() else value + 16 * 36**3 + 10_000


def _hybrid(number: int) -> str:
    """Four columns of a residue number.

    >>> _hybrid(-5), _hybrid(9999), _hybrid(10000), _hybrid(_from_hybrid("zzzz"))
    ('  -5', '9999', 'A000', 'zzzz')
    """
    if -1000 < number <= _LAST_DECIMAL:
        return f"{number:4d}"
    value = number - 10_000 + 10 * 36**3
    is_lower = value >= 36**4
    value -= 26 * 36**3 if is_lower else 0
    text = ""
    for _ in range(4):
        value, rest = divmod(value, 36)
        text = (digits + ascii_letters)[rest] + text
    return text if is_lower else text.upper()


def _free_codes(used: set[str]) -> Iterator[str]:
    """Names of two characters that no chain has."""
    return (code for code in map("".join, product(ascii_letters + digits, repeat=2)) if code not in used)


def copies_note(shown: str, made: list[tuple[str, int]]) -> str:
    """Return the sentence on molecules of one name; `made`: the others' names, and the lines that they begin in (0: not known)."""
    names = ", ".join(name for name, _ in made[:4]) + (f" and {len(made) - 4:,} more" if len(made) > 4 else "")
    line = made[0][1]
    whole = f"chain {shown}" if shown else "the chain without a name"
    where = f", the second from line {line:,}" if line else ""
    return f"{whole} holds {len(made) + 1:,} molecules with the same residue numbers{where}: those after the first are read as {names}"
