"""A foreign tokenizer went beyond its bounds: errors of the process that cuts its texts."""

from model.errors.root import HeadlightError


class TokenizerFailed(HeadlightError):
    """A foreign tokenizer did not cut a text. The next text finds a fresh process."""


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
