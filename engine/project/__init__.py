"""Projects on disk: a folder with a small database of runs and a folder of immutable result tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
