"""The kernels of an import: those that read spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proteoscope import kernels
from proteoscope.engine import formats
from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.files import scratch_folder

__all__ = ["READING"]

_SPECTRUM = "BEGIN IONS\nTITLE=one\nPEPMASS=500.25\nCHARGE=2+\n110.5 1\n175.1 2\n300.2 3\nEND IONS\n"
_PROTEIN = ">P1 one\nMKPEPTIDEK\n"


def _last() -> Callable[..., Any]:
    return kernels.cpu.text.scan_fasta


def _use() -> None:
    """Read a minimal file."""
    with scratch_folder() as folder:
        spectra, proteins = folder / "spectra.mgf", folder / "proteins.fasta"
        spectra.write_text(_SPECTRUM, encoding="ascii")
        proteins.write_text(_PROTEIN, encoding="ascii")
        formats.read_spectra([spectra], threads=1)
        formats.read_proteins([proteins])


READING = Kernels("kernels that read spectra", _last, _use)
