"""Tables to take away, as CSV, and the names of files."""
