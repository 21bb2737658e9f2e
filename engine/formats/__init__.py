"""Readers and writers of the field's file formats, and their registry, for which nothing heavy is loaded."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proteoscope.engine.formats.protein_files import read_proteins as read_proteins
    from proteoscope.engine.formats.proteins import Proteins as Proteins
    from proteoscope.engine.formats.reading import read_spectra as read_spectra
    from proteoscope.engine.spectra.columns import Spectra as Spectra

_PLACES = {
    "Proteins": "proteoscope.engine.formats.proteins",
    "Spectra": "proteoscope.engine.spectra.columns",
    "read_proteins": "proteoscope.engine.formats.protein_files",
    "read_spectra": "proteoscope.engine.formats.reading",
}


def __getattr__(name: str) -> Any:
    """The most frequent readers, loaded when first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
