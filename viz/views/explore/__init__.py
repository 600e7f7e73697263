"""The page Explore: the overview of all heads, the selected head, its readings, the logit lens."""
