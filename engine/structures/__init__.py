"""Protein structures: chains as columns of residue properties, their secondary structure, databases and superposition."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
