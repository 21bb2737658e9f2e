"""A format of spectra only for tests: a reader and a line of the registry are all that the program needs."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.formats.peak_lists import MgfParser
from proteoscope.engine.formats.registry import FileFormat
from proteoscope.engine.formats.sources import Block
from proteoscope.engine.formats.spectrum_blocks import ParsedBlock

HEAD = b"Toy spectra, version 1\n"
SPECTRUM = b"BEGIN IONS\nTITLE=%d\nPEPMASS=500.5\nCHARGE=2+\n100.5 %d\n200.25 7\nEND IONS\n"


class ToyParser(MgfParser):
    """Read MGF after a first line of the toy format."""

    def parse(self, block: Block, centroid: bool | str) -> ParsedBlock:
        text = block.text.removeprefix(HEAD)
        return super().parse(Block(text, block.start, block.is_first, block.is_last, block.consumed), centroid)


TOY = FileFormat(
    "Toy",
    "spectra",
    (".toy", ".toyspectra"),
    lambda: ToyParser,
    is_like=lambda beginning: beginning.text.startswith(HEAD),
    term=("MS:1000001", "toy format"),
    spectra_called_by="scan",
)


def write_toy(path: Path, n_spectra: int = 5) -> Path:
    """Write a file of this format; spectrum i has the intensities i + 1 and 7."""
    path.write_bytes(HEAD + b"".join(SPECTRUM % (i, i + 1) for i in range(n_spectra)))
    return path
