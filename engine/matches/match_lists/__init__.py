"""Matches from a list (the result file of another engine, or a library search): spectra, peptides, positions, error rates and tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
