"""ForeignSpec from config.json. Every number is checked against limits before anything is allocated."""

from dataclasses import asdict
from typing import Any

from model.errors import BadSetting, DamagedFile, phrase
from model.huggingface.families import Family
from model.huggingface.folder import CONFIG, Folder
from model.requests.external import ForeignAttention, ForeignSpec, ForeignStack
from model.requests.network import OutputSpec
from model.requests.validation import read

UNTABLED = 2**12
"""Positions of a stack without a position table or limit of its own."""


MOST_SMOOTHED = 1000
"""Positions of a median that smooths a map are fewer."""

MOST_ENDS = 32
"""Most tokens that end a text; more are ignored."""


def spec_of(folder: Folder, family: Family, config: Any, program: str) -> ForeignSpec:
    """The spec of the network that `config` describes.

    Args:
        family: the architecture's row.
        config: the library's config.
        program: the program that runs it.

    Raises:
        DamagedFile: a size is missing, not a number, or too large.
    """
    try:
        stacks = {stack: _stack(family, config, stack) for stack in family.stacks}
        last = list(stacks.values())[-1]
        spec = ForeignSpec(
            program=program,
            encoder=stacks.get("encoder"),
            decoder=stacks.get("decoder"),
            output=None if family.kind == "encoder" else OutputSpec(),
            **special_ids(folder, config, last.vocab),
        )
        return read(ForeignSpec, asdict(spec), CONFIG)
    except BadSetting as error:
        detail = error.inside
        raise DamagedFile(path=folder.settings, detail=detail) from error
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise DamagedFile(path=folder.settings, detail=phrase("its sizes are invalid: {error}", error=error)) from error


def ignored(folder: Folder) -> list[str]:
    """Settings of generation_config.json that decoding here ignores."""
    names = ("no_repeat_ngram_size", "repetition_penalty", "length_penalty", "min_length", "encoder_no_repeat_ngram_size")
    neutral = (None, 0, 1, 1.0)
    return [name for name in names if folder.generation.get(name) not in neutral]


def _stack(family: Family, config: Any, stack: str) -> ForeignStack:
    heads = _first(config, f"{stack}_attention_heads", "num_heads", "num_attention_heads")
    width = _first(config, "d_model", "hidden_size")
    layers = ("encoder_layers", "num_layers") if stack == "encoder" else ("decoder_layers", "num_decoder_layers")
    return ForeignStack(
        vocab=_first(config, *(("decoder_vocab_size",) if stack == "decoder" else ()), "vocab_size"),
        d_model=width,
        layers=_first(config, *layers, "num_hidden_layers"),
        attention=ForeignAttention(
            heads, _first(config, "num_key_value_heads", default=heads), _first(config, "d_kv", "head_dim", default=width // heads)
        ),
        positions=family.positions,
        max_positions=_positions(family, config),
    )


def _positions(family: Family, config: Any) -> int:
    if family.positions == "relative":
        return UNTABLED
    positions = _first(config, "max_position_embeddings")
    # RoBERTa's max_position_embeddings counts the rows before the first position
    in_table = family.offset is None and family.kind == "encoder"
    return positions - (config.pad_token_id + 1) if in_table else positions  # its table has padding rows too


def _first(config: Any, *names: str, default: int | None = None) -> int:
    """The first setting that is given."""
    for name in names:
        if (value := getattr(config, name, None)) is not None:
            if type(value) is not int:
                raise TypeError(f"{name} is {value!r}")
            return value
    if default is None:
        raise TypeError(f"{names[-1]} is missing")
    return default


def special_ids(folder: Folder, config: Any, vocab: int) -> dict[str, Any]:
    """Special token ids; those outside the vocabulary are dropped."""

    # generation_config.json first, then the network's settings, then those of its text part
    text, blip = config.get_text_config(decoder=True) if folder.kind == "both" else config, folder.model_type == "blip"

    def token_ids(name: str) -> list[int]:
        given = (None if blip else folder.generation.get(name, getattr(config, name, None)), getattr(text, name, None))
        value = next((value for value in given if value is not None), None)
        listed = value[:MOST_ENDS] if isinstance(value, list) else [value]
        return [id_ for id_ in listed if type(id_) is int and 0 <= id_ < vocab]

    def token_id(name: str) -> int | None:
        return next(iter(token_ids(name)), None)

    # several tokens may end a text; the first is shown as its end, the others end it as well
    ends = token_ids("sep_token_id" if blip else "eos_token_id")  # BLIP’s class ends a caption by its separator
    pad, end, writes = token_id("pad_token_id"), next(iter(ends), None), folder.kind != "encoder"
    start = token_id("decoder_start_token_id") if folder.kind == "both" else None
    start = token_id("bos_token_id") if start is None else start
    forced = token_id("forced_bos_token_id") if folder.kind == "both" else None
    return {
        # many language models name their end token as padding: masking it would hide ends that were written
        "pad_id": None if folder.kind == "decoder" and pad == end else pad,
        "start_id": start,
        "end_id": end if writes else None,
        "forced": () if forced is None else (forced,),
        "more_ends": tuple(ends[1:]) if writes else (),
        "suppressed": _suppressed(folder, vocab) if writes else (),
        "opening": _opening(folder, vocab) if folder.kind == "both" else (),
    }


def alignment(folder: Folder, config: Any, layers: int, heads: int) -> dict[str, Any]:
    """By which heads of a decoder of so many layers and heads the folder aligns words with a sound, and how it smooths maps."""
    listed = folder.generation.get("alignment_heads")
    pairs = [tuple(pair) for pair in listed if isinstance(pair, list)] if isinstance(listed, list) else []
    possible = {(layer, head) for layer in range(layers) for head in range(heads)}
    width = getattr(config, "median_filter_width", None)
    known = type(width) is int and 1 <= width < MOST_SMOOTHED and width % 2 == 1
    return {"alignment": tuple(pair for pair in pairs if pair in possible), **({"median": width} if known else {})}


def _opening(folder: Folder, vocab: int) -> tuple[tuple[int, ...], ...]:
    """Ids of which each of Whisper's first tokens is one: a language, the one that the network finds likeliest; the task; and that
    no times are written among the words. They are what the library itself lets it begin with.
    """
    languages, tasks = folder.generation.get("lang_to_id"), folder.generation.get("task_to_id")
    lists = [
        list(languages.values()) if isinstance(languages, dict) and folder.generation.get("is_multilingual", True) else [],
        [tasks.get("transcribe")] if isinstance(tasks, dict) else [],
        [folder.generation.get("no_timestamps_token_id")],
    ]
    choices = [tuple(id_ for id_ in ids if type(id_) is int and 0 <= id_ < vocab) for ids in lists]
    return tuple(ids for ids in choices if ids)


def _suppressed(folder: Folder, vocab: int) -> tuple[int, ...]:
    """Ids that the folder forbids to write, single tokens only."""
    words, tokens = folder.generation.get("bad_words_ids") or (), folder.generation.get("suppress_tokens") or ()
    single = [word[0] for word in words if isinstance(word, list) and len(word) == 1]
    return tuple(sorted({id_ for id_ in (*single, *tokens) if type(id_) is int and 0 <= id_ < vocab}))
