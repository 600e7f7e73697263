"""Places: what of a run edits can name. The tokens of its strips, as far as they are known when a row is computed; the sites and
layers of its network; and sentences where an edit names what is not there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import torch
from torch import Tensor

from model.errors import BadEdit, Phrase, UnknownHead, UnknownSite, phrase
from model.requests.edits import AtSites, Edit, SkipLayer, SkipSublayer, Token
from model.requests.external import AnySpec
from model.requests.network import WITHOUT_FEED_FORWARD
from model.trace.types import Site, Tokens, sites


class Strips:
    """The token strips of one run.

    Args:
        given: the strips as far as they are known before the run.
        growing: the strip that the run itself writes, `source` or `target`; empty: none.
        text_of: the text of an id of that strip.

    Attributes:
        valid: [position] of bool, which positions of the encoder's input are no padding; None: all.
    """

    def __init__(self, given: Mapping[str, Tokens], growing: str, text_of: Callable[[int], str]) -> None:
        self.given = given
        self.growing = growing
        self._text_of = cache(text_of)
        self._rows: list[tuple[str, ...]] = []
        self.valid: Tensor | None = None

    def read(self, ids: Tensor) -> None:
        """Takes the ids [row, position] that the next call of the decoder reads."""
        if self.growing:
            # A prompt is known by its own texts, which its tokenizer wrote; what follows it is spelled id by id.
            given = self.given[self.growing].texts if self.growing in self.given else ()
            self._rows = [given[: len(row)] + tuple(map(self._text_of, row[len(given) :])) for row in ids.tolist()]

    def queries(self, site: Site) -> str:
        """The strip of a site's queries."""
        return "source" if site.stack == "encoder" or site.kind == "memory" else self.of_stack(site.stack)

    def keys(self, site: Site) -> str:
        """The strip of a site's keys."""
        return "source" if site.kind == "cross" else self.queries(site)

    def of_stack(self, stack: str) -> str:
        """The strip that a stack reads."""
        # A language model has one strip, which its decoder reads.
        alone = "target" not in self.given and self.growing != "target"
        return "source" if stack == "encoder" or alone else "target"

    def rows(self, strip: str) -> Sequence[tuple[str, ...]]:
        """The texts that are known, for each row of a batch, or once where they are the same for all."""
        # While the run writes: what was written so far, a row for each hypothesis. Else the one text; nothing where none is known.
        return self._rows if strip == self.growing and self._rows else [self.given[strip].texts] if strip in self.given else [()]

    def match(self, tokens: Sequence[Token], strip: str, start: int, count: int) -> Tensor:
        """Which of the positions from `start` on are among `tokens`: bool [row or 1, count]; all where no token is named."""
        if not tokens:
            return torch.ones(1, count, dtype=torch.bool)
        # A word matches wherever it occurs, a number only at its own position.
        positions = range(start, start + count)
        return torch.tensor(
            [[any(_is(token, position, texts) for token in tokens) for position in positions] for texts in self.rows(strip)]
        )

    def places(self, edit: Edit, token: Token, strip: str) -> tuple[int, ...]:
        """All places of a token in a strip that is known before the run.

        Raises:
            BadEdit: it is not there.
        """
        texts = self.given[strip].texts if strip in self.given else ()
        places = tuple(position for position in range(len(texts)) if _is(token, position, texts))
        if not places:
            raise edit.refuse(self.absent(token, strip))
        return places

    def absent(self, token: Token, strip: str) -> Phrase:
        """Why a strip does not have a token."""
        if strip not in self.given:
            return phrase(
                "{strip} is not known before the run generates it: give the index of a token, or give {strip} yourself", strip=strip
            )
        texts = self.given[strip].texts
        if isinstance(token, int):
            return phrase(
                "{strip} has {count:,} tokens, counted from 0, and none is number {token}",
                strip=strip,
                count=len(texts),
                token=token,
            )
        return phrase(
            "{strip} has no token “{token}”. Available: {names}",
            strip=strip,
            token=token,
            names=", ".join(dict.fromkeys(texts)),
        )

    def check(self, edit: Edit, tokens: Sequence[Token], strips: Sequence[str]) -> None:
        """Refuses tokens that none of the strips has. Nothing is refused that the run may write.

        Raises:
            BadEdit: the sentence names what is there.
        """
        if self.growing in strips:
            return
        for token in tokens:
            if not any(_is(token, i, self.given[s].texts) for s in strips for i in range(len(self.given[s].texts))):
                raise BadEdit(edit=str(edit), reason=self.absent(token, strips[0]))


def _is(token: Token, position: int, texts: Sequence[str]) -> bool:
    if isinstance(token, int):
        return token == position
    # Tokenizers keep the blank before a word in its token: both spellings are meant.
    return position < len(texts) and token in (texts[position], texts[position].strip())


@dataclass
class Notes:
    """Notes about the edits of a run.

    Attributes:
        sentences: what there is to say, each sentence once.
        made: the edits that changed something.
    """

    sentences: dict[Phrase, None] = field(default_factory=dict)
    made: set[Edit] = field(default_factory=set)

    def say(self, sentence: Phrase) -> None:
        """Adds a sentence."""
        self.sentences[sentence] = None


@dataclass(frozen=True)
class EditedSite:
    """One attention site of an edited run.

    Attributes:
        heads: number of heads.
        empty_rows: how the network treats a row without any key.
    """

    site: Site
    heads: int
    strips: Strips
    notes: Notes
    empty_rows: str

    def cells(self, edit: AtSites, value: Tensor, start: int, query: Sequence[Token], key: Sequence[Token] = ()) -> Tensor:
        """The cells of `value` that an edit names: bool, broadcastable to its first three axes, to keys where some are named."""
        heads = torch.ones(1, 1, 1, 1, dtype=torch.bool)
        if edit.head:
            heads = torch.zeros(1, self.heads, 1, 1, dtype=torch.bool)
            heads[:, list(edit.head)] = True
        # [1, head, 1, 1] & [row, 1, query, 1] & [row, 1, 1, key]: each axis that the edit does not name is left at size 1.
        cells = heads & self.strips.match(query, self.strips.queries(self.site), start, value.shape[2])[:, None, :, None]
        if key:
            cells = cells & self.strips.match(key, self.strips.keys(self.site), 0, value.shape[3])[:, None, None, :]
        return cells.to(value.device)

    def replaced(self, edit: AtSites, value: Tensor, cells: Tensor, new: Tensor) -> Tensor:
        """`value` with the numbers of `new` at some cells. Where there are any, the edit is marked as made."""
        if cells.any():
            self.notes.made.add(edit)
        return torch.where(cells, new.to(value.dtype), value)


class Parts:
    """The sites, layers and tokens of one run.

    Args:
        exposed: the feed-forward sublayers whose outputs can be changed, such as `decoder.0.2.feed_forward`; None: all.
    """

    def __init__(self, spec: AnySpec, strips: Strips, notes: Notes, exposed: Iterable[str] | None = None) -> None:
        self._spec, self._strips, self._notes, self._exposed = spec, strips, notes, exposed
        self.sites = sites(spec)

    def edited_site(self, site: Site) -> EditedSite:
        """A site with all that its functions need."""
        # Another library's attention says nothing about such rows; the usual formula makes them uniform.
        rule = getattr(self._spec.stacks[site.stack].attention, "empty_rows", "uniform")
        return EditedSite(site, self.sites[site], self._strips, self._notes, rule)

    def rows_of_source(self, site: Site) -> bool:
        """Whether a row of the site is a source position and not a token of its strip (`MemoryLayer`)."""
        return site.stack == "decoder" and getattr(self._spec.decoder, "wiring", "") == "memory"

    def of(self, edit: AtSites) -> list[Site]:
        """The sites that an edit is at, all of which have its heads.

        Raises:
            UnknownSite, UnknownHead, BadEdit: there is no such site or head.
        """
        if edit.site:
            self.check_site(edit.site)
        chosen = [site for site in self.sites if edit.at_site(str(site))]
        if not chosen:
            raise edit.refuse(
                phrase("this network has no such attention layer. Available: {names}", names=", ".join(map(str, self.sites)))
            )
        for site, head in product(chosen, edit.head):
            self.check_head(site, head)
        return chosen

    def check_tokens(self, edit: AtSites, query: Sequence[Token], key: Sequence[Token]) -> None:
        """Refuses tokens that no strip of the edit's sites can have."""
        of = self.of(edit)
        if query and any(self.rows_of_source(site) for site in of):
            raise edit.refuse(phrase("this decoder computes a row for each source position, so its rows are not those of tokens"))
        self._strips.check(edit, query, tuple(dict.fromkeys(map(self._strips.queries, of))))
        self._strips.check(edit, key, tuple(dict.fromkeys(map(self._strips.keys, of))))

    def check_head(self, site: Site, head: int) -> None:
        """Raises UnknownHead for a head that a site does not have."""
        if head >= self.sites[site]:
            raise UnknownHead(asked=head, site=site, last=self.sites[site] - 1)

    def check_site(self, site: str) -> None:
        """Raises UnknownSite for a site that the network does not have."""
        if Site.parse(site) not in self.sites:
            raise UnknownSite(asked=site, there=", ".join(map(str, self.sites)))

    def check_stack(self, edit: Edit, stack: str) -> None:
        """Refuses a stack that the network does not have."""
        if stack not in self._spec.stacks:
            raise edit.refuse(
                phrase("this network has no {stack}. Available: {names}", stack=stack, names=", ".join(self._spec.stacks))
            )

    def check_layer(self, edit: Edit, stack: str, layer: int) -> None:
        """Refuses a layer that a stack does not have."""
        self.check_stack(edit, stack)
        if not 0 <= layer < (layers := self._spec.stacks[stack].layers):
            raise edit.refuse(phrase("{stack} has the layers 0 to {last}", stack=stack, last=layers - 1))

    def skipped(self, edit: SkipLayer) -> list[tuple[str, str]]:
        """The output of a layer in each pass, and the value that is its input, by their names."""
        self.check_layer(edit, edit.stack, edit.layer)
        spec, pairs = self._spec.stacks[edit.stack], list[tuple[str, str]]()
        for pass_ in range(spec.passes):
            # A layer's input is what the layer before it put out; before the first of a pass, the last one of the pass before.
            number = pass_ * spec.layers + edit.layer - 1
            before = (
                f"hidden/{edit.stack}.{number // spec.layers}.{number % spec.layers}" if number >= 0 else f"embedded/{edit.stack}"
            )
            pairs.append((f"hidden/{edit.stack}.{pass_}.{edit.layer}", before))
        return pairs

    def sublayer(self, edit: SkipSublayer) -> str:
        """The name of what a sublayer adds to the stream."""
        stack, kind = edit.at.partition(".")[0], edit.at.rpartition(".")[2]
        if kind != "feed_forward":
            self.check_site(edit.at)
            return f"attention/{edit.at}/output"
        # Names of all feed-forward sublayers that there are; a stack of attention alone has none.
        spec = self._spec.stacks.get(stack)
        layers = (
            product(range(spec.passes), range(spec.layers)) if spec is not None and spec.wiring not in WITHOUT_FEED_FORWARD else ()
        )
        places = [f"{stack}.{pass_}.{layer}.feed_forward" for pass_, layer in layers]
        if edit.at not in places:
            # Of another library's network only the sublayers whose outputs go through a hook can be changed.
            offered = places if self._exposed is None else [*map(str, self.sites), *self._exposed]
            available = phrase("this network has no such sublayer. Available: {names}", names=", ".join(offered))
            raise edit.refuse(available if offered else phrase("this network has no such sublayer"))
        return f"stages/{edit.at}/output"

    def layers(self, edit: Edit, stack: str, chosen: Sequence[int]) -> list[str]:
        """The outputs of some layers of a stack in each pass, by their names; of all where none is chosen."""
        for layer in chosen:
            self.check_layer(edit, stack, layer)
        spec = self._spec.stacks[stack]
        return [f"hidden/{stack}.{p}.{n}" for p, n in product(range(spec.passes), chosen or range(spec.layers))]
