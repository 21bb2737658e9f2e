"""Alignment of reads. Its entry comes first, which makes its kinds of work known."""

import lazy_loader

from proteoscope.engine.read_alignment.entry import READ_ALIGNMENT as READ_ALIGNMENT

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
