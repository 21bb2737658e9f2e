"""Kinds of work that several searches of spectra share. Light, so that their entries are."""

from __future__ import annotations

from proteoscope.engine import matches
from proteoscope.engine.execution.kinds import WorkKind

__all__ = ["FRAGMENT_INDEX", "SPECTRA"]

SPECTRA: WorkKind = ("spectra", lambda: matches.spectrum_scoring.SpectraAgainstPeptides)
FRAGMENT_INDEX: WorkKind = ("fragment-index", lambda: matches.fragment_scoring.SpectraAgainstFragments)
