"""Views of pairwise and stacked alignments."""
