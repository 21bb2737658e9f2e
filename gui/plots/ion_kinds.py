"""What ions are coloured by besides the letters of their series. Nothing here knows of Qt."""

__all__ = ["LOSS", "UNMATCHED"]

LOSS = "loss"
"""The colour of ions that lost a molecule, whatever their series."""
UNMATCHED = ""
"""That of peaks in which no ion is found."""
