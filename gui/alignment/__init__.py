"""The alignment of two sequences: its columns, and how it is drawn."""
