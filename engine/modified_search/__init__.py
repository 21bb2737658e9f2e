"""Open modification search.

The entry is imported first, because it registers the workload types.
"""

import lazy_loader

from proteoscope.engine.modified_search.entry import MODIFIED_SEARCH as MODIFIED_SEARCH

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
