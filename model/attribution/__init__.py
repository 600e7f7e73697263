"""Attribution: measures what heads, words and edges of attention were for, by forced decoding of edited copies of one run.

It also takes scores and logits apart into what the parts of the residual stream add to them, from the record of one run alone.
`questions`, `sums` and `results` need no torch.

May import: model.checkpoints, model.errors, model.huggingface, model.inference, model.spec, model.trace, model.transformer.
"""
