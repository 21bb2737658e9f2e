"""Alignment of reads. Its entry comes first, which makes its kinds of work known."""

from proteoscope.engine.read_alignment.entry import READ_ALIGNMENT as READ_ALIGNMENT
