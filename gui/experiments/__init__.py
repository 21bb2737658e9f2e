"""Experiments of many runs in the window: the run manager and the dialog that adds runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
