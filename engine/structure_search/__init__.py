"""Search for protein structures with the same fold.

The module `entry` is imported first, because it registers the workload types.
"""

import lazy_loader

from proteoscope.engine.structure_search.entry import STRUCTURE_SEARCH as STRUCTURE_SEARCH

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
