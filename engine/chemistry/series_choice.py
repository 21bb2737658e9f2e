"""Parameter value by which ion series depend on the activation of each spectrum; this module does not import NumPy."""

from __future__ import annotations

__all__ = ["BY_ACTIVATION"]

BY_ACTIVATION = "activation"
