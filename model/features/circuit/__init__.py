"""Scores and logits taken apart into what the parts of the residual stream add to them, and the paths from head to head.

`circuits`, `sums` and `saved_sums` need no torch.
"""
