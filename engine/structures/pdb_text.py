"""Normalisation of PDB files written by other programs, before gemmi reads them.

Deviations and their treatment:

* Concatenated files have END between atoms: the atoms after it are read as well.
* TER inside a chain: the amino acids of ATOM records after it belong to the chain.
* Two molecules with the same chain name and residue numbers: the second molecule of chain A becomes chain A_2.
* Residue names of four characters and serial numbers of six digits extend into the next columns.
* Residue numbers beyond 9999: hexadecimal, hybrid-36, five digits, asterisks, or restarted at 0.
* Several models: only the first is read, or all as chains.

Records with unreadable coordinates are skipped and counted. Files in standard form are unchanged.
"""

import re
from collections import Counter
from dataclasses import dataclass
from string import digits

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import is_group_start
from proteoscope.engine.results.counts import counted
from proteoscope.engine.structures.chain_copies import copies_note, copy_name, free_codes, models_note
from proteoscope.engine.structures.pdb_atoms import (
    ATOM_COLUMNS,
    FIRST_HEXADECIMAL,
    LAST_DECIMAL,
    NOT_READABLE,
    PdbAtoms,
    begins_early,
    read_residue_numbers,
)
from proteoscope.engine.structures.residue_names import dynamics_parent

__all__ = ["PlainPdb", "plain_pdb"]

_RECORD = 80
"""Number of columns of a record."""
_LONGEST_SHIFT = 2  # maximum number of columns by which a serial number may be too long


@dataclass(frozen=True)
class PlainPdb:
    """PDB file in standard form.

    Attributes
    ----------
    text : bytes
        Text to be read by gemmi.
    chain_names : dict of str to str
        Name in the file of each renamed chain, by its name in `text`.
    notes : tuple of str
        Messages for the user about omitted and reinterpreted content.
    """

    text: bytes
    chain_names: dict[str, str]
    notes: tuple[str, ...]


def plain_pdb(text: bytes, *, all_models: bool = False) -> PlainPdb:
    """Convert a PDB file to standard form.

    Parameters
    ----------
    text : bytes
        ASCII text.
    all_models : bool
        True to read the chains of all models; chains of the second and further models get new names.
    """
    if b"\n" not in text and b"\r" in text:
        text = text.replace(b"\r", b"\n")
    return _plain_form(text, all_models) or _Rewriting(text, all_models).result()


def _plain_form(text: bytes, all_models: bool) -> PlainPdb | None:
    """Return the first model of a file in standard form; None for other files, and if all of several models are requested."""
    buffer = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(buffer == ord("\n"))
    alpha, names = np.empty(len(ends) + 1, np.int64), np.empty(kernels.cpu.pdb_text.MAXIMUM_NAMES, np.int64)
    result = np.zeros(kernels.cpu.pdb_text.N_PDB_RESULTS, np.int64)
    if not kernels.cpu.pdb_text.scan_pdb(buffer, ends, alpha, names, result):
        return None
    n_alpha, n_names, n_models, n_others, second, after = result.tolist()
    keys = np.sort(alpha[:n_alpha])
    is_repeated = bool((keys[1:] == keys[:-1]).any())
    if is_repeated or any(begins_early(name.to_bytes(4).decode("latin-1")) for name in names[:n_names].tolist()):
        return None
    if n_models < 2:
        return PlainPdb(text, {}, ())
    return None if all_models else PlainPdb(text[:second] + text[after:], {}, (models_note(n_models, n_others),))


class _Rewriting:
    """Lines of a PDB file, and the changes to apply to them."""

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
        """Return the first `width` columns of the given lines, (n, width), padded with blanks."""
        result: NDArray[np.uint8] = np.lib.stride_tricks.sliding_window_view(self._padded, width)[self._starts[lines]]
        lengths = self._stops[lines] - self._starts[lines]
        short = np.flatnonzero(lengths < width)
        if len(short):
            result[short] = np.where(np.arange(width) >= lengths[short, None], ord(" "), result[short])
        if self._has_returns:
            result[result == ord("\r")] = ord(" ")
        return result

    def result(self) -> PlainPdb:
        part = self._parts()
        lines = np.flatnonzero(self._is_atom & (part >= 0))
        if not len(lines):
            return PlainPdb(self._text, {}, ())
        lines, cells = self._readable(lines)
        if len(lines):
            atoms = PdbAtoms(lines, cells, part[lines])
            self._long_names(atoms)
            self._split_chains(atoms, self._read_numbers(atoms))
            self._changed |= atoms.changed(self._record)
            self._end_chains(atoms)
        return PlainPdb(self._written(), self._names, tuple(self._notes))

    def _parts(self) -> NDArray[np.int64]:
        """Return the index of the section of the file to which each line belongs; -1 for lines of models that are not read.

        A section starts after each END and at each MODEL. Unless all models are requested, two types of sections are not read: further
        models between two END records, and trajectory frames, which have the same atoms as the first section.
        """
        section = np.cumsum(self._is_end) - self._is_end
        group = np.cumsum(self._is_model)
        atoms = np.flatnonzero(self._is_atom)
        if not len(atoms) or (section[atoms[0]] == section[atoms[-1]] and group[atoms[0]] == group[atoms[-1]]):
            return np.zeros(len(section), np.int64)
        keys = section[atoms] * (int(group[-1]) + 1) + group[atoms]
        result, first, part, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        sections = section[atoms[first]]
        is_read = is_group_start(sections)
        content = self._columns(atoms, 27)[:, 12:]
        stops = first + sizes
        for k in np.flatnonzero(is_read)[1:].tolist():
            is_frame = sizes[k] == sizes[0] and bool((content[first[k] : stops[k]] == content[: sizes[0]]).all())
            is_read[k] = not is_frame
        if not is_read.all() and not self._all_models:
            n_models = int((~is_read).sum()) + 1
            self._notes.append(models_note(n_models, int(sizes[~is_read].sum())))
        of_line = np.zeros(len(section), np.int64)
        of_line[atoms] = np.where(is_read | self._all_models, np.arange(len(result)), -1)[part.reshape(-1)]
        self._is_forced = ~is_read
        last = np.maximum.accumulate(np.where(self._is_atom, np.arange(len(section)), -1))
        of_line = np.where(last >= 0, of_line[np.maximum(last, 0)], 0)
        self._left_out |= (of_line < 0) & (self._is_atom | self._is_ter)
        self._left_out |= self._is_model
        self._left_out |= self._is_end & (np.arange(len(section)) < atoms[-1])
        return of_line

    _is_forced: NDArray[np.bool_] = np.zeros(1, np.bool_)
    """True for each section that is a separate model: its chains differ from those of earlier sections, (p,)."""

    def _readable(self, lines: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the atom lines with readable coordinates, and their characters; columns shifted by long serial numbers are moved back."""
        cells = self._columns(lines, ATOM_COLUMNS)
        positions = cells[:, 30:]
        is_plain = (positions[:, [4, 12, 20]] == ord(".")).all(axis=1)
        is_digit = (positions >= ord("0")) & (positions <= ord("9"))
        is_known = is_digit | (positions == ord(" ")) | (positions == ord("-")) | (positions == ord("."))
        is_plain &= is_known.all(axis=1) & is_digit[:, [3, 11, 19]].all(axis=1) & is_digit[:, [5, 13, 21]].all(axis=1)
        is_plain &= (positions == ord(".")).sum(axis=1) == 3
        retained = np.ones(len(lines), np.bool_)
        is_plain &= self._stops[lines] - self._starts[lines] >= ATOM_COLUMNS
        n_shifted = 0
        for k in np.flatnonzero(~is_plain).tolist():
            line = int(lines[k])
            record = self._text[self._starts[line] : self._stops[line]]
            shift = next((shift for shift in range(_LONGEST_SHIFT + 1) if _has_place(record, shift)), None)
            retained[k] = shift is not None
            if shift is None:
                continue
            if shift:
                n_shifted += 1
                record = b"%-6s%b" % (record[:6].rstrip(digits.encode()), record[6 + shift :])
            self._changed[line] = record = record.rstrip().ljust(ATOM_COLUMNS)
            cells[k] = np.frombuffer(record[:ATOM_COLUMNS], np.uint8)
        if n_shifted:
            self._notes.append(f"{counted(n_shifted, 'record')} of atoms with serial numbers that are too long, read with shifted columns")
        self._blank_charges(lines[retained])
        bad = lines[~retained]
        if len(bad):
            self._left_out[bad] = True
            self._notes.append(
                f"{counted(len(bad), 'atom')} without readable coordinates left out, the first in line {bad[0] + 1:,}. "
                "Write the file again, or correct these lines"
            )
        return lines[retained], cells[retained]

    def _blank_charges(self, lines: NDArray[np.int64]) -> None:
        """Replace invalid charges by blanks: charges are not used, but gemmi rejects invalid charges."""
        charge = self._columns(lines, 80)[:, 78:]
        is_digit, is_sign = (charge >= ord("0")) & (charge <= ord("9")), (charge == ord("+")) | (charge == ord("-"))
        is_right = (charge == ord(" ")).all(axis=1) | (is_digit.any(axis=1) & is_sign.any(axis=1))
        for line in lines[~is_right].tolist():
            record = self._record(line)
            self._changed[line] = record[:78] + b"  " + record[80:]

    def _record(self, line: int) -> bytes:
        return self._changed.get(line, self._text[self._starts[line] : self._stops[line]])

    def _long_names(self, atoms: PdbAtoms) -> None:
        """Replace residue names of four characters, which extend into the column of the chain name, by names of standard residues."""
        n_before = Counter[str]()
        for rows, name in atoms.long_names():
            parent = dynamics_parent(name) or name[:3]
            atoms.rename(rows, parent)
            n_before[name] += len(np.unique(atoms.run[rows]))
        if n_before:
            n = sum(n_before.values())
            shown = ", ".join(sorted(n_before)[:4])
            self._notes.append(f"{counted(n, 'residue')} with names of four characters ({shown}), read as the standard residues")

    def _read_numbers(self, atoms: PdbAtoms) -> NDArray[np.int64]:
        """Return the residue number of each atom, shape (n,)."""
        numbers = atoms.plain_numbers()
        is_odd = numbers == NOT_READABLE
        is_odd[1:] |= (numbers[:-1] == LAST_DECIMAL) & (numbers[1:] == int(FIRST_HEXADECIMAL))
        for chain in np.unique(atoms.chain[is_odd]).tolist():
            rows = np.flatnonzero(atoms.chain == chain)
            shown = atoms.chain_text(chain) or "without a name"
            runs = atoms.numbered_runs(rows)
            result, is_counted, is_hexadecimal = read_residue_numbers([atoms.number_text(row) for row in runs.tolist()])
            numbers[rows] = np.array(result, np.int64)[np.searchsorted(runs, rows, side="right") - 1]
            atoms.renumber(rows, numbers[rows])
            for some, what in (
                (is_counted, "have no readable number: numbering continues from the previous residue"),
                (is_hexadecimal, "have numbers that were read as hexadecimal"),
            ):
                if some:
                    line = int(atoms.lines[runs[min(some)]]) + 1
                    self._notes.append(f"{counted(len(some), 'residue')} of chain {shown} (from line {line:,}) {what}")
        return numbers

    def _split_chains(self, atoms: PdbAtoms, numbers: NDArray[np.int64]) -> None:
        """Continue residue numbers that restart after 9999; of molecules with the same chain name and numbers, rename all but the first."""
        used = {atoms.chain_text(chain) for chain in np.unique(atoms.chain).tolist()}
        codes = free_codes(used)
        breaks = np.cumsum(self._is_ter | self._is_end)[atoms.lines] + (atoms.part << 32)
        for chain in atoms.repeated_chains(numbers, self._is_forced):
            rows = np.flatnonzero(atoms.chain == chain)
            shown = atoms.chain_text(chain)
            if atoms.unwrap(rows, numbers):
                atoms.renumber(rows, numbers[rows])
                self._notes.append(
                    f"residue numbers of chain {shown or 'without a name'} restart after {LAST_DECIMAL}: numbering continues from there"
                )
            starts = atoms.copies(rows, numbers, breaks, self._is_forced)
            made = []
            for k, start in enumerate(starts):
                name, code = copy_name(shown, used), next(codes, "")
                if not code:
                    self._notes.append(
                        f"{len(starts) - k:,} more molecules of chain {shown} are left out: a PDB file has too few chain names"
                    )
                    self._left_out[atoms.lines[rows[rows >= start]]] = True
                    break
                stop = starts[k + 1] if k + 1 < len(starts) else len(atoms.lines)
                atoms.rechain(rows[(rows >= start) & (rows < stop)], code)
                self._names[code] = name
                made.append((name, int(atoms.lines[start]) + 1))
            if made:
                self._notes.append(copies_note(shown, made))

    def _end_chains(self, atoms: PdbAtoms) -> None:
        """Remove TER records within chains, since gemmi treats residues after TER as ligands."""
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
        return b"\n".join(line for line, is_left_out in zip(lines, self._left_out.tolist(), strict=True) if not is_left_out)


def _has_place(record: bytes, shift: int) -> bool:
    """Return True if three numbers are in the columns that are `shift` to the right of the coordinate columns."""
    if len(record.rstrip()) < 31 + shift + 16:
        return False
    for first in (30, 38, 46):
        text = record[first + shift : first + shift + 8].strip()
        if not re.fullmatch(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
            return False
    return not shift or record[10 + shift : 12 + shift].strip(b"0123456789") in (b" ", b"  ", b"")
