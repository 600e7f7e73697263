"""The runs of a step: those that the app shows for its view, and those that claims are about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from model.engine.api import Describe, Engine, ModelInfo, Run, Tensors, Texts
from model.errors import BadClaim, from_json
from model.requests.edits import read_edits
from model.requests.request import Keep, RunRequest
from model.requests.snapshots import at_step
from model.trace.types import Array, Attention, Tokens, Trace
from viz.claims.subjects import Head, Named, Scope, Token
from viz.feature import features
from viz.i18n.translate import _
from viz.labels import tokens
from viz.metrics.teacher_forcing import teacher_forced_request
from viz.url.links import conversing, opening
from viz.url.view_state import WITHOUT_EDITS, ViewState

EVERYTHING: tuple[Keep, ...] = ("scores", "qkv", "hidden")
"""Tensors that runs keep in addition, so that every claim about one run reads the same trace."""


class HasView(Protocol):
    """A step of a lecture, as far as its runs are concerned."""

    @property
    def view(self) -> ViewState:
        """The view of its link."""


@dataclass(frozen=True)
class StepRuns:
    """The runs of one step. Equal requests come from the engine's cache.

    Attributes:
        engine: runs them.
        step: a step of a lecture.
    """

    engine: Engine
    step: HasView

    @cached_property
    def info(self) -> ModelInfo:
        """The model of the step's view.

        Raises:
            HeadlightError: there is no such model here, or it cannot be used.
        """
        info = self.engine.ask(Describe(self.step.view.model, self.step.view.parsed_settings()))
        if info.problem:
            raise from_json(info.problem)
        return info

    @cached_property
    def view(self) -> ViewState:
        """The step's view; without a text, that of the model's first example, as the app opens it."""
        view = self.step.view
        return conversing(self.info, opening(self.info, view) if view.text is None else view)

    @property
    def has_second_side(self) -> bool:
        """Whether the view compares the run with another one."""
        return any(feature.second_view is not None and feature.second_view(self.view) != self.view for feature in features())

    def request(self, scope: Scope = Scope()) -> RunRequest:
        """The request of a scope, without `change`."""
        view = _second(self.view) if scope.side == "B" else self.view
        request = (replace(view, **WITHOUT_EDITS) if scope.side == "plain" else view).request(keep=EVERYTHING)
        model = at_step(request.model, scope.snapshot) if scope.snapshot >= 0 else request.model
        return replace(request, model=model, edits=request.edits + read_edits(scope.edits))

    def run(self, scope: Scope = Scope()) -> Trace:
        """The run of a scope, as the model decodes it."""
        return self.engine.ask(Run(self.request(scope)))

    def fed(self, scope: Scope) -> tuple[Trace, Trace]:
        """What the model writes without edits, read by the model without edits and by the scope's: the same tokens in both.

        Both have the steps of the run that wrote them.
        """
        # A text that the edited model wrote would differ, and two different texts have no common rows to compare.
        plain, wanted = replace(self.request(), edits=()), self.request(scope)
        written = self.engine.ask(Run(plain))
        reading = teacher_forced_request(plain, written)
        edited = replace(reading, model=wanted.model, edits=wanted.edits)
        before, now = self.engine.ask(Run(reading)), self.engine.ask(Run(edited))
        return replace(before, steps=written.steps), replace(now, steps=written.steps)

    def padded(self) -> tuple[Trace, Trace]:
        """The run without padding, and the one that Masks shows."""
        plain = self.run()
        length = self.view.pad_to or min(len(plain.tokens["source"]) + 4, self.info.max_source)
        return plain, self.engine.ask(Run(self.view.request(keep=EVERYTHING, pad_to=length)))

    def ids(self, trace: Trace) -> Mapping[str, int]:
        """The id of each text of the written strip's vocabulary."""
        assert trace.logits is not None
        every = range(trace.logits.shape[1])
        texts = self.engine.ask(
            Texts(self.request().model, strip=tokens.written_strip(trace), ids=tuple(every), settings=self.view.parsed_settings())
        )
        # Reversed, so that of two ids with the same text the smaller one stays.
        return {text: id_ for id_, text in zip(reversed(every), reversed(texts), strict=True)}

    def tensors(self, names: tuple[str, ...]) -> Mapping[str, Array]:
        """Tensors of the model by name."""
        return self.engine.ask(Tensors(self.view.model, names=names, settings=self.view.parsed_settings()))

    @property
    def spec(self) -> Mapping[str, Any]:
        """The network's spec."""
        return self.info.spec

    def attention(self, trace: Trace, head: Head) -> tuple[Attention, int]:
        """The site and the number of a head; what it leaves out is that of the view.

        Raises:
            UnknownSite, UnknownHead: the run has no such head.
        """
        last = trace.last_cross()
        site = head.site or self.view.site
        attention = trace.at(site) if site else last
        number = head.number if head.number >= 0 else self.view.head
        attention.head(number)
        return attention, number


def _second(view: ViewState) -> ViewState:
    """The view of side B.

    Raises:
        BadClaim: no feature compares two sides.
    """
    for feature in features():
        if feature.second_view is not None:
            second: ViewState = feature.second_view(view)
            return second
    raise BadClaim(reason=_("there is no side B"))


def row(trace: Trace, attention: Attention, token: Token | None) -> int:
    """The index of a row.

    Raises:
        BadClaim: there is no such row.
    """
    strip, count = trace.tokens[attention.query_tokens], attention.weights.shape[1]
    # A decoder's row is named by the token that it writes, which stands one position further on.
    if isinstance(token, Named) and not token.after and attention.site.stack == "decoder":
        return _checked(position_of(strip, token) - 1, count, strip, token)
    return _checked(position_of(strip, token), count, strip, token)


def column(trace: Trace, attention: Attention, token: Token | None) -> int:
    """The index of a key.

    Raises:
        BadClaim: there is no such key.
    """
    strip = trace.tokens[attention.key_tokens]
    return _checked(position_of(strip, token), attention.weights.shape[2], strip, token)


def position_of(strip: Tokens, token: Token | None) -> int:
    """The position of a token in a strip.

    Raises:
        BadClaim: there is no such token.
    """
    if isinstance(token, Named):
        index = _one_of(strip.texts, token)
        if index is None:
            raise _missing(strip, token)
        return index
    return _checked(token or 0, len(strip), strip, token)


def _one_of(texts: Sequence[str], token: Named) -> int | None:
    """The place of a named token among texts; None: there is none.

    Raises:
        BadClaim: there are several, and the name does not say which is meant.
    """
    places = [index for index, text in enumerate(texts) if text == token.text]
    if len(places) > 1 and not token.number:
        fields = {"text": token.text, "count": len(places), "form": f'"{token.text}"#2'}
        raise BadClaim(reason=_("“{text}” occurs {count} times; name one of them, such as {form} for the second", **fields))
    number = token.number or 1
    return places[number - 1] if number <= len(places) else None


def _checked(index: int, count: int, strip: Tokens, token: Token | None) -> int:
    if not 0 <= index < count:
        raise _missing(strip, token)
    return index


def _missing(strip: Tokens, token: Token | None) -> BadClaim:
    name = f"“{token.text}”" + (f"#{token.number}" if token.number > 1 else "") if isinstance(token, Named) else str(token)
    texts = " ".join(strip.texts)
    return BadClaim(reason=_("no token or row {name} in: {there}", name=name, there=texts))


def step_of(trace: Trace, at: Token | None) -> int:
    """The index of a step of decoding: an index, or the token that is written in it.

    Raises:
        BadClaim: there is no such step.
    """
    written = [step.chosen.text for step in trace.steps]
    if isinstance(at, Named):
        if (step := _one_of(written, at)) is not None:
            return step
    elif at is not None and at < len(written):
        return at
    name = f"“{at.text}”" if isinstance(at, Named) else str(at)
    raise BadClaim(reason=_("no step {name} among the generated tokens: {there}", name=name, there=" ".join(written)))
