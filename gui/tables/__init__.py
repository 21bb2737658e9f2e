"""Tables of any length: pages of Parquet files read by DuckDB in a background thread."""
