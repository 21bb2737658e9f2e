"""CPU kernels, compiled by Numba on first use on a machine and cached."""

import lazy_loader

from proteoscope.kernels.cpu.caching import guard_cache, settle_cache

settle_cache()
guard_cache()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
