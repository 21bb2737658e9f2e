"""Search for modified peptides. Its entry comes first, which makes its kinds of work known."""

import lazy_loader

from proteoscope.engine.modified_search.entry import MODIFIED_SEARCH as MODIFIED_SEARCH

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
