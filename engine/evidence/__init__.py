"""Tie identified peptides to their places in proteins, and these to structures: spectrum, peptide, residue, fold."""

from engine.evidence.entry import EVIDENCE as EVIDENCE
