"""Errors of external tokenizers, which run in a process with resource limits."""

from model.errors.root import HeadlightError


class TokenizerFailed(HeadlightError):
    """An external tokenizer failed. If it exceeded its limits, the next text gets a new process."""


class TokenizerTooSlow(TokenizerFailed):
    """It took too long. Fields: path, seconds."""

    template = "The tokenizer {path} took more than {seconds} s and was stopped: shorten the text, or give ids (--source-ids)."
    on_screen = "The tokenizer {path} took more than {seconds} s and was stopped: shorten the text, or choose another model."


class TokenizerTooLarge(TokenizerFailed):
    """It needed too much memory. Fields: path, allowed."""

    template = (
        "The tokenizer {path} needed more than the {allowed} bytes of memory that a foreign tokenizer may take and was stopped: "
        "shorten the text, or give ids (--source-ids)."
    )
    on_screen = (
        "The tokenizer {path} needed more than the {allowed} bytes of memory that a foreign tokenizer may take and was stopped: "
        "shorten the text, or choose another model."
    )


class TokenizerDied(TokenizerFailed):
    """It failed in another way. Fields: path, detail."""

    template = "The tokenizer {path} failed at this text ({detail}): change the text, or give ids (--source-ids)."
    on_screen = "The tokenizer {path} failed at this text ({detail}): change the text, or choose another model."


class NoTokenizer(TokenizerFailed):
    """Text for a folder without a supported tokenizer. Fields: strip, found, needed."""

    template = (
        "The {strip} text is {found!r}, but this folder has no tokenizer that is read here: give ids with blanks between them "
        "(--{strip}-ids), or put the tokenizer's files into the folder ({needed})."
    )
    on_screen = (
        "The {strip} text is {found!r}, but this folder has no tokenizer that is read here: type ids with blanks between them, "
        "such as 2 5 3, or put the tokenizer's files into the folder ({needed})."
    )
