"""Identification of peptides and proteins. Its entry comes first, which makes its kinds of work known."""

import lazy_loader

from proteoscope.engine.identification.entry import IDENTIFICATION as IDENTIFICATION

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
