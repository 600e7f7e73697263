"""Settings whose values are files: of the engine's machine, or sent to it."""

FILES = ("source_vocab", "target_vocab", "vocab")
"""Settings whose values are files."""

SENT_WORDS = "words-"
"""What the names begin with that `Engine.receive` gives to vocabularies."""


def names_a_file(setting: str, value: str) -> bool:
    """Whether a setting names a file of the engine's machine; a vocabulary that was sent there is none."""
    sent = value.removeprefix(SENT_WORDS)
    return setting in FILES and not (sent != value and len(sent) == 16 and sent.isascii() and sent.isalnum())
