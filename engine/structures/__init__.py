"""Protein structures: chains of residues as columns, their secondary structure, databases of them, and their superposition."""
