"""Architectures without a row in FAMILIES: the library's network runs as a whole, and `headlight.py` records what it computes.

`inputs` says what such a network reads, `network` calls and records it,
`sites` turns the recording into sites of a trace, `probe` runs it once, `spec` describes it, `changing` makes it one that can be
changed, where it can.
"""
