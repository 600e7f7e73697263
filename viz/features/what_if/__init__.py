"""The page What if, part by part: the list of edits, how they are made, their effect, and what mattered."""
