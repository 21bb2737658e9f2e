"""Matches that come as a list, of another engine's file or of a library: spectra found, peptides named and placed, judged, as tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
