"""Proteins cut into peptides, and the index of them that all searches of spectra share."""
