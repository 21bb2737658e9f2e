"""Kernels for the processor, compiled by Numba at their first use on a machine and kept in its cache."""

from proteoscope.kernels.cpu.caching import guard_cache, settle_cache

settle_cache()
guard_cache()
