"""A format of spectra only for tests, whose parser is the example of docs/developers/extending.md."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.formats.registry import FileFormat
from tests.extended_program import page_module

_EXAMPLE = page_module("engine/formats/peak_tables.py")
HEAD = _EXAMPLE.HEADER + b"\n"
ROWS = b"%d\t500.5\t2+\t100.5\t%d\n%d\t500.5\t2+\t200.25\t7\n"

TOY = FileFormat(
    "Toy",
    "spectra",
    (".toy", ".toyspectra"),
    lambda: _EXAMPLE.PeakTableParser,
    is_like=lambda beginning: beginning.text.startswith(HEAD),
    spectra_called_by="scan",
)


def write_toy(path: Path, n_spectra: int = 5) -> Path:
    """Write a file of this format; spectrum i has the intensities i + 1 and 7."""
    path.write_bytes(HEAD + b"".join(ROWS % (i, i + 1, i) for i in range(n_spectra)))
    return path
