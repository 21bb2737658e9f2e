"""Percent-encoding, as in URLs and GFF3, of characters in names that an output format does not allow.

Readers escape the characters that cannot be represented in tables, lines of text or terminals, so that a name is the same wherever it is
shown or written. Writers of more restricted formats escape further characters and warn the user.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa

__all__ = [
    "ESCAPES",
    "NameCharacters",
    "escape_column",
    "escape_names",
    "escape_unprintable",
    "escape_unprintable_texts",
    "warn_escaped_names",
]

ESCAPES = "written as percent signs with hexadecimal digits"
"""Phrase for messages that describes escaped characters."""
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
"""Pattern of control characters, line separators, surrogates (halves of characters), and other characters that XML does not allow."""
_UNPRINTABLE_OF_ARROW = r"[\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}\x{fffe}\x{ffff}]"
"""Pattern `_UNPRINTABLE` in the syntax of Arrow, whose strings cannot contain surrogates."""
_IS_SUSPECT = np.zeros(256, np.bool_)
"""True for each byte with which an unprintable character can begin in UTF-8, shape (256,)."""
_IS_SUSPECT[: ord(" ")] = True
_IS_SUSPECT[[0x7F, 0xC2, 0xE2, 0xEF]] = True
_IS_CONTROL = np.arange(256) < ord(" ")
_PERCENT = ord("%")


def _percent_encoded(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def escape_unprintable(name: str) -> str:
    r"""Return a name in which characters that cannot be represented in tables, lines of text or terminals are escaped.

    >>> escape_unprintable("a\x1b[31m\u2028é"), escape_unprintable("%1B")
    ('a%1B[31m%E2%80%A8é', '%1B')
    """
    return _UNPRINTABLE.sub(lambda match: _percent_encoded(match.group()), name)


def escape_names(names: Sequence[str]) -> tuple[Sequence[str], int]:
    r"""Apply `escape_unprintable` to names; return the names (the same object if all are unchanged) and the number of changed names.

    >>> escape_names(["a", "b\tc"])
    (['a', 'b%09c'], 1)
    """
    joined = "".join(names)
    if joined.isprintable() or _UNPRINTABLE.search(joined) is None:
        return names, 0
    escaped = list(map(escape_unprintable, names))
    return escaped, sum(map(str.__ne__, names, escaped))


def escape_column(names: pa.StringArray) -> tuple[pa.StringArray, int]:
    """Apply `escape_unprintable` to a column without nulls; return the column and the number of changed names."""
    if not pa.compute.any(pa.compute.match_substring_regex(names, _UNPRINTABLE_OF_ARROW)).as_py():
        return names, 0
    escaped, n = escape_names(names.to_pylist())
    return pa.array(escaped, pa.string()), n


def escape_unprintable_texts(names: Texts) -> tuple[Texts, int]:
    """Apply `escape_unprintable` to texts; return the texts and the number of changed texts."""
    if not _IS_SUSPECT[names.used].any():
        return names, 0
    strings = names.strings()
    escaped, n = escape_names(strings)
    return (Texts.from_strings(escaped) if n else names), n


def warn_escaped_names(progress: Progress, path: str | Path, n: int) -> None:
    """Report a warning that `n` names in a file were escaped; do nothing if `n` is 0."""
    if n:
        names = "1 name holds" if n == 1 else f"{n:,} names hold"
        progress.message(f"{path}: {names} characters that cannot be printed; they are {ESCAPES}, such as %1B", "warning")


class NameCharacters:
    """Characters that a format allows in names, with methods that escape all others.

    Different names remain different: a percent sign in a name is escaped if it could be read as an escape.

    Parameters
    ----------
    allowed : bytes
        Bytes that are allowed in names.
    not_first : bytes
        Allowed bytes that may not be the first of a name.
    """

    def __init__(self, allowed: bytes, not_first: bytes = b"") -> None:
        self.is_allowed = np.zeros(256, np.bool_)
        self.is_allowed[list(allowed)] = True
        self._not_first = not_first

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        # Readers have escaped control characters; these escapes remain.
        escaped = {*np.flatnonzero(~self.is_allowed & ~_IS_CONTROL).tolist(), *self._not_first, _PERCENT}
        codes = b"|".join(b"%02X" % byte for byte in sorted(escaped))
        refused = b"".join(b"\\x%02x" % byte for byte in np.flatnonzero(~self.is_allowed).tolist())
        first = b"".join(b"\\x%02x" % byte for byte in self._not_first or b"\0")
        return re.compile(b"%(?=" + codes + b")|[" + refused + b"]|\\A[" + first + b"]")

    def escape(self, name: str) -> str:
        """Return a name in which characters that the format does not allow are escaped.

        >>> NameCharacters(b"ab%0123456789", not_first=b"b").escape("béb%61%40")
        '%62%C3%A9b%61%2540'
        """
        return self._pattern.sub(lambda match: b"".join(b"%%%02X" % byte for byte in match.group()), name.encode()).decode()

    def escape_texts(self, names: Texts) -> tuple[Texts, NDArray[np.bool_]]:
        """Return names in which characters that the format does not allow are escaped, and True for each changed name, shape (n,).

        >>> NameCharacters(b"ab").escape_texts(Texts.from_strings(["ab", "", "a b"]))[0].strings()
        ['ab', '', 'a%20b']
        """
        symbols, offsets = names.used, names.offsets - names.offsets[0]
        is_odd = ~self.is_allowed[symbols] | (symbols == _PERCENT)
        lengths = np.diff(offsets)
        begins = offsets[:-1][lengths > 0]
        is_odd[begins] |= np.isin(symbols[begins], np.frombuffer(self._not_first, np.uint8))
        rows = np.unique(np.searchsorted(offsets, np.flatnonzero(is_odd), side="right") - 1)
        is_changed = np.zeros(len(names), np.bool_)
        if not len(rows):
            return names, is_changed
        before = [symbols[offsets[row] : offsets[row + 1]].tobytes().decode() for row in rows.tolist()]
        after = list(map(self.escape, before))
        is_changed[rows] = list(map(str.__ne__, before, after))
        if not is_changed.any():
            return names, is_changed
        return _replaced(names, rows, after), is_changed


def _replaced(names: Texts, rows: NDArray[np.int64], texts: Sequence[str]) -> Texts:
    """Return `names` with the names at indices `rows` replaced by `texts`."""
    other = Texts.from_strings(texts)
    both = Texts(
        np.concatenate([names.used, other.characters]), np.append(names.offsets - names.offsets[0], len(names.used) + other.offsets[1:])
    )
    order = np.arange(len(names))
    order[rows] = len(names) + np.arange(len(rows))
    return both.take(order)
