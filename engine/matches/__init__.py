"""Matches of spectra and peptides: how they are scored, judged, gathered into tables and written."""
