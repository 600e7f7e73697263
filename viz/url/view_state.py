"""The URL is the state. The fields of ViewState are its parameters; `viz.url.links` alone reads and writes them."""

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Self, TypeVar, get_args

from model.requests.edits import Edit, read_edits
from model.requests.inputs import Chat, Turn
from model.requests.request import MOST_CANDIDATES, MOST_TOKENS, Decoding, Method, Precision, RunRequest, Settings
from viz.feature import features
from viz.i18n.translate import N_
from viz.url import parsers as values
from viz.url.parsers import ALL_OFF, READINGS, Parameter, parameter

Brought = TypeVar("Brought")

LARGEST_SEED = 2**53 - 1
"""The largest whole number of those that a browser tells apart."""

PRECISIONS: tuple[str, ...] = get_args(Precision)
"""Number types that a run can be asked for in."""


@dataclass(frozen=True, kw_only=True)
class ViewState:
    """Everything that decides what a page shows, but for the page itself, which is the URL's path.

    Each field says what it means. An empty `model` is the first one, no `text` its first example, an empty `target` leaves the
    writing to the model, an empty `site` is the one that the page opens on, and -1 is none, or of `snapshot` the first.
    """

    model: str = parameter("", "model", "name of the model", values.text, of_a_run=N_("model"))
    settings: str = parameter(
        "",
        "set",
        "answers that the model's file does not give, NAME=VALUE joined by spaces; the Checkpoint page asks for them",
        values.settings,
        of_a_run=N_("settings the file does not contain"),
        reset_by="model",
        typed=True,
    )
    text: str | None = parameter(
        None, "text", "the source sentence", values.text, of_a_run=N_("sentence"), reset_by="model", typed=True
    )
    chat: str = parameter(
        "",
        "chat",
        'the turns before the sentence, in JSON: `[["user","…"],["assistant","…"]]`; off: the model continues the sentence',
        values.chat,
        of_a_run=N_("conversation"),
        reset_by="model",
        typed=True,
    )
    raw: int = parameter(0, "raw", "1: a conversation is shown as the text that the chat template made of it", values.whole(0, 1))
    target: str = parameter(
        "",
        "target",
        "forced target (teacher forcing) instead of decoding",
        values.text,
        of_a_run=N_("forced target"),
        reset_by="model",
        typed=True,
    )
    method: str = parameter(
        Decoding.method, "decode", "greedy, sample or beam", values.choice(*get_args(Method)), of_a_run=N_("decoding")
    )
    max_length: int = parameter(
        Decoding.max_length, "max", "maximum new tokens", values.whole(0, MOST_TOKENS), of_a_run=N_("maximum new tokens")
    )
    begin: str = parameter(
        "", "begin", "ids that the model generates first", values.ids, of_a_run=N_("chosen tokens"), reset_by="sentence", typed=True
    )
    temperature: float = parameter(
        Decoding.temperature,
        "temperature",
        "divides the logits before sampling",
        values.number(0.01, 10),
        of_a_run=N_("temperature"),
    )
    top_k: int = parameter(
        Decoding.top_k,
        "top_k",
        "sample among the k most likely tokens; 0: all",
        values.whole(0, MOST_CANDIDATES),
        of_a_run=N_("top k"),
    )
    top_p: float = parameter(
        Decoding.top_p,
        "top_p",
        "sample among the most likely tokens of this total probability; 1: all",
        values.number(0.01, 1),
        of_a_run=N_("top p"),
    )
    seed: int = parameter(Decoding.seed, "seed", "seed of sampling", values.whole(0, LARGEST_SEED), of_a_run=N_("seed"))
    beam_size: int = parameter(Decoding.beam_size, "beam", "beam width", values.whole(1, 32), of_a_run=N_("beam width"))
    hypothesis: int = parameter(
        Decoding.hypothesis,
        "hypothesis",
        "rank of the beam search hypothesis to show; 0: the best",
        values.whole(0, 63),
        reset_by="sentence",
        reported=True,
    )
    precision: str = parameter(
        "",
        "precision",
        f"precision of the run: {', '.join(PRECISIONS)}; default: the engine's setting",
        lambda text: values.choice(*PRECISIONS)(text) if text else text,
        of_a_run=N_("precision"),
    )
    site: str = parameter(
        "", "site", "the selected attention site: stack.pass.layer.kind, counted from 0", values.site, reset_by="model"
    )
    head: int = parameter(0, "head", "the selected head, counted from 0", values.whole(0), reset_by="model", reported=True)
    query: int = parameter(
        -1, "query", "the selected query row, counted from 0", values.whole(-1), reset_by="sentence", reported=True
    )
    key: int = parameter(
        -1,
        "key",
        "the selected key; its cell in the selected row shows how its weight was calculated; counted from 0",
        values.whole(-1),
        reset_by="sentence",
        reported=True,
    )
    cell: str = parameter("how", "cell", "the panel of a cell: how it was calculated, or why", values.cell_panel)
    clock: str = parameter(
        "token",
        "clock",
        "mode of Step through: token (by token) or computation (stage by stage)",
        values.choice("token", "computation"),
    )
    stage: str = parameter(
        "", "stage", "the stage shown by Step through: PLACE/NAME, as in stages.md", values.stage, reset_by="model"
    )
    step: int = parameter(
        -1, "step", "the step shown by Step through, counted from 0", values.whole(-1), reset_by="sentence", reported=True
    )
    pad_to: int = parameter(
        0, "pad", "positions to which Masks pads the source; 0: four are added", values.whole(0, 100_000), reset_by="sentence"
    )
    silence: str = parameter(
        "", "silence", "silenced heads, SITE:HEAD joined by spaces", values.silence, of_a_run=N_("silenced heads"), reset_by="model"
    )
    edits: str = parameter(
        "",
        "edit",
        "changes while the network runs, NAME key=value … joined by semicolons, or the parameter several times: what-if.md",
        values.edits,
        of_a_run=N_("edits"),
        reset_by="model",
        typed=True,
    )
    off: str = parameter(
        "",
        "off",
        "edits that are switched off: their places, counted from 0, joined by commas; all: What if begins without its example",
        values.off,
        of_a_run=N_("edits switched off"),
        reset_by="model",
    )
    reading: str = parameter(
        "head",
        "reading",
        f"what Explore draws of the selected site: {', '.join(READINGS)}; see readings.md",
        values.choice(*READINGS),
    )
    hide: str = parameter(
        "",
        "hide",
        "keys left out of the reading: special, those that stand for no text; first, the first token; none; default: first where "
        "most heads have most of their weight on it, else none",
        values.choice("special", "first", "none"),
    )
    overlay: str = parameter(
        "",
        "overlay",
        "how weights lie over an image, joined by spaces: smooth, else patch by patch; column, the weights to the selected token, "
        "else its row",
        values.some(*values.OVERLAYS),
    )
    language: str = parameter("", "lang", "language of the page: en, de, zh-CN or zh-TW; default: the browser's", values.language)
    opened: str = parameter("", "open", "open parts of a page, joined by spaces; their names stand below", values.parts)
    picture: str = parameter(
        "heads",
        "picture",
        "the picture that fills a page in big mode; their names stand below",
        values.picture,
    )
    big: int = parameter(0, "big", "1: big mode, for a projector: large text and no sidebar", values.whole(0, 1))
    brought: tuple[object, ...] = ()
    """The parameters of features that are not at their defaults: `of` reads them, `changed` sets them."""

    def of(self, parameters: type[Brought]) -> Brought:
        """The parameters that a feature brings."""
        return next((of_feature for of_feature in self.brought if isinstance(of_feature, parameters)), parameters())

    def value(self, parameter: Parameter) -> Any:
        """The value of a parameter, of the core or of a feature."""
        return getattr(self if parameter.owner is ViewState else self.of(parameter.owner), parameter.field)

    def changed(self, **values: Any) -> Self:
        """The view with other values of fields, of its own or of a feature's parameters.

        Raises:
            KeyError: there is no such field.
        """
        # A field belongs to the core or to the dataclass of a feature; each of these is changed at once.
        owners = {parameter.field: parameter.owner for parameter in all_parameters()}
        by_owner: dict[type, dict[str, Any]] = {owner: {} for owner in owners.values()}
        for field, value in values.items():
            by_owner[owners[field]][field] = value
        of_core = by_owner.pop(ViewState)
        brought: list[Any] = [replace(self.of(owner), **fields) for owner, fields in by_owner.items()]
        # A feature's parameters at their defaults are left out, so that equal views are equal.
        return replace(self, **of_core, brought=tuple(parameters for parameters in brought if parameters != type(parameters)()))

    @property
    def chats(self) -> bool:
        """Whether the sentence is the newest turn of a conversation."""
        return self.chat not in ("", values.PLAIN)

    def decoding(self) -> Decoding:
        """The decoding settings."""
        return Decoding(**{f.name: getattr(self, f.name) for f in fields(Decoding)})

    def chosen_ids(self) -> tuple[int, ...]:
        """The ids that the decode begins with; none where a target is given, or where they are longer than the decode."""
        # A decode that is shorter than its beginning would write something else than the link says.
        ids = () if self.target or not self.begin else values.id_numbers(self.begin)
        return ids if len(ids) <= self.max_length else ()

    def parsed_settings(self) -> Settings:
        """The settings by name."""
        return tuple(values.pairs(self.settings).items()) if self.settings else ()

    def all_edits(self) -> tuple[Edit, ...]:
        """The edits in their order, those that are switched off included; heads that an old link silences come first."""
        return values.silences(self.silence) + read_edits(self.edits)

    def switched_off(self) -> frozenset[int]:
        """The places of edits that are switched off."""
        count = len(self.all_edits())
        return frozenset(range(count) if self.off == ALL_OFF else [index for index in values.places(self.off) if index < count])

    def active_edits(self) -> tuple[Edit, ...]:
        """The edits that are switched on."""
        if not (self.edits or self.silence):
            return ()
        off = self.switched_off()
        return tuple(edit for index, edit in enumerate(self.all_edits()) if index not in off)

    def request(self, keep: tuple[str, ...] = (), pad_to: int = 0) -> RunRequest:
        """The run that this view looks at.

        Raises:
            InputError: an input is too long.
        """
        newest = Turn("user", self.text or "")
        return RunRequest(
            model=self.model,
            source=Chat((*values.turns(self.chat), newest)) if self.chats and newest.text.strip() else newest.text,
            target=self.target or None,
            decoding=self.decoding(),
            begin=self.chosen_ids(),
            source_pad_to=pad_to or None,
            keep=keep,  # type: ignore[arg-type]  # RunRequest checks the names
            edits=self.active_edits(),
            settings=self.parsed_settings(),
            precision=self.precision or None,  # type: ignore[arg-type]  # RunRequest checks the name
        )


@cache
def all_parameters() -> tuple[Parameter, ...]:
    """The URL parameters in their order in a URL, those of the core first; docs/links.md lists them."""
    owners = (ViewState, *(feature.parameters for feature in features() if feature.parameters is not None))
    return tuple(
        replace(field.metadata["parameter"], field=field.name, owner=owner)
        for owner in owners
        for field in fields(owner)
        if "parameter" in field.metadata
    )


@cache
def typed() -> frozenset[str]:
    """The names of parameters that hold what people typed, which logs leave out."""
    return frozenset(parameter.name for parameter in all_parameters() if parameter.typed)


@cache
def reported() -> tuple[str, ...]:
    """The fields that drawings report as whole numbers."""
    return tuple(parameter.field for parameter in all_parameters() if parameter.reported)


def new_sentence() -> dict[str, Any]:
    """Fields that a new sentence resets, with their defaults: a row or a hypothesis of the old one."""
    return {p.field: ViewState().value(p) for p in all_parameters() if p.reset_by == "sentence"}


def another_model() -> dict[str, Any]:
    """Fields that another model resets, with their defaults: everything that refers to the old one's tokens and heads."""
    return {p.field: ViewState().value(p) for p in all_parameters() if p.reset_by}


WITHOUT_EDITS: dict[str, Any] = {"silence": "", "edits": "", "off": ""}
"""Fields of a view whose run is not changed."""
