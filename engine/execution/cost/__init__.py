"""Prediction of a workload's time: the ATGPU model, calibrated on each device."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
