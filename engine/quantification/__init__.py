"""Quantification of peptides and proteins in samples, and of changes between conditions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
