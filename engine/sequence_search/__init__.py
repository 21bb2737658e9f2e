"""Search of sequences. Its entry comes first, which makes its kinds of work known."""

import lazy_loader

from proteoscope.engine.sequence_search.entry import SEQUENCE_SEARCH as SEQUENCE_SEARCH

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
