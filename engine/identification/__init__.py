"""Identification of peptides and proteins.

The entry is imported first, because it registers the workload types.
"""

import lazy_loader

from proteoscope.engine.identification.entry import IDENTIFICATION as IDENTIFICATION

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
