"""Sequences packed into databases, how they are compared, aligned and written."""
