"""Search spectral libraries. Its entry comes first, which makes its kinds of work known."""

import lazy_loader

from proteoscope.engine.library_search.entry import LIBRARY_SEARCH as LIBRARY_SEARCH

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
