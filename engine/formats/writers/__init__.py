"""Writers of the field's file formats, from the tables of an identification. `engine.formats.exporting` chooses among them."""
