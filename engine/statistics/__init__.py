"""Statistics of error rates estimated with decoys, and non-negative least squares."""
