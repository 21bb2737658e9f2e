"""Digestion of proteins, and the peptide index that all searches of spectra share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
