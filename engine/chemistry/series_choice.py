"""Value of parameters by which ion series follow the activation of each spectrum; parameters are described without loading NumPy."""

from __future__ import annotations

__all__ = ["BY_ACTIVATION"]

BY_ACTIVATION = "activation"
