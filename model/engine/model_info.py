"""ModelInfo of a loaded checkpoint."""

from itertools import islice

from model.checkpoints.loaded import Runner
from model.engine.api import ModelInfo, Reads
from model.errors import HeadlightError
from model.spec.network import to_json
from model.tokenizers.vocabulary import IdTokenizer

FIRST_IDS = 5
"""Number of ids, without start and end, in the example for a model without a vocabulary."""

FIRST_FEATURES = "6 0"
"""Example for a model without an embedding: positions and seed of random features."""


def unusable(name: str, title: str, error: HeadlightError) -> ModelInfo:
    """Why a model cannot be used, and its title."""
    return ModelInfo(name, title, "", {}, (), 0, {}, 0, 0, problem=error.to_json())


def describe(name: str, loaded: Runner) -> ModelInfo:
    """Facts about a loaded checkpoint; `name` is that of a RunRequest."""
    info, spec_ = loaded.info, loaded.info.spec
    return ModelInfo(
        name=name,
        title=info.title,
        summary=info.summary,
        languages=info.languages,
        examples=info.examples or _example(loaded),
        parameters=sum(p.numel() for p in loaded.network.parameters()),
        spec=to_json(spec_),
        max_source=(spec_.encoder or spec_.writer).max_positions,
        max_target=spec_.writer.max_positions,
        reads=_reads(loaded),
        example_labels=info.example_labels,
    )


def _reads(checkpoint: Runner) -> Reads:
    tokenizer = checkpoint.tokenizers.get("source")
    if tokenizer is None:
        return "features"
    return "ids" if isinstance(tokenizer, IdTokenizer) else "words"


def _example(checkpoint: Runner) -> tuple[str, ...]:
    """An example for models without a vocabulary: some ids, or the number of random features and a seed."""
    tokenizer, spec_ = checkpoint.tokenizers.get("source"), checkpoint.info.spec
    if tokenizer is None:
        return (FIRST_FEATURES,)
    if not isinstance(tokenizer, IdTokenizer):
        return ()
    plain = (id_ for id_ in range(tokenizer.size) if id_ not in tokenizer.specials and id_ != spec_.unk_id)
    last = spec_.end_id if spec_.encoder else None
    room = (spec_.encoder or spec_.writer).max_positions - 2
    ids = (spec_.start_id, *islice(plain, max(1, min(FIRST_IDS, room))), last)
    return (" ".join(str(id_) for id_ in ids if id_ is not None),)
