"""Limits for opening files: bytes, seconds, counts."""

MAX_FILE = 8 << 30
"""Most bytes of a file."""

MAX_SECONDS = 60
"""Most seconds for describing a file."""

AT_ONCE = 0.25
"""Seconds of CPU time that describing a file may take at the priority of runs; usual files take a tenth of it."""

NICENESS = 10
"""How much lower than its parent's the priority of the describing process is after that: runs of others go first."""

MAX_MEMORY = 1 << 30
"""Most bytes of address space of the describing process (not limited on Windows, seldom on macOS)."""

MAX_HEADER = 32 << 20
"""Most bytes of a safetensors or GGUF header, of a zip directory and of each pickle."""

MAX_SETTINGS = 10_000
"""Most settings of a GGUF file; usual files have 20 to 60."""

MAX_ITEMS = 1_500_000
"""Most items in all lists of a GGUF file: a vocabulary of 262,144 tokens with scores and types takes half of it."""

MAX_ALIGNMENT = 1 << 16
"""Largest multiple at which tensors of a GGUF file may begin."""

MAX_INSTRUCTIONS = 5_000_000
"""Most pickle instructions in one file: a tensor takes about 40, and an optimizer stores two more tensors for each."""

MAX_TENSORS = 50_000
"""Most tensors in one file."""

MAX_NAME = 500
"""Most characters of a tensor's name."""

MAX_AXES = 16
"""Most axes of a tensor."""

MAX_DEPTH = 5
"""Nesting depth to which state dicts are searched for."""

MAX_OTHER_ENTRIES = 1_000
"""Most other entries of a file that are listed."""

SPARE = 1 << 20
"""Bytes by which the tensors of a small file may exceed the file's size."""

SHARING = 32
"""Most times its own size that a file's tensors may take in total, each counted in full: layers may share weights, and views may
repeat them. One tensor alone may not take more than the file."""
