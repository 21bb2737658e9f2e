"""Tables of any length: pages read from Parquet by DuckDB, in a thread beside the window."""
