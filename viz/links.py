"""The URL is the state. One table says which parameters there are; this module alone reads and writes them.

A parameter that equals its default is left out. A value that cannot be read is reported in a sentence and replaced by its default,
never dropped in silence.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from model.engine.base import Decoding, RunRequest, Settings, Silence
from model.errors import HeadlightError
from model.trace import Site
from viz.texts import _

LONGEST_TEXT = 4000
"""Characters of a text that travel in a URL: browsers and servers cut longer ones."""

MOST_CANDIDATES = 1_000_000
LARGEST_SEED = 2**53 - 1
"""The largest whole number of those that a browser tells apart."""

READINGS = ("head", "mean", "max", "value", "rollout", "entropy")
"""What Explore can draw of a site; docs/readings.md defines each."""


@dataclass(frozen=True)
class View:
    """Everything that decides what a page shows, but for the page itself, which is the URL's path.

    Attributes:
        model: name of a model; empty: the first.
        text: the source sentence; None: the model's first example.
        target: the target to be fed; empty: the model decodes.
        method, max_length, temperature, top_k, top_p, seed, beam_size: as in Decoding.
        site: text form of a Site; empty: the last cross-attention, or the last site.
        head, query, key, step: counted from 0; query, key and step -1: none chosen.
        clock: of the page Step through: `token` or `computation`.
        stage: text form of a Stage; empty: the first.
        pad_to: positions that the page Masks pads the source to; 0: no padding.
        silence: heads that are silenced, as "site:head" joined by spaces.
        reading: what Explore draws of the selected site: one of READINGS.
        settings: what the model's file does not tell, as NAME=VALUE joined by spaces.
        hide: `special`: keys that stand for no text are left out of a reading; empty: none is.
    """

    model: str = ""
    text: str | None = None
    target: str = ""
    method: str = "greedy"
    max_length: int = 60
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    beam_size: int = 5
    site: str = ""
    head: int = 0
    query: int = -1
    key: int = -1
    step: int = -1
    clock: str = "token"
    stage: str = ""
    pad_to: int = 0
    silence: str = ""
    reading: str = "head"
    settings: str = ""
    hide: str = ""

    def decoding(self) -> Decoding:
        """The decoding settings."""
        return Decoding(**{f.name: getattr(self, f.name) for f in fields(Decoding)})

    def told(self) -> Settings:
        """The settings by name."""
        return tuple(_pairs(self.settings).items())

    def request(self, keep: tuple[str, ...] = (), pad_to: int = 0) -> RunRequest:
        """The run that this view looks at."""
        return RunRequest(
            model=self.model,
            source=self.text or "",
            target=self.target or None,
            decoding=self.decoding(),
            source_pad_to=pad_to or None,
            keep=keep,  # type: ignore[arg-type]  # RunRequest checks the names
            interventions=tuple(_silences(self.silence)),
            settings=self.told(),
        )


@dataclass(frozen=True)
class Parameter:
    """One URL parameter: its name, the field of View that it holds, what it means (for docs/links.md), how its text is read."""

    name: str
    field: str
    meaning: str
    read: Callable[[str], Any]


def _whole(lowest: int, highest: int = 10**9) -> Callable[[str], int]:
    def read(text: str) -> int:
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or len(digits) > 20 or not lowest <= int(text) <= highest:
            raise ValueError(_("a whole number from {lowest} to {highest}", lowest=lowest, highest=highest))
        return int(text)

    return read


def _number(lowest: float, highest: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not lowest <= number <= highest:
            raise ValueError(_("a number from {lowest} to {highest}", lowest=lowest, highest=highest))
        return number

    return read


def _text(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise ValueError(_("a text of at most {longest} characters", longest=LONGEST_TEXT))
    return text


def _choice(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(_("one of {allowed}", allowed=", ".join(allowed)))
        return text

    return read


def _site(text: str) -> str:
    try:
        return str(Site.parse(text))
    except HeadlightError as error:
        raise ValueError(_("a site such as decoder.0.2.cross")) from error


def _stage(text: str) -> str:
    if not _STAGE.fullmatch(text):
        raise ValueError(_("a stage such as decoder.0.2.cross/weights"))
    return text


_STAGE = re.compile(r"[a-z0-9_.]{1,60}/[a-z]{1,20}", re.ASCII)


def _silences(text: str) -> list[Silence]:
    pairs = (entry.rpartition(":") for entry in text.split())
    return [Silence(str(Site.parse(site)), _whole(0)(head)) for site, _colon, head in pairs]


def _silence(text: str) -> str:
    try:
        return " ".join(f"{s.site}:{s.head}" for s in _silences(_text(text)))
    except (HeadlightError, ValueError) as error:
        raise ValueError(_("heads such as decoder.0.2.cross:4")) from error


FILES = ("source_vocab", "target_vocab")
"""Settings that name files of the server: a link never does."""

_SETTING = re.compile(r"[a-z_]{1,40}=\S{0,200}", re.ASCII)


def _pairs(text: str) -> dict[str, str]:
    return {name: value for name, _equals, value in (pair.partition("=") for pair in text.split())}


def settings_text(told: Mapping[str, str]) -> str:
    """Settings as a link writes them; those with a blank in their value do not fit into one."""
    return " ".join(f"{name}={value}" for name, value in sorted(told.items()))


def _settings(text: str) -> str:
    typed = _text(text).split()
    if not all(_SETTING.fullmatch(pair) for pair in typed) or len(_pairs(text)) < len(typed) or set(FILES) & set(_pairs(text)):
        raise ValueError(_("settings such as n_heads=8, each name once, and none that names a file"))
    return settings_text(_pairs(text))


PARAMETERS = (
    Parameter("model", "model", "name of the model", _text),
    Parameter(
        "set",
        "settings",
        "what the model's file does not tell, NAME=VALUE joined by spaces; the page Checkpoint asks for it",
        _settings,
    ),
    Parameter("text", "text", "the source sentence", _text),
    Parameter("target", "target", "the target sentence to feed instead of decoding", _text),
    Parameter("decode", "method", "greedy, sample or beam", _choice("greedy", "sample", "beam")),
    Parameter("max", "max_length", "tokens written at most", _whole(0, 1000)),
    Parameter("temperature", "temperature", "of a sampled decode", _number(0.01, 10)),
    Parameter("top_k", "top_k", "of a sampled decode; 0: all", _whole(0, MOST_CANDIDATES)),
    Parameter("top_p", "top_p", "of a sampled decode; 1: all", _number(0.01, 1)),
    Parameter("seed", "seed", "of a sampled decode", _whole(0, LARGEST_SEED)),
    Parameter("beam", "beam_size", "beginnings that beam search follows", _whole(1, 32)),
    Parameter("site", "site", "the selected attention site: stack.pass.layer.kind, counted from 0", _site),
    Parameter("head", "head", "the selected head, counted from 0", _whole(0)),
    Parameter("query", "query", "the selected query row, counted from 0", _whole(-1)),
    Parameter("key", "key", "the key whose cell in the selected row is opened to its arithmetic, counted from 0", _whole(-1)),
    Parameter(
        "clock", "clock", "of Step through: token (the decode) or computation (the stages inside)", _choice("token", "computation")
    ),
    Parameter("stage", "stage", "the stage of the computation clock: PLACE/NAME, as in stages.md", _stage),
    Parameter("step", "step", "the step shown by Step through, counted from 0", _whole(-1)),
    Parameter("pad", "pad_to", "positions that the page Masks pads the source to", _whole(0, 100_000)),
    Parameter("silence", "silence", "silenced heads, SITE:HEAD joined by spaces", _silence),
    Parameter(
        "reading", "reading", f"what Explore draws of the selected site: {', '.join(READINGS)}; see readings.md", _choice(*READINGS)
    ),
    Parameter("hide", "hide", "special: keys that stand for no text are left out of the reading", _choice("special")),
)
"""The one table of URL parameters; docs/links.md explains each."""


def read(query: Mapping[str, str]) -> tuple[View, list[str]]:
    """The view in a URL's parameters, and a sentence for each parameter that could not be taken as it is."""
    known = {parameter.name: parameter for parameter in PARAMETERS}
    view, problems = View(), []
    for name, text in query.items():
        if name not in known:
            problems.append(_("The link has a parameter “{name}” that is unknown here; it was ignored.", name=name[:40]))
            continue
        try:
            view = replace(view, **{known[name].field: known[name].read(text)})
        except ValueError as error:
            gaps = {"name": name, "text": text[:40], "allowed": error}
            problems.append(_("The link asks for {name} “{text}”, which must be {allowed}; the default is shown.", **gaps))
    return view, problems


def write(view: View) -> dict[str, str]:
    """The URL parameters of a view, defaults left out. Of a text that is too long as much stays as makes `read` say so."""
    default = View()
    return {
        parameter.name: str(getattr(view, parameter.field))[: LONGEST_TEXT + 1]
        for parameter in PARAMETERS
        if getattr(view, parameter.field) != getattr(default, parameter.field)
    }
