"""Spectral library search.

The entry is imported first, because it registers the workload types.
"""

import lazy_loader

from proteoscope.engine.library_search.entry import LIBRARY_SEARCH as LIBRARY_SEARCH

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
