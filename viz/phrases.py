"""Phrases that `model` puts into the gaps of its errors, in the language of the page.

`model` knows no languages: an error holds a template and fields, and a field may be an English phrase, such as "at most 5". The
catalogue holds these phrases as patterns with numbered gaps; what fits one is translated. Anything else, such
as names and paths, stays as it is.
"""

import re
import string
from functools import cache

from viz import language

AS_THEY_ARE = frozenset({"asked", "edit", "host", "lecture", "model", "path", "text"})
"""Fields that hold what people typed, or names."""

NOT_IN_ERRORS = (
    "CPU · 1 thread",
    "CPU · {0} threads",
    "{0}: a Headlight checkpoint folder (format {1}) with the weights of {2}.",
    "an encoder-decoder",
    "an encoder",
    "a language model",
    "{0}: a folder of the transformers library, architecture {1}.",
    "has {0}",
    "lacks {0}",
    "knows {0} of {1} names",
    "{0} and {1} more",
    "Of the {0} numbers of {1}, {2} are NaN and {3} infinite: whatever uses them is not finite either.",
    "{0} of the {1} tensors are stored as {2}, not as float32.",
    "the memory to inspect it",
    "not enough",
    "{0} seconds",
    "{0} bytes in {1} seconds",
    "; more fit where no scores are kept",
    "; more fit where they are not changed",
    "names and shapes, without a layout",
    "the layout file {0}",
    "The layout file {0} says what each tensor is. The maps are right only if it is right.",
    "Says what each tensor is; the page Checkpoint helps to write one.",
    "layouts",
    "input",
    "features",
    "empty",
    "not kept",
    "left out: more than {0} MiB would be kept (limit)",
    "its axes are arranged in a way that was not understood",
    "its weights were freed before its heads could be identified",
    "example {0} was asked for, and its batch has {1}",
    "this kernel is not known",
    "torch.compile hides what a model computes. Record the model before it is compiled, or run the program with the environment "
    "variable TORCH_COMPILE_DISABLE=1.",
    "unpacking it takes more than {0} seconds",
    "the steps of a decode were not joined: the keys of earlier steps are others in a later step, as where a beam search "
    "reorders its cache. Each step is a site of its own.",
    "LayerNorm (standard; without a bias: bias-free), LayerNorm with the deviation of a sample (unbiased), or RMSNorm (rms).",
    "The kind of positional encoding: no tensor is a table of positions.",
    "No tensor is the output layer: it shares the weights of the embedding (tied), or there is none (none).",
)
"""Phrases that the pages show by themselves."""

WORDS = frozenset({"source", "target", "encoder", "decoder", "input", "weights"})
"""Single words of gaps that are no names of tensors, files or settings."""

_BETWEEN = "; "
"""Stands between phrases that fill one gap."""

_GAP = re.compile(r"\\\{(\d+)\\\}")


def said(field: str, value: object) -> object:
    """The value of an error's field in the current language."""
    if not isinstance(value, str) or field in AS_THEY_ARE or language.current() == "en":
        return value
    return phrase(value)


def phrase(text: str) -> str:
    """A phrase in the current language; another text as it is."""
    spoken = language.current()
    found = language.catalogue(spoken).gettext(text) if text else text
    if found != text or " " not in text:
        return found
    for pattern, translation in _patterns(spoken):
        if match := pattern.fullmatch(text):
            return translation.format(*map(_gap, match.groups()))
    return text


def _gap(text: str) -> str:
    """The text in a gap of a phrase: another phrase, several of them, or one of WORDS in the current language; a name as it is."""
    said = phrase(text) if " " in text or text in WORDS else text
    if said != text or _BETWEEN not in text:
        return said
    return language.catalogue(language.current()).gettext(_BETWEEN).join(map(_gap, text.split(_BETWEEN)))


@cache
def _patterns(spoken: str) -> list[tuple[re.Pattern[str], str]]:
    """The phrases with gaps, those with the most words of their own first, and their translations."""
    numbered = [(one, other) for one, other in language.messages(spoken) if "{0}" in one and other]
    numbered.sort(key=lambda pair: -sum(len(text) for text, *_gap in string.Formatter().parse(pair[0])))
    return [(re.compile(_GAP.sub("(.+?)", re.escape(one)), re.DOTALL), other) for one, other in numbered]
