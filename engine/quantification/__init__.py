"""Quantify: how much of each peptide and protein is in each sample, and what changes between conditions."""
