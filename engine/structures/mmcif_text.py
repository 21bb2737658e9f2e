"""Repair of mmCIF with a truncated table of atoms, or with rows of wrong lengths, which are removed and counted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proteoscope.engine.results.counts import counted

__all__ = ["without_broken_rows"]

_ATOM_SITE = re.compile(rb"(?im)^[ \t]*loop_[ \t]*(?:#[^\n]*)?\r?\n((?:[ \t]*_atom_site\.\S+[^\n]*\n)+)")
_TAG = re.compile(rb"(?im)^[ \t]*_atom_site\.(\S+)")
_VALUE = re.compile(rb"""'(?:[^'\n]|'(?=\S))*'(?=\s|$)|"(?:[^"\n]|"(?=\S))*"(?=\s|$)|[^\s'"#;]\S*|(?<=\s);\S*""")
_ENDS_TABLE = re.compile(rb"(?i)[ \t]*(?:_|loop_|data_|save_|#)")


def without_broken_rows(text: bytes) -> tuple[bytes, str] | None:
    """Return a text without the rows of the table of atoms that have too few or too many values.

    Parameters
    ----------
    text : bytes
        ASCII text of a file that gemmi cannot read.

    Returns
    -------
    (bytes, str) or None
        Text without these rows, and a message about the rows; None if all rows have the right number of values, or rows are not one line
        each.
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
    """Yield start and end of each line of a table from its first row on, without blank lines."""
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
    missing = f", {tags[n]} and what follows it are missing" if 0 <= n < len(tags) else ""
    result = f"{n} of {len(tags)} values{missing}" if n >= 0 else "values that cannot be separated"
    line = text.count(b"\n", 0, start) + 1
    sentence = f"{counted(len(bad), 'row')} of the table of atoms left out, the first in line {line:,}, which has {result}"
    if is_cut_off:
        return f"{sentence}. The file ends there: copy or download it again"
    return f"{sentence}. Write the file anew, or correct these lines"
