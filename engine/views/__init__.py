"""What pictures and tables of results show, as plain data: NumPy arrays, Arrow tables and dataclasses, which a script can have too."""
