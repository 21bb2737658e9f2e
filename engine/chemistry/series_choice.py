"""Parameter value by which ion series depend on the activation of each spectrum; this module does not import NumPy."""

__all__ = ["BY_ACTIVATION"]

BY_ACTIVATION = "activation"
