"""Interactive plots and figures of results, which can be exported."""
