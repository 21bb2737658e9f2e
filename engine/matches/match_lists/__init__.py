"""Matches listed in another engine's file or found in a library: spectra, peptides, positions, error rates and tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
