"""What searches found: linked tables, how they are filtered, and the views of what is chosen in them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
