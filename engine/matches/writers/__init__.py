"""Writers of the tables of matches for other programs. `engine.matches.exporting` chooses among them."""
