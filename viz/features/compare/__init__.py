"""The page Compare: two runs side by side, what differs, and how alike their outputs are."""
