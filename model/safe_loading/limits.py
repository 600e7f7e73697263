"""How much of a file is believed. Bytes, seconds, counts; change them here."""

MAX_FILE = 8 << 30
"""Bytes of a file."""

MAX_SECONDS = 60
"""Seconds that describing a file may take."""

MAX_MEMORY = 1 << 30
"""Bytes that describing a file may take, in a process of its own (address space; not limited on Windows, seldom on macOS)."""

MAX_HEADER = 32 << 20
"""Bytes of a safetensors header, of a zip archive's directory and of each pickle."""

MAX_INSTRUCTIONS = 5_000_000
"""Instructions of the pickles of one file: a tensor takes about 40, an optimizer keeps two more for each."""

MAX_TENSORS = 50_000
"""Tensors in all tables of one file."""

MAX_NAME = 500
"""Characters of a tensor's name."""

MAX_AXES = 16
"""Axes of a tensor."""

MAX_DEPTH = 5
"""How many tables deep weights are looked for."""

MAX_BESIDE = 1_000
"""Entries beside the weights that are listed."""

SPARE = 1 << 20
"""Bytes that a small file's tensors may take beyond the file's own size."""

SHARING = 32
"""How many times its own size a file's tensors may take together, each written out: layers may share their weights, and a view
may repeat them. One tensor alone may take no more than the file."""
