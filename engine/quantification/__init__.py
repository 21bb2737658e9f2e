"""Quantify: how much of each peptide and protein is in each sample, and what changes between conditions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
