"""Results of other search engines as runs. Its entry comes first, which makes the kind known."""

import lazy_loader

from proteoscope.engine.imported.entry import IMPORT as IMPORT

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
