"""The Transformer, written to be read: attention, masks, positions, layers, stacks, cache, build — in this order.
Variants that some trained checkpoints need are in files of their own: norms, shared_head. `networks` says what every network, also
one of another library, answers about its runs.

Comments at the ends of lines give the shape of each tensor, in these axis names: batch, head, query, key, position, head_dim, model
(the width of the residual stream), hidden, vocab. `query` and `key` are positions too: those that ask and those that are compared.

Source: Vaswani et al. 2017, "Attention Is All You Need". Section, equation and table numbers without an author refer to that paper.
"""
