"""Workload types shared by several spectrum searches.

This module has few imports, so that the entries of searches load quickly.
"""

from proteoscope.engine import matches
from proteoscope.engine.execution.kinds import RegisteredWorkload

__all__ = ["FRAGMENT_INDEX", "SPECTRA"]

SPECTRA: RegisteredWorkload = ("spectra", lambda: matches.spectrum_scoring.SpectraAgainstPeptides)
FRAGMENT_INDEX: RegisteredWorkload = ("fragment-index", lambda: matches.fragment_scoring.SpectraAgainstFragments)
