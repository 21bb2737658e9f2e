"""Mapping of identified peptides onto protein positions and structures."""

import lazy_loader

from proteoscope.engine.evidence.entry import EVIDENCE as EVIDENCE

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
