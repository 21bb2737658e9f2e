"""Search of protein sequences in a database.

The module `entry` is imported first, because it registers the workload types.
"""

import lazy_loader

from proteoscope.engine.sequence_search.entry import SEQUENCE_SEARCH as SEQUENCE_SEARCH

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
