"""Attribution: measures what heads, words and edges of attention were for, by forced decoding of edited copies of one run.

`questions` and `results` need no torch.

May import: model.checkpoints, model.errors, model.huggingface, model.inference, model.spec, model.trace, model.transformer.
"""
