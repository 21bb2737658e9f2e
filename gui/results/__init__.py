"""What an identification found: linked tables of proteins, peptides and PSMs, and the views of what is chosen."""
