"""Devices, workloads (computations as data), and the executor that computes workloads on devices."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
