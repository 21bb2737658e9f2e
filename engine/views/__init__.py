"""Data of the figures and tables of results, as NumPy arrays, Arrow tables and dataclasses, for the window and for scripts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
