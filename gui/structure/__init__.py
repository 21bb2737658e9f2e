"""Superposed structures in three dimensions: what is shown, from where it is seen, and who draws it."""
