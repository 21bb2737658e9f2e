"""Functions and classes for scripts, which `proteoscope` offers: searches, their results, spectra, proteins and structures."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
