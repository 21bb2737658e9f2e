"""Protein structures: chains of residues as columns, their secondary structure, databases of them, and their superposition."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
