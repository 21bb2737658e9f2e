"""Readers and writers of the field's file formats."""

from __future__ import annotations

from engine.formats.fasta import read_proteins
from engine.formats.proteins import Proteins
from engine.formats.reading import read_spectra
from engine.spectra.columns import Spectra

__all__ = ["Proteins", "Spectra", "read_proteins", "read_spectra"]
