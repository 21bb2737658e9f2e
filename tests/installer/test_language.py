"""Tests of the check for plain English, which `installer/test.sh` runs on the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer import language
from installer.language import Rules, check, findings_of_file, main, read_rules


def words_in(name: str, text: str) -> list[tuple[int, str]]:
    """Return the line and the words of each finding in a text."""
    return sorted((finding.line, finding.words) for finding in findings_of_file(read_rules(), name, text))


def test_language_check_reads_prose_but_no_code_of_markdown() -> None:
    page = "# Page\n\nIt is told\nof so\nmany.\n\n    proteoscope told\n\n```python\ntold = 1\n```\n\n`told`, Told\n"
    assert words_in("page.md", page) == [(3, "told"), (4, "so many"), (13, "told")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""What it is."""\n', [(1, "What")]),
        ('"""Module"""\n', [(1, "Module")]),
        ('"""Module.\n\nOne\nletter.\n"""\n', [(4, "letter")]),
        ("# kept\n", [(1, "kept")]),
        ("class KeptWork:\n    pass\n", [(1, "kept")]),
        ("def sort(letters_of=1):\n    return 2\n", [(1, "letters")]),
        ("for one in ():\n    print(one)\n", [(1, "one")]),
        ("def load(found):\n    return found\n", [(1, "found")]),
        ('print(f"a {1} stranger")\n', [(1, "stranger")]),
        ('"""Return the number of peptides at least one enzyme found."""\n', []),
        ("print('there is no driver; no longer')\n", []),
    ],
)
def test_language_check_reads_names_and_texts_of_python_code(source: str, expected: list[tuple[int, str]]) -> None:
    assert words_in("module.py", source) == expected


def test_language_check_reports_test_names_over_60_characters() -> None:
    name = "test_" + "a" * 55
    source = f"def {name}():\n    pass\n\n\nclass TestA:\n    def {name}b(self):\n        pass\n"
    (finding,) = findings_of_file(read_rules(), "tests/test_module.py", source)
    assert str(finding) == f"tests/test_module.py:6: '{name}b': use at most 60 characters instead of 61"
    assert words_in("engine/module.py", source) == []


def test_language_check_reports_unneeded_exceptions(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("A told tale.\n")
    words, entry = {"told": "report", "room": "space"}, {"path": "page.md", "words": ["told", "room"], "reason": "a quote"}
    rules = Rules({"clean": ["page.md"], "words": words, "names": {}, "openings": {}, "exceptions": [entry]})
    assert check(rules, tmp_path, rules.clean) == ["page.md: does not contain 'room'. Remove the exception from language.toml"]
    rules.exceptions.clear()
    assert check(rules, tmp_path, rules.clean) == ["page.md:1: 'told': use report"]


def test_language_check_rejects_a_missing_folder(tmp_path: Path) -> None:
    rules = Rules({"clean": ["absent"], "words": {}, "names": {}, "openings": {}})
    with pytest.raises(SystemExit, match="absent: no such file or folder"):
        check(rules, tmp_path, rules.clean)


def test_language_check_ends_with_1_if_it_finds_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(language, "REPOSITORY", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("A report.\n")
    assert (main(["page.md"]), capsys.readouterr().out) == (0, "No words to avoid.\n")
    page.write_text("A told tale.\n")
    assert main(["page.md"]) == 1
    assert capsys.readouterr().out.startswith("page.md:1: 'told': use ")


def test_exceptions_of_language_check_have_reasons() -> None:
    assert all(entry.keys() == {"path", "words", "reason"} and entry["reason"] for entry in read_rules().exceptions)
