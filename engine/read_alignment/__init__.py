"""Alignment of reads.

The entry is imported first, because it registers the workload types.
"""

import lazy_loader

from proteoscope.engine.read_alignment.entry import READ_ALIGNMENT as READ_ALIGNMENT

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
