"""What was something in a run for? Heads, words and edges of attention, measured by forced decoding of edited copies of one run.

`questions` and `results` need no torch.
"""
