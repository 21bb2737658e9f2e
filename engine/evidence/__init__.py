"""Tie identified peptides to their places in proteins, and these to structures: spectrum, peptide, residue, fold."""

import lazy_loader

from proteoscope.engine.evidence.entry import EVIDENCE as EVIDENCE

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
