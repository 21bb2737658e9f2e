"""Plots of a whole identification and of one protein."""
