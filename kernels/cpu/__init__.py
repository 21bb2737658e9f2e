"""CPU kernels, compiled by Numba on first use on a machine and cached."""

import lazy_loader

from proteoscope.kernels.cpu.caching import settle_cache
from proteoscope.kernels.cpu.casting_rules import postpone_casting_rules

settle_cache()
postpone_casting_rules()

from proteoscope.kernels.cpu.guarded_cache import guard_cache  # noqa: E402 - Numba reads its environment when it is imported

guard_cache()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
