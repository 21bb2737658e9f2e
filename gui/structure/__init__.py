"""View of superposed structures in 3D: panel, scene, camera and renderers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
