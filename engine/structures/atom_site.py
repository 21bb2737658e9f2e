"""Completion and correction of the category _atom_site of mmCIF and BinaryCIF before gemmi reads it.

In mmCIF text, tables of atoms that are truncated are repaired, and rows of wrong lengths are removed and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from proteoscope.engine.results.counts import counted
from proteoscope.engine.structures.chain_copies import copies_note, copy_name, molecule_starts
from proteoscope.engine.structures.residue_names import residue_kind

if TYPE_CHECKING:
    import gemmi

__all__ = ["clear_unreadable_numbers", "complete_atom_site", "split_chains", "without_broken_rows"]

_ATOM_SITE = re.compile(rb"(?im)^[ \t]*loop_[ \t]*(?:#[^\n]*)?\r?\n((?:[ \t]*_atom_site\.\S+[^\n]*\n)+)")
_TAG = re.compile(rb"(?im)^[ \t]*_atom_site\.(\S+)")
_VALUE = re.compile(rb"""'(?:[^'\n]|'(?=\S))*'(?=\s|$)|"(?:[^"\n]|"(?=\S))*"(?=\s|$)|[^\s'"#;]\S*|(?<=\s);\S*""")
_ENDS_TABLE = re.compile(rb"(?i)[ \t]*(?:_|loop_|data_|save_|#)")


def without_broken_rows(text: bytes) -> tuple[bytes, str] | None:
    """Return a text without those rows of the table of atoms that have too few or too many values.

    Parameters
    ----------
    text : bytes
        ASCII text of a file that gemmi cannot read.

    Returns
    -------
    (bytes, str) or None
        Text without these rows, and a message about them. None if there are no such rows, or if most rows would be removed, as when rows
        span several lines.
    """
    header = _ATOM_SITE.search(text)
    if header is None:
        return None
    tags = [tag.decode("latin-1") for tag in _TAG.findall(header[1])]
    bad: list[tuple[int, int, int]] = []
    n_complete, end = 0, header.end()
    for start, end in _rows(text, header.end()):
        n = _n_values(text[start:end])
        n_complete += n == len(tags)
        if n != len(tags):
            bad.append((start, end, n))
    if not bad or len(bad) > n_complete:
        return None
    parts, before = [], 0
    for start, stop, _ in bad:
        parts.append(text[before:start])
        before = stop
    is_cut_off = bad[-1][1] == end and not text[end:].strip()
    return b"".join([*parts, text[before:]]), _note(text, tags, bad, is_cut_off)


def _rows(text: bytes, position: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line of a table that is not blank; `position` is the start of the first row."""
    while position < len(text) and not _ENDS_TABLE.match(text, position):
        stop = text.find(b"\n", position) + 1 or len(text)
        if text[position:stop].strip():
            yield position, stop
        position = stop


def _n_values(line: bytes) -> int:
    """Return the number of values of a line; -1 if they cannot be separated."""
    return -1 if _VALUE.sub(b"", line).strip() else len(_VALUE.findall(line))


def _note(text: bytes, tags: list[str], bad: list[tuple[int, int, int]], is_cut_off: bool) -> str:
    """Return the message about removed rows."""
    start, _, n = bad[0]
    missing = f", {tags[n]} and the columns after it are missing" if 0 <= n < len(tags) else ""
    result = f"{n} of {len(tags)} values{missing}" if n >= 0 else "values that cannot be separated"
    line = text.count(b"\n", 0, start) + 1
    sentence = f"{counted(len(bad), 'row')} of the table of atoms left out, the first in line {line:,}, which has {result}"
    if is_cut_off:
        return f"{sentence}. The file ends there: copy or download it again"
    return f"{sentence}. Write the file again, or correct these lines"


_PREFIX = "_atom_site."
_COUNTERPARTS = (
    ("label_asym_id", "auth_asym_id"),
    ("auth_asym_id", "label_asym_id"),
    ("label_atom_id", "auth_atom_id"),
    ("label_comp_id", "auth_comp_id"),
    ("auth_comp_id", "label_comp_id"),
    ("auth_seq_id", "label_seq_id"),
)
_OPTIONAL = "auth_comp_id"
"""Column that may be missing, since gemmi then uses its counterpart."""
_NEEDED = ("Cartn_x", "Cartn_y", "Cartn_z", "label_atom_id", "label_comp_id", "auth_seq_id")
_WHOLE_NUMBERS = ("id", "label_seq_id", "auth_seq_id", "pdbx_formal_charge", "pdbx_PDB_model_num")
_WHOLE = re.compile(r"[+-]?\d{1,9}")
_NULLS = frozenset("?.")
_METALS = frozenset(
    {
        "LI",
        "NA",
        "MG",
        "AL",
        "CL",
        "CA",
        "MN",
        "FE",
        "CO",
        "NI",
        "CU",
        "ZN",
        "BR",
        "SE",
        "RB",
        "SR",
        "MO",
        "CD",
        "CS",
        "BA",
        "PT",
        "AU",
        "HG",
        "PB",
    }
)
"""Elements with symbols of two characters, whose ions have the same atom name and residue name."""


def complete_atom_site(block: gemmi.cif.Block) -> list[str]:
    """Add missing columns whose values can be derived from other columns.

    Returns the names of columns that are needed to read the atoms, but are missing and cannot be derived.
    """
    table = block.find_mmcif_category(_PREFIX)
    if table.loop is None:
        return []
    columns = _Columns(block, table.loop)
    for name, other in _COUNTERPARTS:
        if name == _OPTIONAL and name not in columns.names:
            continue
        if not columns.has(name) and columns.has(other):
            columns.put(name, columns.values(other))
    missing = [name for name in _NEEDED if not columns.has(name)]
    if missing:
        return missing
    n = table.loop.length()
    if not columns.has("id"):
        columns.put("id", list(map(str, range(1, n + 1))))
    for name in ("label_alt_id", "label_asym_id", "auth_asym_id"):
        if name not in columns.names:
            columns.put(name, ["."] * n)
    if not columns.has("type_symbol"):
        columns.put("type_symbol", _elements(columns.values("label_atom_id"), columns.values("label_comp_id")))
    return []


def clear_unreadable_numbers(block: gemmi.cif.Block) -> list[str]:
    """Replace values by ``?`` (unknown) that are not integers, in columns in which gemmi requires integers; return messages about them."""
    notes = []
    for name in _WHOLE_NUMBERS:
        column = block.find_values(_PREFIX + name)
        bad = [i for i, value in enumerate(column) if value not in _NULLS and not _WHOLE.fullmatch(value)]
        if bad:
            notes.append(
                f"_atom_site.{name} contains {counted(len(bad), 'value')} other than whole numbers, treated as unknown, the first "
                f"{column[bad[0]]!r:.20} in row {bad[0] + 1:,}"
            )
        for i in bad:
            column[i] = "?"
    return notes


class _Columns:
    """Columns of the category ``_atom_site`` by name."""

    def __init__(self, block: gemmi.cif.Block, loop: gemmi.cif.Loop) -> None:
        self._block, self._loop = block, loop
        self.names = [tag[len(_PREFIX) :] for tag in loop.tags]

    def has(self, name: str) -> bool:
        """Return True if a column exists and has at least one known value."""
        if name not in self.names:
            return False
        column = self.names.index(name)
        return any(self._loop[row, column] not in _NULLS for row in range(self._loop.length()))

    def values(self, name: str) -> list[str]:
        return list(self._block.find_values(_PREFIX + name))

    def put(self, name: str, values: list[str]) -> None:
        if name not in self.names:
            self._loop.add_columns([_PREFIX + name], "?")
            self.names.append(name)
        column = self._block.find_values(_PREFIX + name)
        for i, value in enumerate(values):
            column[i] = value


def _elements(atoms: list[str], residues: list[str]) -> list[str]:
    """Return the element of each atom: the whole atom name for selenium and for ions named like their residue, else its first character."""
    result: dict[tuple[str, str], str] = {}
    for key in set(zip(atoms, residues, strict=True)):
        atom = "".join(symbol for symbol in key[0] if symbol.isalpha()).upper()
        is_ion = atom in _METALS and (atom == "".join(symbol for symbol in key[1] if symbol.isalpha()).upper())
        is_selenium = atom == "SE" and key[1] in ("MSE", "SEC")
        result[key] = atom if is_ion or is_selenium else atom[:1] or "X"
    return [result[key] for key in zip(atoms, residues, strict=True)]


def split_chains(block: gemmi.cif.Block) -> list[str]:
    """Rename chains where several molecules have the same chain name and residue numbers; return messages about the new names.

    The first molecule retains its name.
    """
    import gemmi  # slow to import: only structures need it

    table = block.find_mmcif_category(_PREFIX)
    if table.loop is None:
        return []
    columns = _Columns(block, table.loop)
    names = columns.values("label_atom_id")
    alpha = [i for i, name in enumerate(names) if name == "CA"]
    used_columns = (
        "auth_asym_id",
        "auth_seq_id",
        "pdbx_PDB_ins_code",
        "label_asym_id",
        "label_alt_id",
        "pdbx_PDB_model_num",
        "label_comp_id",
    )
    alpha_values = {name: [values[i] for i in alpha] for name in used_columns if (values := columns.values(name))}
    n = len(alpha)
    ins, model = alpha_values.get("pdbx_PDB_ins_code", ["?"] * n), alpha_values.get("pdbx_PDB_model_num", ["1"] * n)
    of_chain: dict[tuple[str, str], list[int]] = {}
    for k in range(n):
        if residue_kind(alpha_values["label_comp_id"][k])[1]:
            of_chain.setdefault((model[k], alpha_values["auth_asym_id"][k]), []).append(k)
    used = {gemmi.cif.as_string(name) for name in alpha_values.get("auth_asym_id", [])}
    renamed: dict[tuple[str, str], list[tuple[int, str]]] = {}
    notes = []
    for key, rows in of_chain.items():
        positions = [(_number(alpha_values["auth_seq_id"][k]), "" if ins[k] in _NULLS else ins[k]) for k in rows]
        starts = molecule_starts(
            positions, [alpha_values["label_alt_id"][k] for k in rows], [alpha_values["label_asym_id"][k] for k in rows], [0] * len(rows)
        )
        if starts:
            shown = gemmi.cif.as_string(key[1])
            made = [(copy_name(shown, used), 0) for _ in starts]
            renamed[key] = [(alpha[rows[k]], name) for k, (name, _) in zip(starts, made, strict=True)]
            notes.append(copies_note(shown, made))
    if renamed:
        _rename(columns, renamed)
    return notes


def _rename(columns: _Columns, renamed: dict[tuple[str, str], list[tuple[int, str]]]) -> None:
    """Give each molecule of a chain its new chain name.

    `renamed` contains, by (model, chain), the row of the first Cα and the new name of each molecule after the first. Such a molecule begins
    with the first atom of the residue of this Cα, and ends before the next molecule of the same model and chain.
    """
    import gemmi  # slow to import: only structures need it

    chains, labels, numbers = (columns.values(name) for name in ("auth_asym_id", "label_asym_id", "auth_seq_id"))
    models = columns.values("pdbx_PDB_model_num") or ["1"] * len(chains)
    residue = list(zip(models, chains, labels, numbers, strict=True))
    for key, starts in renamed.items():
        firsts = []
        for row, name in starts:
            first = row
            while first and residue[first - 1] == residue[row]:
                first -= 1
            firsts.append((first, name))
        stops = [first for first, _ in firsts[1:]] + [len(chains)]
        for (first, name), stop in zip(firsts, stops, strict=True):
            for i in range(first, stop):
                if (residue[i][0], residue[i][1]) == key:
                    chains[i] = gemmi.cif.quote(name)
    columns.put("auth_asym_id", chains)


def _number(text: str) -> int:
    return int(text) if text.lstrip("-").isdecimal() and len(text) < 10 else 0
