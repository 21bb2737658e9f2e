"""Kernels for the processor, compiled by Numba at their first use on a machine and kept in its cache."""

import lazy_loader

from proteoscope.kernels.cpu.caching import guard_cache, settle_cache

settle_cache()
guard_cache()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
