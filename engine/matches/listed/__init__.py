"""Matches that come as a list, of another engine's file or of a library: spectra found, peptides named and placed, judged, as tables."""
