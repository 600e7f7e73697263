"""Claims about runs: what lectures claim and ask, the words for it, and the runs that it is about. Features bring further kinds."""
