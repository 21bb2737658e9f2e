"""Print the manual page for ``man proteoscope``, generated from the help texts of the commands.

python installer/man_page.py > proteoscope.1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from proteoscope.engine.command_line.main import command_parsers
from proteoscope.engine.version import VERSION

__all__ = ["man_page"]


def man_page() -> Iterator[str]:
    """Yield the lines of the page, in roff."""
    yield f'.TH PROTEOSCOPE 1 "" "Proteoscope {VERSION}" "User Commands"'
    yield ".SH NAME\nproteoscope \\- desktop program for protein evidence"
    yield ".SH SYNOPSIS\n.B proteoscope\n[\\fIPROJECT\\fR | \\fBopen\\fR \\fIFILE\\fR... | \\fICOMMAND\\fR ...]"
    yield ".SH DESCRIPTION\nWithout arguments the window opens; with a project's folder, on that; with \\fBopen\\fR, on files."
    yield ".SH COMMANDS"
    for name, parser in command_parsers().items():
        yield f".TP\n.B {_escaped(name)}\n{_escaped(_purpose(parser))}"
    yield ".PP\nproteoscope \\fICOMMAND\\fR \\-\\-help documents a command, proteoscope parameters \\fISEARCH\\fR lists its parameters."
    yield ".SH ENVIRONMENT\n.TP\n.B PROTEOSCOPE_CACHE\nthe folder of indexes and compiled kernels, instead of the user's cache"
    yield ".TP\n.B PROTEOSCOPE_LIBRARIES\nfolders of Python packages that a bundle lacks, CuPy for example"
    yield ".SH EXIT STATUS\n0 done; 2 wrong input or parameters, with one message; 130 interrupted."


def _purpose(parser: argparse.ArgumentParser) -> str:
    return " ".join((parser.description or parser.format_usage().partition(":")[2]).split())


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


if __name__ == "__main__":
    print("\n".join(man_page()))
