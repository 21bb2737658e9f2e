"""Groups of spectra, and explanations of the unidentified. Its entry comes first, which makes its kinds of work known."""

import lazy_loader

from proteoscope.engine.clustering.entry import CLUSTERING as CLUSTERING

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
