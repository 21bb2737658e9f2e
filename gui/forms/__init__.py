"""Forms made from the description of a search's parameters."""
