"""Interactive plots."""
