"""Error rates estimated with decoys, and non-negative least squares."""
