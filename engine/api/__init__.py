"""Functions and classes that the package `proteoscope` offers to scripts: searches, results, spectra, proteins and structures."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
