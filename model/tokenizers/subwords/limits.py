"""Limits of a foreign tokenizer's process, in bytes, seconds and counts. Change them here."""

MAX_MEMORY = 2 << 30
"""Bytes of address space (has no effect on Windows, and seldom on macOS)."""

SECONDS_TO_OPEN = 120
"""Seconds for starting the process and reading its tokenizer file."""

SECONDS_TO_CUT = 10
"""Seconds for encoding one text or decoding one list of ids."""

MAX_TOKENS = 1 << 17
"""Most tokens of one text."""

MAX_CHARACTERS = 1 << 22
"""Most characters in the text that a list of ids decodes to."""

MAX_TEMPLATE = 1 << 20
"""Most bytes of a chat template; those of known models have at most some ten thousand."""

TEMPLATE_MEMORY = 256 << 20
"""Bytes that a chat template may take beside the tokenizer (Linux alone)."""

MAX_FILE = 1 << 26
"""Most bytes in a tokenizer file."""
