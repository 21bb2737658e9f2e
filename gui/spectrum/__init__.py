"""Views of annotated and mirrored spectra: peaks, ions, errors, peptide, and figures for publications."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
