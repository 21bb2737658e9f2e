"""Clustering of spectra, and explanation of unidentified spectra.

The entry is imported first, because it registers the workload types.
"""

import lazy_loader

from proteoscope.engine.clustering.entry import CLUSTERING as CLUSTERING

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
