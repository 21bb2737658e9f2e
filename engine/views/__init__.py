"""Data of pictures and tables of results, as they are: NumPy arrays, Arrow tables and dataclasses, which a script can have too."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
