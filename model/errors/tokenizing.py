"""Errors of external tokenizers, which run in a process with resource limits."""

from model.errors.base import HeadlightError, message


class TokenizerFailed(HeadlightError):
    """An external tokenizer failed. If it exceeded its limits, the next text gets a new process."""


class TokenizerTooSlow(TokenizerFailed):
    """It took too long: the text is too much for it, or the machine is busy. Fields: path, seconds."""

    template = (
        "The tokenizer {path} took more than {seconds} s and was stopped. If this machine was busy, try again. Otherwise shorten "
        "the text, or give token ids (--source-ids)."
    )
    on_screen = message(
        "The tokenizer {path} took more than {seconds} s and was stopped. If the machine was busy, try again. Otherwise shorten "
        "the text, or choose another model."
    )


class TokenizerTooLarge(TokenizerFailed):
    """It needed too much memory. Fields: path, allowed."""

    template = (
        "The tokenizer {path} needed more than the {allowed:,} bytes of memory that an external tokenizer may use, and "
        "was stopped. Shorten the text, or give token ids (--source-ids)."
    )
    on_screen = message(
        "The tokenizer {path} needed more than the {allowed:,} bytes of memory that an external tokenizer may use, and "
        "was stopped. Shorten the text, or choose another model."
    )


class TokenizerDied(TokenizerFailed):
    """It failed in another way. Fields: path, detail."""

    template = "The tokenizer {path} failed on this text: {detail}. Change the text, or give token ids (--source-ids)."
    on_screen = message("The tokenizer {path} failed on this text: {detail}. Change the text, or choose another model.")


class NoTokenizer(TokenizerFailed):
    """Text for a folder without a supported tokenizer. Fields: strip, found, needed."""

    template = (
        "“{found}” cannot be read: this folder has no tokenizer that Headlight supports. Give token ids "
        "separated by spaces (--{strip}-ids), or put the tokenizer’s files into the folder ({needed})."
    )
    on_screen = message(
        "“{found}” cannot be read: this folder has no tokenizer that Headlight supports. Type token ids "
        "separated by spaces, such as 2 5 3, or put the tokenizer’s files into the folder ({needed})."
    )
