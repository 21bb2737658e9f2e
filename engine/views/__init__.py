"""Data of pictures and tables of results, as they are: NumPy arrays, Arrow tables and dataclasses, which a script can have too."""
