"""Data of the pictures and tables of results, as NumPy arrays, Arrow tables and dataclasses that scripts can use too."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
