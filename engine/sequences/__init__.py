"""Packed sequence databases (columns of residue codes); scoring, alignment and output of sequences."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
