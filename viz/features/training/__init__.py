"""The page Training: the film of the snapshots, curves of losses and measures, and their runs."""
