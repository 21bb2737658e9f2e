"""Listed matches of another engine's file or of a library: spectra, peptides, positions, error rates and tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
