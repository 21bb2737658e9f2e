"""Writers of the tables of matches for other programs. `proteoscope.engine.matches.exporting` chooses among them."""
