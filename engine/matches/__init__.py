"""Matches of spectra and peptides: how they are scored, judged, gathered into tables and written."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
