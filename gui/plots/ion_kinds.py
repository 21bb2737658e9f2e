"""What ions are coloured by besides the letters of their series. Nothing here knows of Qt."""

__all__ = ["LOSS", "SHARED", "UNMATCHED"]

LOSS = "loss"
"""The colour of ions that lost a molecule, whatever their series."""
SHARED = "shared"
"""That of peaks that two spectra share, where no ion names them."""
UNMATCHED = ""
"""That of peaks in which no ion is found."""
