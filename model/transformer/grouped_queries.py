"""Grouped queries: fewer heads of keys and values than of queries; each of them is shared by a group of query heads.

With as many key heads as heads it is ordinary multi-head attention, and with a single one it is called multi-query attention
(Shazeer 2019). Each head still asks with queries of its own, so it has its own map; what can be found and what is passed on is the
same for a whole group.

Source: Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer Models", section 2.2.
"""

from torch import Tensor


def shared_by(heads: int, x: Tensor) -> Tensor:
    """[batch, key head, position, head_dim] -> [batch, head, position, head_dim]: neighboring heads get the same keys or values.

    With 6 heads and 2 key heads, heads 0 to 2 get the keys of key head 0, and heads 3 to 5 those of key head 1. What makes this
    worthwhile is the cache: a program that only writes keeps one copy for each group. Here each head gets a copy of its own, so
    that a run can show and change the keys of one head.
    """
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)
