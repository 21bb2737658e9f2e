"""Spectra as columns, and made ready to be searched."""
