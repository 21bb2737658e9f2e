"""Parameter value that selects ion series by the activation of each spectrum; it can be imported without NumPy."""

from __future__ import annotations

__all__ = ["BY_ACTIVATION"]

BY_ACTIVATION = "activation"
