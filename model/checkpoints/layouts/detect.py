"""Layout detection: state dicts, names added by wrappers, and the evidence for each layout."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from model.checkpoints.layouts.base import Layout, Match, Shapes, renamed
from model.checkpoints.layouts.language_models import GPT, LITGPT, LLAMA
from model.checkpoints.layouts.layout_files import LISTED
from model.checkpoints.layouts.own import NATIVE_NAMES
from model.checkpoints.layouts.shared_head import SHARED_HEAD
from model.checkpoints.layouts.torch_transformer import TORCH_LM, TORCH_TRANSFORMER
from model.checkpoints.layouts.translators import ANNOTATED, D2L, FAIRSEQ, JOEYNMT, OPENNMT, TUTORIAL, TUTORIAL_PARTS
from model.errors import (
    BadLayoutFile,
    BadSetting,
    CheckpointError,
    LibraryWeights,
    NearLayout,
    OnlyAnAdapter,
    Phrase,
    SeveralLayouts,
    SeveralTables,
    UnknownLayout,
    phrase,
)
from model.huggingface.families import FAMILIES, Family
from model.inspection.leftovers import BEHIND, RECOMPUTED, shortened, what_is
from model.inspection.wrappers import readings
from model.requests.layout_file import mistakes

LAYOUTS: tuple[Layout, ...] = (
    TUTORIAL,
    TUTORIAL_PARTS,
    TORCH_LM,
    SHARED_HEAD,
    D2L,
    TORCH_TRANSFORMER,
    ANNOTATED,
    GPT,
    JOEYNMT,
    FAIRSEQ,
    LLAMA,
    LITGPT,
    OPENNMT,
    NATIVE_NAMES,
)
"""All layouts. The order does not matter: if two match, the user is asked."""

MOST_NAMED = 3
"""Most architectures that a sentence names."""

_ADAPTED = re.compile(r"(.*\.)?(lora_(A|B|embedding_[AB])|ia3_l|prompt_embeddings|adapter_[AB]|hada_w\d_[ab])(\..*)?")
"""Names of what the library peft learns beside a network."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class Chosen:
    """A state dict and its layout.

    Attributes:
        layout: the layout.
        tensors: tensors by name, without wrappers.
        prefix: the names of wrappers that were removed.
        candidate: the keys that lead to the state dict, joined by dots; empty: the file's top level.
        match: the evidence.
    """

    layout: Layout
    tensors: Mapping[str, Tensor]
    prefix: str
    candidate: str
    match: Match

    @property
    def shapes(self) -> Shapes:
        """Names and shapes."""
        return shapes_of(self.tensors)

    def left_over(self, settings: Mapping[str, str]) -> dict[str, Phrase]:
        """Descriptions of unused tensors that do not affect attention, by name."""
        names = renamed(self.shapes, self.layout.rules(self.shapes, settings))
        harmless = {name: what for name in self.tensors if name not in names and (what := what_is(name, self.tensors[name]))}
        recomputed = {name: RECOMPUTED for name in self.tensors if self.layout.recomputes(name)}
        return {name: BEHIND for name, ours in names.items() if not ours} | harmless | recomputed


def shapes_of(tensors: Mapping[str, Tensor]) -> Shapes:
    """Names and shapes of tensors."""
    return Shapes({name: tuple(tensor.shape) for name, tensor in tensors.items()})


def choose(
    candidates: Mapping[str, Mapping[str, Tensor]], settings: Mapping[str, str], path: str, among: Sequence[Layout] = ()
) -> Chosen:
    """The layout that a file has.

    Args:
        candidates: state dicts by the keys that lead to them.
        settings: all settings; `layout` and `candidate` choose among several.
        among: the layouts to choose from; empty: all known ones.

    Raises:
        UnknownLayout, OnlyAnAdapter: none matches; the error names the nearest, or whose weights these are.
        SeveralLayouts: more than one layout or state dict matches.
        BadSetting: `layout` or `candidate` names nothing that exists.
        BadLayoutFile: the layout comes from a file, and does not fit.
    """
    layouts = _chosen_by_setting(settings, "layout", {layout.name: layout for layout in among or LAYOUTS})
    tables = _chosen_by_setting(settings, "candidate", with_generator(candidates))
    every = [reading for name, table in tables.items() for reading in _readings(table, name, layouts.values(), settings)]
    fitting = [reading for reading in every if reading.match]
    if not fitting and among and among[0].file:
        raise BadLayoutFile(path=among[0].name, detail=min((reading.match.against for reading in every), key=len)[0])
    if not fitting:
        raise _unknown(every, settings, path)
    for kind, setting, names in (
        (SeveralTables, "candidate", [reading.candidate or "(the file itself)" for reading in fitting]),
        (SeveralLayouts, "layout", [reading.layout.name for reading in fitting]),
    ):
        # nothing chooses among several for the user
        if len(alternatives := list(dict.fromkeys(names))) > 1:
            raise kind(path=path, there=", ".join(alternatives), setting=setting)
    return fitting[0]


def with_generator(candidates: Mapping[str, Mapping[str, Tensor]]) -> Mapping[str, Mapping[str, Tensor]]:
    """The state dicts; a table `generator` beside a table `model` becomes a part of it.

    OpenNMT-py saves its map to the vocabulary in a table of its own.
    """
    if "model" not in candidates or "generator" not in candidates:
        return candidates
    whole = {f"generator.{name}": tensor for name, tensor in candidates["generator"].items()} | dict(candidates["model"])
    return {name: table for name, table in candidates.items() if name != "generator"} | {"model": whole}


def _chosen_by_setting(settings: Mapping[str, str], setting: str, entries: Mapping[str, Value]) -> Mapping[str, Value]:
    """The entry that a setting names, or all without the setting."""
    if (name := settings.get(setting)) is None:
        return entries
    if name not in entries:
        raise BadSetting(name=setting, found=name, allowed=", ".join(entries))
    return {name: entries[name]}


def _readings(table: Mapping[str, Tensor], candidate: str, layouts: Iterable[Layout], settings: Mapping[str, str]) -> list[Chosen]:
    """The state dict read by each layout, with wrappers removed until one matches."""
    chosen: list[Chosen] = []
    for reading in readings(table):  # as it is first, then without one wrapper after the other
        tensors = {name: table[stored] for name, stored in reading.names.items()}
        chosen += [Chosen(layout, tensors, reading.removed, candidate, _evidence(layout, tensors, settings)) for layout in layouts]
        if any(choice.match for choice in chosen):
            break
    return chosen


def _evidence(layout: Layout, table: Mapping[str, Tensor], settings: Mapping[str, str]) -> Match:
    """Evidence for and against a layout. Tensors without a place in it are evidence against it, whatever the settings."""
    if layout.name == LISTED:
        return Match((), ())
    if layout.file is not None:
        harmless = [name for name, tensor in table.items() if what_is(name, tensor)]
        return Match((), tuple(mistake.detail for mistake in mistakes(layout.file, shapes_of(table).of, harmless)))
    # a layout must have what its program always writes, and nothing that it does not know
    match, foreign = layout.match(shapes_of(table)), foreign_names(layout, table, settings)
    known = (phrase("{known} of {count} names are known", known=len(table) - len(foreign), count=len(table)),)
    names = shortened(foreign)
    misfit = phrase("{names} have no place in it", names=names)
    if len(foreign) == 1:
        misfit = phrase("{names} has no place in it", names=names)
    against = (misfit,) if foreign else ()
    return Match(match.in_favour + known, match.against + against)


def foreign_names(layout: Layout, table: Mapping[str, Tensor], settings: Mapping[str, str]) -> tuple[str, ...]:
    """Names that a layout does not know and that are not harmless."""
    shapes = shapes_of(table)
    known = renamed(shapes, layout.rules(shapes, settings))
    unknown = [name for name in table if name not in known and not layout.recomputes(name)]
    return tuple(name for name in unknown if not what_is(name, table[name]))


def _unknown(every: Sequence[Chosen], settings: Mapping[str, str], path: str) -> CheckpointError:
    """The error that says whose weights these are, or which layout is the nearest and why it does not match."""
    tables = [reading.tensors for reading in every]
    if any(map(_holds_adapter, tables)):
        return OnlyAnAdapter(path=path, base=phrase("it does not say which one it belongs to"))
    near = [reading for reading in every if _is_near(reading, settings)]
    # a near layout is likelier than a network of the library whose names lack everything around its layers
    for bare in (False,) if near else (False, True):
        if kinds := next(filter(None, (_library_kinds(reading.shapes, bare) for reading in every)), ()):
            return LibraryWeights(path=path, kinds=", ".join(kinds))
    if not near:
        return UnknownLayout(path=path, names=shortened(max(every, key=lambda reading: len(reading.tensors)).tensors))
    nearest = min(
        near, key=lambda reading: (len(foreign_names(reading.layout, reading.tensors, settings)), len(reading.match.against))
    )
    return NearLayout(path=path, nearest=nearest.layout.name, reason=nearest.match.against)


def _is_near(reading: Chosen, settings: Mapping[str, str]) -> bool:
    """Whether at least half of a layout fits: half of the names have a place in it, and half of what it requires is there."""
    required = reading.layout.match(reading.shapes)
    unknown = len(foreign_names(reading.layout, reading.tensors, settings))
    return 2 * unknown <= len(reading.tensors) and len(required.in_favour) >= len(required.against)


def _holds_adapter(names: Iterable[str]) -> bool:
    """Whether most tensors are those of an adapter."""
    matches = [_ADAPTED.fullmatch(name) is not None for name in names]
    return 2 * sum(matches) > len(matches)


def _library_kinds(shapes: Shapes, bare: bool = False) -> tuple[str, ...]:
    """Architectures of the transformers library that name the projections of their first layers like this; empty: none does.

    Args:
        bare: whether to look for the names of a network without what is around it, which tell less: `layers.0.` is anybody's.
    """
    # an encoder-decoder fits with both of its stacks, and comes before what fits with one
    fits = {kind: max(_stacks_there(family, shapes, bare)) for kind, family in FAMILIES.items()}
    kinds = [kind for kind, count in fits.items() if count and count == max(fits.values())]
    return tuple(kinds[:MOST_NAMED]) + (("…",) if kinds[MOST_NAMED:] else ())


def _stacks_there(family: Family, shapes: Shapes, bare: bool) -> Iterator[int]:
    """For each stack, how many there are with their projections up to it: 0 where one is missing."""
    count = 0
    for stack in family.stacks:
        first = f"{family.layers.format(stack=stack)}.0.{family.attention}"
        count += all(_is_there(f"{first}.{name}.weight", shapes, bare) for name in family.projections)
        yield count


def _is_there(name: str, shapes: Shapes, bare: bool) -> bool:
    """Whether a tensor has this name, perhaps with that of the whole network before it, or without its own first part.

    One map to queries, keys and values is called like in GPT-2 by programs that store it the other way round.
    """
    wanted = name.partition(".")[2] if bare else name
    for tensor, shape in shapes.of.items():
        if tensor == wanted or (not bare and tensor.endswith(f".{wanted}")):
            return not name.endswith("c_attn.weight") or (len(shape) == 2 and 3 * shape[0] == shape[1])
    return False
