"""EditedRun: what the edits of a request make of one run: its interventions, its network, the ids that it reads, and its notes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce

from torch import Tensor

from model.checkpoints.loader import Runner
from model.errors import CannotChange, Phrase, phrase
from model.features.what_if.edits import stack_edits
from model.features.what_if.edits.attention_edits import Past, finite, masked, rows_set, sharpened, silenced
from model.features.what_if.edits.examples import example_means, of_what
from model.features.what_if.edits.patches import Patched, second_values
from model.features.what_if.edits.places import Notes, Parts, Strips
from model.features.what_if.edits.stack_edits import ExchangedWords
from model.features.what_if.surveyed_means import surveyed_means
from model.inference.changes import Changes, Traced
from model.inference.inputs import Inputs, Reader
from model.requests.edits import (
    Allow,
    AtSites,
    Edit,
    Forbid,
    Patch,
    SetRow,
    Sharpen,
    Silence,
    SkipLayer,
    SkipSublayer,
    SwapLayers,
)
from model.requests.request import RunRequest
from model.trace.types import Array, Site, Tokens, Trace
from model.transformer.attention import Intervention
from model.transformer.networks import Changeable, RunsWhole


class EditedRun(Changes):
    """The edits of one run. Its interventions do not refer to it: a cycle would keep the tensors of the run in memory.

    An edit becomes a function of one of the values that the network shows to `Run.see`, by that value's name. Of the edits
    `silence site=decoder.0.2.cross head=4` and `forbid site=decoder.0.2.cross query=3 key=1`:

        attention/decoder.0.2.cross/context    [batch, head, query, head_dim] -> the same, zeros in head 4
        attention/decoder.0.2.cross/mask       [batch, 1, query, key] -> the same, False in row 3 at key 1

    Edits of one mask, or of one table of positions, make a single function. Several functions of one value follow each other in the
    order of the edits; last come those that only look, since an edit further on needs the value (`_looked_at`). Exchanged words are
    no interventions: the network reads other ids (`source`, `target`). Swapped layers are a second network of the same modules.

    Args:
        checkpoint: the network and its tokenizers.
        request: what is run.
        given: the token strips as far as they are known before the run: the source, and a target that is fed.
        traced: makes the other runs that edits need: the second run of a patch, and the examples.

    Raises:
        BadEdit, CannotChange, UnknownSite, UnknownHead: an edit names what is not there, or cannot be made in this network.
    """

    def __init__(self, checkpoint: Runner, request: RunRequest, given: Mapping[str, Tokens], traced: Traced) -> None:
        network = checkpoint.network
        if isinstance(network, RunsWhole):
            raise CannotChange(name=str(request.edits[0]), reason=network.why)
        self._checkpoint, self._request, self._traced = checkpoint, request, traced
        self._spec, self._edits = checkpoint.info.spec, request.edits
        # The strip that the run itself writes: edits may name tokens of it that do not exist yet.
        writes = self._spec.output is not None and self._spec.decoder is not None and "target" not in given
        growing = "" if not writes or not request.decoding.max_length else "target" if self._spec.encoder else "source"
        self.strips = Strips(given, growing, partial(_text_of, checkpoint))
        # What the functions of the edits remember of this run, so that later rows can be made of earlier ones.
        self._notes = Notes()
        self._pasts: list[Past] = []
        self._masks: dict[str, Tensor] = {}
        self._layers: dict[str, Tensor] = {}
        self._parts = Parts(self._spec, self.strips, self._notes, network.feed_forwards)
        self._words = ExchangedWords(checkpoint, self._edits, self.strips, self._parts)
        # The same network twice: as runs know it, and as one whose values can be changed.
        self.network = reordered = stack_edits.reordered(network, self._swaps())
        self._changeable: Changeable = reordered
        self.interventions = {name: _chained(changes) for name, changes in self._changes().items()}

    # --- While it runs ---

    def source(self, ids: Tensor, padding: Tensor | None) -> Tensor:
        """The ids [row, position] that the encoder reads, words exchanged.

        Args:
            padding: [batch, 1, 1, position] of bool, True where there is no padding.
        """
        self.strips.valid = None if padding is None else padding[0, 0, 0]
        return self._words.read("encoder", ids)

    def target(self, ids: Tensor) -> Tensor:
        """The ids [row, position] that the decoder reads, words exchanged."""
        if not ids.is_floating_point():
            self.strips.read(ids)
        return self._words.read("decoder", ids)

    def select(self, rows: Tensor) -> None:
        """Keeps batch rows of what the edits remember, as the cache does."""
        for past in self._pasts:
            past.select(rows)

    # --- After it ran ---

    def notes(self) -> list[Phrase]:
        """Sentences about the edits: each by its text, and what came of them."""
        named = [phrase("Edit: {edit}", edit=edit) for edit in self._edits]
        unmade = (edit for edit in self._edits if isinstance(edit, AtSites) and edit not in self._notes.made)
        return [*named, *self._notes.sentences, *map(self._unmade, unmade)]

    def mark_exchanged_words(self, strips: Mapping[str, Tokens]) -> dict[str, Tokens]:
        """The strips of the trace: where a word's embedding was exchanged, both words, and the id that the network read."""
        return self._words.mark_exchanged(strips)

    def _unmade(self, edit: Edit) -> Phrase:
        if isinstance(edit, Allow):
            return phrase(
                "“{edit}” changed nothing: during decoding, later tokens do not exist yet when a row is computed. Type a "
                "forced target.",
                edit=edit,
            )
        return phrase("“{edit}” changed nothing: this run has no such row or token.", edit=edit)

    # --- What is changed, by the names of the values ---

    def _changes(self) -> dict[str, list[Intervention]]:
        """The functions of each value, in the order of the edits; those that only look come last."""
        # Masks and positions come first: they are made for all edits of a value at once, in the order in which these were typed.
        changes: defaultdict[str, list[Intervention]] = defaultdict(list)
        for name, change in (*self._edges(), *self._positions()):
            changes[name].append(change)
        for edit in self._edits:
            for name, change in self._changes_of(edit):
                changes[name].append(change)
        # What an edit further on needs to know is noted down after the value was changed: it is the value that the network uses.
        for name in self._looked_at():
            into = self._masks if name.endswith("/mask") else self._layers
            changes[name].append(stack_edits.captured(into, name))
        return dict(changes)

    def _edges(self) -> Iterator[tuple[str, Intervention]]:
        """Edits of masks: all of one site make one function, which knows where a later one overrides an earlier one."""
        edges = [edit for edit in self._edits if isinstance(edit, Forbid | Allow)]
        for edit in edges:
            self._parts.check_tokens(edit, edit.query, edit.key)
        # An edit without a site is at all sites, so every site asks which edits are meant for it.
        for site in self._parts.sites if edges else ():
            if of_site := [edit for edit in edges if edit.at_site(str(site))]:
                yield f"attention/{site}/mask", masked(self._parts.edited_site(site), of_site)

    def _positions(self) -> Iterator[tuple[str, Intervention]]:
        """Edits of positional encodings: all of one stack make one function, since each moves what the one before it moved."""
        moves = [edit for edit in self._edits if isinstance(edit, stack_edits.PositionEdit)]
        for stack in dict.fromkeys(edit.stack for edit in moves):
            of_stack = [edit for edit in moves if edit.stack == stack]
            self._parts.check_stack(of_stack[0], stack)
            yield f"positions/{stack}", stack_edits.moved(self._changeable, stack, of_stack, self.strips)

    def _changes_of(self, edit: Edit) -> Iterator[tuple[str, Intervention]]:
        """The functions of one edit, each with the name of its value."""
        match edit:
            case SetRow():
                self._parts.check_tokens(edit, edit.query, () if edit.key is None else (edit.key,))
                yield from ((f"attention/{site}/weights", self._row(edit, site)) for site in self._parts.of(edit))
            case Silence():
                yield from ((f"attention/{site}/context", self._silence(edit, site)) for site in self._parts.of(edit))
            case Sharpen():
                yield from self._sharpen(edit)
            case SkipLayer():
                yield from ((name, stack_edits.skipped(self._layers, before, edit)) for name, before in self._parts.skipped(edit))
            case SkipSublayer():
                yield self._parts.sublayer(edit), stack_edits.nothing
            case Patch():
                yield from self._patch(edit)

    def _row(self, edit: SetRow, site: Site) -> Intervention:
        # The row of another head of the same layer: there must be such a head.
        if edit.other is not None:
            self._parts.check_head(site, edit.other)
        # Only a source that is known before the run has a length that typed numbers can be compared with.
        source = self.strips.keys(site) == "source" and self.strips.growing != "source"
        if edit.numbers and source and len(edit.numbers) > (keys := len(self.strips.given["source"])):
            raise edit.refuse(
                phrase("it gives {count:,} numbers, and the row has {keys:,} keys", count=len(edit.numbers), keys=keys)
            )
        if edit.numbers and abs(sum(edit.numbers) - 1) > 1e-6:
            self._notes.say(
                phrase("The numbers of “{edit}” sum to {total:.6g}; each was divided by that.", edit=edit, total=sum(edit.numbers))
            )
        masks = self._masks
        return rows_set(self._parts.edited_site(site), edit, lambda: masks[f"attention/{site}/mask"])

    def _silence(self, edit: Silence, site: Site) -> Intervention:
        # An encoder computes all rows at once, so its mean is over all of them; a decoder's row knows the rows before it alone.
        whole, strips = site.stack == "encoder" or self._parts.rows_of_source(site), self.strips
        past = Past((lambda: strips.valid if site.stack == "encoder" else None) if whole else None)
        self._pasts.append(past)
        means = self._means(edit)
        if edit.by == "survey" and site not in means:
            raise CannotChange(name=f"attention/{site}/context", reason=phrase("the stored survey contains no mean of this layer"))
        return silenced(self._parts.edited_site(site), edit, past, means.get(site))

    def _means(self, edit: Silence) -> Mapping[Site, Array]:
        """[head, head_dim] by site, what replaces the context of heads; none where the run itself says it. A note says of what."""
        if edit.by == "survey":
            means = surveyed_means(self._checkpoint.folder, self._checkpoint.fingerprint)
            over = phrase(
                "The mean over a survey is that of {count:,} texts, each of which counts equally: {texts}.",
                count=means.count,
                texts=means.texts,
            )
            self._notes.say(over)
            return means.contexts
        if edit.by == "examples":
            self._notes.say(of_what(self._checkpoint))
            return example_means(self._checkpoint, str(self._checkpoint.network.dtype), self._traced)
        return {}

    def _sharpen(self, edit: Sharpen) -> Iterator[tuple[str, Intervention]]:
        """The scores, or the queries that they are products of."""
        # A network that shows no scores lets its queries be changed: scores are linear in them, so the factor does the same there.
        value = self._changeable.value_of_scores()
        for site in self._parts.of(edit):
            yield f"attention/{site}/{value}", sharpened(self._parts.edited_site(site), edit)
            yield f"attention/{site}/weights", finite(edit)

    def _patch(self, edit: Patch) -> Iterator[tuple[str, Intervention]]:
        # What the second run must record so that its values can be taken: weights always are.
        keep = {"context": ("context",), "output": ("output",), "hidden": ("hidden",), "weights": ()}[edit.value]
        request = self._request
        trace = self._traced(
            replace(
                request,
                source=request.source if edit.source is None else edit.source,
                target=request.target if edit.target is None else edit.target,
                begin=request.begin if edit.target is None else (),
                edits=edit.under,
                keep=keep,  # type: ignore[arg-type]  # names of Keep
            )
        )
        # Whether the second run has the same rows is only known now; rows of other texts are refused or named by `at`.
        names = list(self._patched(edit))
        strips = dict(names)
        if edit.at:
            self.strips.check(edit, edit.at, tuple(dict.fromkeys(strips.values())))
        values = second_values(edit, trace)
        for name, strip in names:
            self._check_keys(edit, name, trace)
            tokens = trace.tokens[strip].texts
            yield name, Patched(edit, values[name], tokens, strip, self.strips, self._notes, edit.head)

    def _patched(self, edit: Patch) -> Iterator[tuple[str, str]]:
        """The values that a patch replaces, each with the strip of its rows."""
        # Hidden states have the rows of a stack; contexts, outputs and weights those of a site's queries.
        if edit.value != "hidden":
            yield from ((f"attention/{site}/{edit.value}", self.strips.queries(site)) for site in self._parts.of(edit))
            return
        for stack in self._spec.stacks if not edit.stack else [edit.stack]:
            self._parts.check_stack(edit, stack)
            yield from ((name, self.strips.of_stack(stack)) for name in self._parts.layers(edit, stack, edit.layer))

    def _swaps(self) -> list[SwapLayers]:
        swaps = [edit for edit in self._edits if isinstance(edit, SwapLayers)]
        for edit in swaps:
            self._parts.check_layer(edit, edit.stack, edit.a)
            self._parts.check_layer(edit, edit.stack, edit.b)
        return swaps

    def _check_keys(self, edit: Patch, name: str, trace: Trace) -> None:
        """Refuses rows of weights over another source."""
        if edit.value == "weights":
            # A row of weights means something only over the same keys: over another source it would be numbers for other words.
            site = Site.parse(name.split("/")[1])
            keys, second = len(self.strips.given["source"]), len(trace.tokens["source"])
            if self.strips.keys(site) == "source" and self.strips.growing != "source" and keys != second:
                raise edit.refuse(
                    phrase("rows of weights have {found:,} keys in the second run and {keys:,} here", found=second, keys=keys)
                )

    def _looked_at(self) -> Iterator[str]:
        """The values that edits need to know."""
        for edit in self._edits:
            if isinstance(edit, SetRow) and edit.to == "uniform":
                yield from (f"attention/{site}/mask" for site in self._parts.of(edit))
            if isinstance(edit, SkipLayer):
                yield from (before for _name, before in self._parts.skipped(edit))


def _text_of(checkpoint: Runner, id_: int) -> str:
    strip = "source" if checkpoint.info.spec.encoder is None else "target"
    return checkpoint.tokenizers[strip].tokens((id_,), strip).texts[0]


def _chained(changes: list[Intervention]) -> Intervention:
    """Several functions of one value, one after the other."""
    return lambda value, start: reduce(lambda changed, change: change(changed, start), changes, value)


def edited_run(checkpoint: Runner, request: RunRequest, inputs: Inputs, traced: Traced) -> EditedRun:
    """The edits of a run that begins.

    Args:
        inputs: its inputs, without the padding that it asks for.

    Raises:
        HeadlightError: as EditedRun; or the source cannot be padded.
    """
    spec, source = checkpoint.info.spec, inputs.source
    if spec.encoder is not None:
        # Edits may name padding that the request adds, so the strips that they see have it.
        source = Reader(checkpoint.tokenizers, source.tensor.device).padded(source, request.source_pad_to, spec)
    target = {} if inputs.target is None else {"target": inputs.target.tokens}
    return EditedRun(checkpoint, request, {"source": source.tokens} | target, traced)
