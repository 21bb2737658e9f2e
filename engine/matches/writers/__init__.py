"""Writers of the tables of matches for other programs; `proteoscope.engine.matches.exports` lists them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
