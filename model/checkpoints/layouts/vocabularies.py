"""Tokenizers for a foreign network: its vocabularies if given, else plain ids."""

from collections.abc import Mapping

from model.checkpoints.layouts.base import Layout
from model.checkpoints.layouts.questions import Answers
from model.errors import DoesNotFit, phrase
from model.spec.network import ModelSpec
from model.tokenizers.subwords.tokenizer import Subwords, SubwordTokenizer
from model.tokenizers.vocabulary import ENDS, STARTS, UNKNOWNS, IdTokenizer, Specials, VocabularyTokenizer, place_of
from model.tokenizers.words import Tokenizer


def tokenizers_of(spec: ModelSpec, answers: Answers, texts: Mapping[str, tuple[str, ...]], layout: Layout) -> dict[str, Tokenizer]:
    """A tokenizer for each strip of ids.

    Args:
        texts: vocabularies by the setting that named them.

    Raises:
        BadSetting: a vocabulary has another number of texts than the network has ids.
    """
    found: dict[str, Tokenizer] = {}
    splits = answers.of.get("tokenizer", "split").split(",")
    for strip, split, stack in zip(("source", "target"), (splits[0], splits[-1]), spec.stacks.values(), strict=False):
        pad_id = spec.source_padding if strip == "source" else spec.pad_id
        specials = Specials(pad_id, spec.start_id, spec.end_id, spec.unk_id)
        vocabulary = texts.get(f"{strip}_vocab")
        if vocabulary is not None and len(vocabulary) != stack.vocab:
            raise DoesNotFit(
                name=f"{strip}_vocab",
                reason=phrase("it has {found:,} entries, and the network has {ids:,} ids", found=len(vocabulary), ids=stack.vocab),
            )
        if vocabulary is not None:
            specials = _of_its_own(specials, vocabulary) if strip == "source" and spec.decoder and spec.encoder else specials
            starts, ends = strip in layout.starts, strip in layout.ends
            if isinstance(vocabulary, Subwords):
                # its own pieces tell how a text is split, whatever the setting says
                start, end = (() if id_ is None else (id_,) for id_ in (specials.start, specials.end))
                own = (specials.pad, specials.start, specials.end)
                special = vocabulary.process.special.union(id_ for id_ in own if id_ is not None)
                unknown = vocabulary.process.unknown if specials.unknown is None else specials.unknown
                found[strip] = SubwordTokenizer(vocabulary, special, unknown, start if starts else (), end if ends else ())
            else:
                found[strip] = VocabularyTokenizer(split, vocabulary, specials, starts, ends)
        elif stack.vocab:
            found[strip] = IdTokenizer(stack.vocab, specials)
    return found


def _of_its_own(told: Specials, vocabulary: tuple[str, ...]) -> Specials:
    """Special ids of the source vocabulary, which may differ from those of the target, the network's own."""
    start, end, unknown = (place_of(vocabulary, names) for names in (STARTS, ENDS, UNKNOWNS))
    return Specials(
        told.pad,
        told.start if start is None else start,
        told.end if end is None else end,
        told.unknown if unknown is None else unknown,
    )
