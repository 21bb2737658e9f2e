"""Import of results of other search engines as runs of a project.

The entry is imported first, because it registers the kind of run.
"""

import lazy_loader

from proteoscope.engine.imported.entry import IMPORT as IMPORT

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
