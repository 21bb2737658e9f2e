"""Check documentation, docstrings, comments, names and messages for plain English.

    python installer/language.py             # the files and folders that language.toml lists as clean
    python installer/language.py gui docs    # only these paths

The rules are in `installer/language.toml`; names of tests have at most 60 characters. Code in Markdown is not checked.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
RULES = REPOSITORY / "installer" / "language.toml"
SUFFIXES = {".md", ".py", ".pyi", ".sh", ".toml", ".yaml", ".yml"}
MAXIMUM_SUMMARY = 140
"""Maximum number of columns in the first line of a docstring."""
MAXIMUM_TEST_NAME = 60
"""Maximum number of characters in the name of a test in `tests/`."""
_MARKDOWN_CODE = re.compile(r"```.*?```|^    [^\n]*$|`[^`]*`", re.MULTILINE | re.DOTALL)
_LONG_TEST_NAME = re.compile(rf"test_.{{{MAXIMUM_TEST_NAME - 4}}}")
_WORD_BREAK = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_INDENTATION = re.compile(r"[ \t]*\n[ \t]*")
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Finding(NamedTuple):
    """A word, phrase or name to avoid that was found, with its position and replacement."""

    path: str
    line: int
    words: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: '{self.words}': use {self.replacement}"


class Rules:
    """Words, names and docstring openings to avoid, and exceptions to these rules.

    Parameters
    ----------
    settings : dict
        Content of `language.toml`.
    """

    def __init__(self, settings: dict) -> None:
        self.clean: list[str] = settings["clean"]
        self.names: dict[str, str] = settings["names"]
        self.exceptions: list[dict] = settings.get("exceptions", [])
        self._words = [(re.compile(rf"\b({_spaced(words)})\b"), use) for words, use in settings["words"].items()]
        self._openings = [(re.compile(rf"({words})\b"), use) for words, use in settings["openings"].items()]
        self._any_word = _any_of(map(_spaced, settings["words"]))
        self._any_name = _any_of(map(re.escape, self.names))

    def may_find_words(self, text: str) -> bool:
        """Return False if no part of a text has a word to avoid; True does not mean that one has."""
        return bool(self._any_word.search(_plain(text)))

    def may_find_names(self, text: str) -> bool:
        """Return False if no name in a text is one to avoid; True does not mean that one is."""
        return bool(self._any_name.search(text))

    def in_text(self, path: str, line: int, text: str) -> Iterator[Finding]:
        """Find words to avoid in a text that starts at the given line of a file."""
        plain = _plain(text)
        if not self._any_word.search(plain):
            return
        for pattern, use in self._words:
            for match in pattern.finditer(plain):
                yield Finding(path, line + plain.count("\n", 0, match.start()), " ".join(match[0].split()), use)

    def in_docstring(self, path: str, line: int, text: str) -> Iterator[Finding]:
        """Find a summary line that has an opening to avoid, no full stop, or too many columns."""
        summary = text.strip().split("\n", 1)[0]
        for pattern, use in self._openings:
            if match := pattern.match(summary):
                yield Finding(path, line, match[0], use)
        if not summary.endswith(".") or len(summary) > MAXIMUM_SUMMARY:
            yield Finding(path, line, summary, f"one sentence of at most {MAXIMUM_SUMMARY} columns that ends with a full stop")


def read_rules(path: Path = RULES) -> Rules:
    """Read the rules."""
    return Rules(tomllib.loads(path.read_text(encoding="utf-8")))


def text_files(folder: Path, paths: Iterable[str]) -> Iterator[Path]:
    """List the files with text among paths below a folder, sorted within each path."""
    for path in paths:
        if not (folder / path).exists():
            raise SystemExit(f"{path}: no such file or folder. Correct `clean` in {RULES.name}")
        inside = [folder / path] if (folder / path).is_file() else sorted((folder / path).rglob("*"))
        yield from (file for file in inside if file.suffix in SUFFIXES and file.name != RULES.name)


def findings_of_file(rules: Rules, name: str, text: str) -> Iterator[Finding]:
    """Find words to avoid in a file: in the prose of Markdown, in whole scripts and settings, and in comments, texts and names of code."""
    if name.endswith(".md"):
        yield from rules.in_text(name, 1, _MARKDOWN_CODE.sub(lambda code: "\n" * code[0].count("\n"), text))
        return
    if not name.endswith((".py", ".pyi")):
        yield from rules.in_text(name, 1, text)
        return
    # Most files have none of the words, and their tokens and expressions need not be separated.
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if rules.may_find_words(text) else ():
        if token.type in (tokenize.COMMENT, tokenize.STRING, tokenize.NAME) or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield from rules.in_text(name, token.start[0], token.string)
    tree = ast.parse(text)
    for node in _statements(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node):
            docstring = node.body[0]
            yield from rules.in_docstring(name, docstring.lineno, ast.get_docstring(node) or "")
        if name.startswith("tests/") and isinstance(node, ast.FunctionDef) and _LONG_TEST_NAME.match(node.name):
            yield Finding(name, node.lineno, node.name, f"at most {MAXIMUM_TEST_NAME} characters instead of {len(node.name)}")
    for node in ast.walk(tree) if rules.may_find_names(text) else ():
        if isinstance(node, ast.arg) and node.arg in rules.names:
            yield Finding(name, node.lineno, node.arg, rules.names[node.arg])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in rules.names:
            yield Finding(name, node.lineno, node.id, rules.names[node.id])


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """List a node and the statements in it, without their expressions, which are most nodes."""
    yield node
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, field, ()):
            yield from _statements(inner)


def check(rules: Rules, folder: Path, paths: Sequence[str]) -> list[str]:
    """Check files and return a sentence for each finding and each unneeded exception."""
    messages, needed = [], set()
    for file in text_files(folder, paths):
        name = file.relative_to(folder).as_posix()
        for finding in findings_of_file(rules, name, file.read_text(encoding="utf-8")):
            allowed = [n for n, entry in enumerate(rules.exceptions) if entry["path"] == name and finding.words in entry["words"]]
            needed.update((n, finding.words) for n in allowed)
            messages += [] if allowed else [str(finding)]
    covered = tuple(f"{path}/" for path in paths)
    for n, entry in enumerate(rules.exceptions):
        if entry["path"] in paths or entry["path"].startswith(covered):
            unused = [words for words in entry["words"] if (n, words) not in needed]
            messages += [f"{entry['path']}: does not contain '{words}'. Remove the exception from {RULES.name}" for words in unused]
    return sorted(set(messages))


def _spaced(words: str) -> str:
    return words.replace(" ", r"\s")


def _plain(text: str) -> str:
    """Return the text in lower case, with the words of names separated and without indentation."""
    return _INDENTATION.sub("\n", _WORD_BREAK.sub(" ", text).lower())


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of several expressions as whole words, and nothing without them."""
    return re.compile(rf"\b(?:{'|'.join(f'(?:{expression})' for expression in words) or '(?!)'})\b")


def main(paths: Sequence[str]) -> int:
    """Check the given paths, or by default those listed as clean, and return the exit code."""
    rules = read_rules()
    messages = check(rules, REPOSITORY, paths or rules.clean)
    print("\n".join(messages) or "No words to avoid.")
    return 1 if messages else 0


if __name__ == "__main__":
    gc.disable()  # syntax trees are freed without it
    sys.exit(main(sys.argv[1:]))
