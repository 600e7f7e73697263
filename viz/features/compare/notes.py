"""Sentences of Compare on what is compared of two runs, what is left out, and what is only rounding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from model.trace.types import Site, Trace
from viz.features.compare.run_difference import Change, Kind, Reason, changed_kinds
from viz.features.compare.runs import Runs
from viz.i18n.translate import _, _n, join_list
from viz.labels import tokens


@dataclass(frozen=True, eq=False)
class Compared:
    """The runs of both sides, and what changed between them.

    Attributes:
        runs: what ran.
        names: what the sides are called.
        found: the changes, by site that can be compared.
        refused: the reasons, by site that cannot.
    """

    runs: Runs
    names: tuple[str, str]
    found: dict[Site, Change]
    refused: dict[Site, Reason]

    @property
    def second(self) -> Trace:
        """The run of the second side."""
        return self.runs.second

    @cached_property
    def changed(self) -> bool:
        """Whether any weight of any head changed by more than rounding."""
        return any(change.changed for change in self.found.values())


def notes(compared: Compared) -> list[str]:
    """The sentences, in their order above the picture."""
    return [*_rows(compared.runs.first, compared), *_left_out(compared.refused), *_rounding(compared)]


def _rounding(compared: Compared) -> list[str]:
    """Sentences on differences that are only rounding."""
    if not compared.found:
        return []
    if compared.changed:
        limit = tokens.power_of_ten(next(iter(compared.found.values())).rounding)
        rounding = [_("Differences of at most {limit} are rounding errors, so they are drawn as 0.", limit=limit)]
        _changed, unmoved = changed_kinds(compared.found)
        return [*rounding, unchanged_kinds(unmoved)] if unmoved else rounding
    return [no_map_changed(compared.found)]


def unchanged_kinds(kinds: Sequence[Kind]) -> str:
    """The sentence that names the kinds of attention in which no weight changed."""
    names = join_list(tokens.kind(*kind) for kind in kinds)
    return _("No weight changed by more than the rounding error in: {kinds}.", kinds=names)


def no_map_changed(changes: Mapping[Site, Change]) -> str:
    """The sentence that no weight of any head changed. `changes` holds at least one site."""
    limit = tokens.power_of_ten(next(iter(changes.values())).rounding)
    return _("No attention weight changed by more than the rounding error ({limit}): no map changed.", limit=limit)


def _rows(first: Trace, compared: Compared) -> list[str]:
    """Sentences on which rows of the sites are compared."""
    sentences = []
    for change in {(ours.site.stack, ours.site.kind): c for c in compared.found.values() if (ours := c.first)}.values():
        ours, theirs = change.first, change.second
        fields = {"kind": tokens.kind(ours.site.stack, ours.site.kind), "rows": len(change.rows), "keys": change.keys}
        fields |= {"first": ours.weights.shape[1], "second": theirs.weights.shape[1], "heads": change.heads}
        if (len(change.rows), len(change.rows)) != (ours.weights.shape[1], theirs.weights.shape[1]):
            sentences.append(
                _n(
                    "{kind}: only the first row can be compared; after that the two outputs differ.",
                    "{kind}: only the first {rows} of {first} (A) and {second} (B) rows can be compared; after that "
                    "the two outputs differ.",
                    len(change.rows),
                    **fields,
                )
            )
        if ours.heads != theirs.heads:
            fields |= {"own": ours.heads, "others": theirs.heads}
            sentences.append(
                _(
                    "{kind}: number of heads {own} on side A, {others} on side B; only heads that both sides have are compared.",
                    **fields,
                )
            )
    replaced = [pair for name, strip in first.tokens.items() for pair in _replaced(strip.texts, compared, name)]
    if replaced:
        sentences.append(
            _(
                "Some positions hold different words on the two sides. They are compared position by position and "
                "labeled with both words: “{first} / {second}”.",
                first=replaced[0][0],
                second=replaced[0][1],
            )
        )
    return sentences


def _replaced(texts: Sequence[str], compared: Compared, name: str) -> list[tuple[str, str]]:
    """The tokens of a strip that were compared although their texts differ: those of side A and of side B."""
    reach = max((c.keys for c in compared.found.values() if c.first.key_tokens == name), default=0)
    other = compared.second.tokens.get(name)
    pairs = zip(texts[:reach], other.texts[:reach], strict=False) if other is not None else ()
    return [(tokens.word(word_a), tokens.word(word_b)) for word_a, word_b in pairs if word_a != word_b]


def _left_out(refused: dict[Site, Reason]) -> list[str]:
    """Sentences on the sites that cannot be compared, with the reason."""
    groups: dict[tuple[str, Reason], list[int]] = {}
    for site, reason in refused.items():
        layers = groups.setdefault((tokens.kind(site.stack, site.kind), reason), [])
        if site.layer + 1 not in layers:
            layers.append(site.layer + 1)
    return [_why_not(reason, kind, layers) for (kind, reason), layers in groups.items()]


def _why_not(reason: Reason, kind: str, layers: Sequence[int]) -> str:
    numbers = join_list(map(str, layers))
    where = _n("{kind}, layer {layers}", "{kind}, layers {layers}", len(layers), kind=kind, layers=numbers)
    if reason == "first":
        return _("{where}: only on side A, so there is nothing to compare.", where=where)
    if reason == "second":
        return _("{where}: only on side B, so there is nothing to compare.", where=where)
    return _("{where}: not compared, because the tokens of the two sides do not align.", where=where)
