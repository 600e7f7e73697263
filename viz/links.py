"""The URL is the state. One table says which parameters there are; this module alone reads and writes them.

A parameter that equals its default is left out. A value that cannot be read is reported in a sentence and replaced by its default,
never dropped in silence.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_args
from urllib.parse import unquote

from model.spec.request import Decoding, Precision, RunRequest, Settings
from viz import link_values as values
from viz.texts import _

MOST_CANDIDATES = 1_000_000
MOST_TOKENS = 1000
LARGEST_SEED = 2**53 - 1
"""The largest whole number of those that a browser tells apart."""

READINGS = ("head", "mean", "max", "value", "rollout", "entropy")
"""What Explore can draw of a site; docs/readings.md defines each."""

MEASURES = ("entropy", "diagonality", "antidiagonality", "alignment")
"""What Training can draw of every head over the snapshots; docs/readings.md defines each."""


PRECISIONS: tuple[str, ...] = get_args(Precision)
"""Number types that a run can be asked for in."""


@dataclass(frozen=True)
class View:
    """Everything that decides what a page shows, but for the page itself, which is the URL's path.

    Attributes:
        model: name of a model; empty: the first.
        text: the source sentence; None: the model's first example.
        target: the target to be fed; empty: the model decodes.
        method, max_length, temperature, top_k, top_p, seed, beam_size: as in Decoding.
        hypothesis: as in Decoding, counted from 0.
        site: text form of a Site; empty: the last cross-attention, or the last site.
        head, query, key, step: counted from 0; query, key and step -1: none chosen.
        clock: of the page Step through: `token` or `computation`.
        stage: text form of a Stage; empty: the first.
        pad_to: positions that the page Masks pads the source to; 0: no padding.
        silence: heads that are silenced, as "site:head" joined by spaces.
        reading: what Explore draws of the selected site: one of READINGS.
        settings: what the model's file does not tell, as NAME=VALUE joined by spaces.
        hide: `special`: keys that stand for no text are left out of a reading; empty: none is.
        against: in what the second side of the page Compare differs, as `differing` writes it; empty: in nothing.
        snapshot: the step of the snapshot that the page Training shows; -1: the last.
        measure: what it draws of every head: one of MEASURES.
        precision: the number type of the run: one of PRECISIONS; empty: what the engine is set to.
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
    hypothesis: int = 0
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
    against: str = ""
    snapshot: int = -1
    measure: str = "entropy"
    precision: str = ""

    def decoding(self) -> Decoding:
        """The decoding settings."""
        return Decoding(**{f.name: getattr(self, f.name) for f in fields(Decoding)})

    def told(self) -> Settings:
        """The settings by name."""
        return tuple(values.pairs(self.settings).items())

    def request(self, keep: tuple[str, ...] = (), pad_to: int = 0) -> RunRequest:
        """The run that this view looks at."""
        return RunRequest(
            model=self.model,
            source=self.text or "",
            target=self.target or None,
            decoding=self.decoding(),
            source_pad_to=pad_to or None,
            keep=keep,  # type: ignore[arg-type]  # RunRequest checks the names
            interventions=tuple(values.silences(self.silence)),
            settings=self.told(),
            precision=self.precision or None,  # type: ignore[arg-type]  # RunRequest checks the name
        )


@dataclass(frozen=True)
class Parameter:
    """One URL parameter: its name, the field of View that it holds, what it means (for docs/links.md), how its text is read."""

    name: str
    field: str
    meaning: str
    read: Callable[[str], Any]


PARAMETERS = (
    Parameter("model", "model", "name of the model", values.text),
    Parameter(
        "set",
        "settings",
        "what the model's file does not tell, NAME=VALUE joined by spaces; the page Checkpoint asks for it",
        values.settings,
    ),
    Parameter("text", "text", "the source sentence", values.text),
    Parameter("target", "target", "the target sentence to feed instead of decoding", values.text),
    Parameter("decode", "method", "greedy, sample or beam", values.choice("greedy", "sample", "beam")),
    Parameter("max", "max_length", "tokens written at most", values.whole(0, MOST_TOKENS)),
    Parameter("temperature", "temperature", "of a sampled decode", values.number(0.01, 10)),
    Parameter("top_k", "top_k", "of a sampled decode; 0: all", values.whole(0, MOST_CANDIDATES)),
    Parameter("top_p", "top_p", "of a sampled decode; 1: all", values.number(0.01, 1)),
    Parameter("seed", "seed", "of a sampled decode", values.whole(0, LARGEST_SEED)),
    Parameter("beam", "beam_size", "beginnings that beam search follows", values.whole(1, 32)),
    Parameter(
        "hypothesis",
        "hypothesis",
        "which of the hypotheses that beam search ended with is shown, counted from 0",
        values.whole(0, 63),
    ),
    Parameter(
        "precision",
        "precision",
        f"the number type of the run: {', '.join(PRECISIONS)}; else what the engine is set to",
        lambda text: values.choice(*PRECISIONS)(text) if text else text,
    ),
    Parameter("site", "site", "the selected attention site: stack.pass.layer.kind, counted from 0", values.site),
    Parameter("head", "head", "the selected head, counted from 0", values.whole(0)),
    Parameter("query", "query", "the selected query row, counted from 0", values.whole(-1)),
    Parameter("key", "key", "the key whose cell in the selected row is opened to its arithmetic, counted from 0", values.whole(-1)),
    Parameter(
        "clock",
        "clock",
        "of Step through: token (the decode) or computation (the stages inside)",
        values.choice("token", "computation"),
    ),
    Parameter("stage", "stage", "the stage of the computation clock: PLACE/NAME, as in stages.md", values.stage),
    Parameter("step", "step", "the step shown by Step through, counted from 0", values.whole(-1)),
    Parameter("pad", "pad_to", "positions that the page Masks pads the source to", values.whole(0, 100_000)),
    Parameter("silence", "silence", "silenced heads, SITE:HEAD joined by spaces", values.silence),
    Parameter(
        "reading",
        "reading",
        f"what Explore draws of the selected site: {', '.join(READINGS)}; see readings.md",
        values.choice(*READINGS),
    ),
    Parameter("snapshot", "snapshot", "the snapshot that Training shows: the step after which it was kept", values.whole(-1)),
    Parameter(
        "measure", "measure", f"what Training draws of every head: {', '.join(MEASURES)}; see readings.md", values.choice(*MEASURES)
    ),
    Parameter("hide", "hide", "special: keys that stand for no text are left out of the reading", values.choice("special")),
    Parameter(
        "against",
        "against",
        "in what the second side of Compare differs: parameters of this table as NAME=VALUE joined by &, %26 for & and %25 for %",
        lambda text: _against(text),
    ),
)
"""The one table of URL parameters; docs/links.md explains each."""

OF_A_RUN = (
    "model",
    "set",
    "text",
    "target",
    "decode",
    "max",
    "temperature",
    "top_k",
    "top_p",
    "seed",
    "beam",
    "silence",
    "precision",
)
"""The parameters that decide what runs, so that the two sides of a comparison may differ in them."""


def differences(against: str) -> dict[str, Any]:
    """The fields of View in which the second side differs, with their values.

    Raises:
        ValueError: `against` is not what `differing` writes.
    """
    known = {parameter.name: parameter for parameter in PARAMETERS if parameter.name in OF_A_RUN}
    pairs = [pair.partition("=") for pair in against.split("&") if pair]
    if len({name for name, _equals, _value in pairs}) < len(pairs) or any(name not in known for name, _equals, _value in pairs):
        raise ValueError(_("what differs, such as text=Ein Hund.&decode=beam, each name once"))
    return {known[name].field: known[name].read(unquote(value)) for name, _equals, value in pairs}


def differing(**fields_: object) -> str:
    """What `View.against` says of fields in which the second side differs."""
    escape = str.maketrans({"%": "%25", "&": "%26"})
    return "&".join(f"{p.name}={str(fields_[p.field]).translate(escape)}" for p in PARAMETERS if p.field in fields_)


def second_side(view: View) -> View:
    """What the page Compare shows beside `view`. Another model starts without what the first one's file was told and silenced."""
    different = differences(view.against)
    anew: dict[str, Any] = {"settings": "", "silence": ""} if different.get("model", view.model) != view.model else {}
    return replace(view, **anew | different)


def _against(text: str) -> str:
    return values.text(differing(**differences(text)))


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
        parameter.name: str(getattr(view, parameter.field))[: values.LONGEST_TEXT + 1]
        for parameter in PARAMETERS
        if getattr(view, parameter.field) != getattr(default, parameter.field)
    }
