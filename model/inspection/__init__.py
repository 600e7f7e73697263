"""What a checkpoint is, without running it: its report, statistics of its tensors, and what each head's matrices do.

May import: model.trace, model.transformer.
"""
