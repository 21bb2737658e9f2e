"""An annotated spectrum: peaks, ions, errors, the peptide, and its figure for a publication."""
