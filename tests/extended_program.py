"""A copy of the program with the additions that docs/developers/extending.md shows as code.

A block of code begins with a comment that says where it belongs:

    # new file engine/formats/peak_tables.py
    # engine/formats/registry.py, at the end of FORMATS
    # engine/formats/__init__.pyi, at the end
    # engine/sequences/hits.py, before `    return HITS.arrow(`

and the block after "Check:" is a script that runs in an empty folder with the extended program.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

__all__ = ["REPOSITORY", "Addition", "Section", "extended_program", "page_module", "read_sections"]

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "developers" / "extending.md"
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"(Check:\n\n)?```(\w+)\n(.*?)```\n", re.DOTALL)
_PLACE = re.compile(r"(?:#|//) (new file )?([\w./]+)(?:, (at the end|at the end of (\w+)|before `(.+)`))?\n+")
_COMPILED_ANEW = ("candidates", "matches", "scores")
"""Modules whose compiled functions contain the scores; Numba notices only changes of a function's own file."""


class Addition(NamedTuple):
    """Code for a file of the program.

    Attributes
    ----------
    path : str
        File in the repository.
    code : str
        Added lines.
    is_new : bool
        True for a new file.
    name : str
        Tuple, at whose end the code is added; '' for another place.
    anchor : str
        Text before which the code is added; '' with an empty `name` for the end of the file.
    """

    path: str
    code: str
    is_new: bool
    name: str
    anchor: str


class Section(NamedTuple):
    """A section of the page: its additions, and the script that checks them ('' if there is none)."""

    additions: tuple[Addition, ...]
    check: str


@cache
def read_sections() -> dict[str, Section]:
    """Return the sections of the page by their headings."""
    _, *parts = _HEADING.split(PAGE.read_text(encoding="utf-8"))
    return {heading: _section(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def _section(text: str) -> Section:
    additions, check = list[Addition](), ""
    for is_check, _, code in _BLOCK.findall(text):
        if is_check:
            check = code
        elif place := _PLACE.match(code):
            is_new, path, _, name, anchor = place.groups()
            additions.append(Addition(path, code[place.end() :], bool(is_new), name or "", anchor or ""))
    return Section(tuple(additions), check)


def page_module(path: str) -> ModuleType:
    """Return a new file of the page as a module."""
    (code,) = (addition.code for section in read_sections().values() for addition in section.additions if addition.path == path)
    module = ModuleType(Path(path).stem)
    exec(compile(code, path, "exec"), vars(module))  # the page is a part of the repository
    return module


def extended_program(folder: Path, section: Section) -> dict[str, str]:
    """Copy the program with the additions of a section to a folder; only the packages with additions are copied, the others are links.

    Returns
    -------
    dict of str to str
        Environment in which Python imports the copy.
    """
    changed = {addition.path.split("/")[0] for addition in section.additions}
    package = folder / "proteoscope"
    package.mkdir()
    for path in (REPOSITORY / "proteoscope").iterdir():
        if path.name in changed:
            (package / path.name).symlink_to(folder / path.name)
        elif path.name != "__pycache__":
            (package / path.name).symlink_to(path.resolve())
    # A checkout has its compiled kernels among the sources: those of other modules need not be compiled again.
    (folder / "pyproject.toml").symlink_to(REPOSITORY / "pyproject.toml")
    # Other tests may compile meanwhile, and rename files that they have written.
    left_out = shutil.ignore_patterns("*.tmp*", "*.sums?*", "*.lock", *(f"{name}.*.nb?" for name in _COMPILED_ANEW))
    for name in changed:
        shutil.copytree(REPOSITORY / name, folder / name, ignore=left_out)
    for addition in section.additions:
        _add(folder / addition.path, addition)
    return {
        **{name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"},
        "PYTHONPATH": os.pathsep.join([str(folder), str(REPOSITORY)]),
        "PROTEOSCOPE_CACHE": str(folder / "cache"),
        "QT_QPA_PLATFORM": "offscreen",
    }


def _add(path: Path, addition: Addition) -> None:
    if addition.is_new:
        assert not path.exists(), path
        path.parent.mkdir(exist_ok=True)
        path.write_text(addition.code, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    if addition.name:
        at = _end_of_tuple(text, addition.name)
    elif addition.anchor:
        assert text.count(addition.anchor) == 1, (path, addition.anchor)
        at = text.index(addition.anchor)
    else:
        at = len(text)
    path.write_text(text[:at] + addition.code + text[at:], encoding="utf-8")


def _end_of_tuple(text: str, name: str) -> int:
    """Return the offset of the line that closes a tuple, which is assigned to a name or given as an argument of this name."""
    values = list[ast.expr]()
    for node in ast.walk(ast.parse(text)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            values.append(node.value)  # type: ignore[attr-defined]
        elif isinstance(node, ast.keyword) and node.arg == name:
            values.append(node.value)
    (value,) = (value for value in values if isinstance(value, ast.Tuple))
    assert value.end_lineno is not None
    return sum(map(len, text.splitlines(keepends=True)[: value.end_lineno - 1]))
