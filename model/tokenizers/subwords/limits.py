"""How much a foreign tokenizer may take. Bytes, seconds, counts; change them here."""

MAX_MEMORY = 2 << 30
"""Bytes of address space of its process (not limited on Windows, seldom on macOS)."""

SECONDS_TO_OPEN = 120
"""Seconds that starting the process and reading its rules may take."""

SECONDS_TO_CUT = 10
"""Seconds that one text may take, or one list of ids."""

MAX_TOKENS = 1 << 17
"""Tokens of one text."""

MAX_CHARACTERS = 1 << 22
"""Characters of the text of a list of ids."""

MAX_FILE = 1 << 26
"""Bytes of a file of rules."""
