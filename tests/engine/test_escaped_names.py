"""Names are escaped so that formats can hold them, and different names stay different."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.arrays import Texts
from proteoscope.engine.escaped_names import NameCharacters, escape_column, escape_names, escape_unprintable, escape_unprintable_texts

READ_NAMES = NameCharacters(bytes(range(ord("!"), 127)).replace(b"@", b""), not_first=b"*")
# Printable characters, escapes and similar text.
PRINTABLE = st.text(st.sampled_from("%0124589ABCDEFa@*é\u00a0 ~"), max_size=12)


@given(st.lists(PRINTABLE, unique=True, max_size=8))
def test_escaped_names_differ_if_the_names_differ(names: list[str]) -> None:
    escaped = list(map(READ_NAMES.escape, names))
    assert len(set(escaped)) == len(names)
    assert all(re.fullmatch("(?![*])[!-?A-~]*", text) for text in escaped)
    texts, is_changed = READ_NAMES.escape_texts(Texts.from_strings(names))
    assert texts.strings() == escaped
    assert is_changed.tolist() == list(map(str.__ne__, names, escaped))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_escape_unprintable_changes_only_control_characters(name: str) -> None:
    escaped = escape_unprintable(name)
    assert escape_unprintable(escaped) == escaped
    if "%" not in name:
        assert unquote_to_bytes(escaped).decode() == name
    printable = [character for character in name if character.isprintable()]
    assert [character for character in re.sub("%[0-9A-F]{2}", "", escaped) if character in printable] == [
        character for character in re.sub("%[0-9A-F]{2}", "", name) if character.isprintable()
    ]


@pytest.mark.parametrize("code", [*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF])
def test_escape_unprintable_escapes_each_control_character(code: int) -> None:
    (escaped,), n = escape_names([f"a{chr(code)}b"])
    assert n == 1
    assert re.fullmatch("a(?:%[0-9A-F]{2})+b", escaped)
    if not 0xD800 <= code < 0xE000:
        assert escape_unprintable_texts(Texts.from_strings([f"a{chr(code)}b"]))[0].strings() == [escaped]


def test_escape_returns_same_texts_when_nothing_changes() -> None:
    names = Texts.from_strings(["a", "", "sp|P1|é\u00a0"])
    assert escape_unprintable_texts(names) == (names, 0)
    texts, is_changed = NameCharacters(bytes(range(256))).escape_texts(names)
    np.testing.assert_array_equal(texts.used, names.used)
    assert not is_changed.any()


def test_escape_column_equals_escape_names() -> None:
    names = ["a", "", "b\x1bc", "é\u2028", "\ufffe", "\x85", "%1B"]
    column, n = escape_column(pa.array(names))
    assert (column.to_pylist(), n) == escape_names(names)
    assert n == 4
