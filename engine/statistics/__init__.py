"""Error rates estimated with decoys."""
