"""Identification of peptides and proteins. Its entry comes first, which makes its kinds of work known."""

from engine.identification.entry import IDENTIFICATION as IDENTIFICATION
