"""Tie identified peptides to their places in proteins, and these to structures: spectrum, peptide, residue, fold."""

from proteoscope.engine.evidence.entry import EVIDENCE as EVIDENCE
