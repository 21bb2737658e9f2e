"""Parameter value that selects the ion series of each spectrum by its activation; this module does not import NumPy."""

__all__ = ["BY_ACTIVATION"]

BY_ACTIVATION = "activation"
