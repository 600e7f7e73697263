"""The Transformer, as a text to be read: attention, masks, positions, layers, stacks, cache, build — in this order.
What trained checkpoints do otherwise stands apart: norms, lone, shared_head.

The axes of every tensor are named at the ends of lines: batch, head, query, key, position, head_dim, model, hidden, vocab.
`query` and `key` are positions too, seen from attention.

Source: Vaswani et al. 2017, "Attention Is All You Need"; section and equation numbers are of that paper.

May import: model.errors, model.spec, model.trace.
"""
