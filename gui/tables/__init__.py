"""Tables of any length, whose rows DuckDB reads page by page from Parquet files in a background thread."""
