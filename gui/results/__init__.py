"""What searches found: linked tables, how they are filtered, and the views of what is chosen in them."""
