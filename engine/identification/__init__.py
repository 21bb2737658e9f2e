"""Identification of peptides and proteins. Its entry comes first, which makes its kinds of work known."""

from proteoscope.engine.identification.entry import IDENTIFICATION as IDENTIFICATION
