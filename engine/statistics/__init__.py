"""Error rates from targets and decoys."""
