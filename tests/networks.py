"""Small networks with random weights, for tests: every choice of a ModelSpec occurs in at least one of VARIANTS.

`tiny_recipe` and `write_corpus` make a training that takes a second, `save_checkpoint` a folder that can be loaded.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoints import native
from model.features.training import recipes
from model.features.training.recipes import Recipe
from model.requests.network import AttentionSpec, ModelSpec, OutputSpec, StackSpec
from model.tokenizers.words import SPECIALS, Split, WordTokenizer
from model.transformer.attention import Run
from model.transformer.build import Network, build
from model.transformer.cache import NO_CACHE, Cache
from model.transformer.stacks import CausalLM, EncoderDecoder

PAD, START, END = 1, 2, 3

GERMAN = """
ein hund spielt im schnee .
zwei hunde spielen mit einem ball .
eine frau sitzt auf einer bank .
ein mann fährt durch die stadt .
drei kinder springen ins wasser .
ein kind spielt im wasser .
zwei kinder sitzen im schnee .
eine frau springt durch die stadt .
ein hund sitzt auf einer bank .
ein mann spielt mit einem ball .
"""
ENGLISH = """
a dog plays in the snow .
two dogs play with a ball .
a woman sits on a bench .
a man drives through the city .
three children jump into the water .
a child plays in the water .
two children sit in the snow .
a woman jumps through the city .
a dog sits on a bench .
a man plays with a ball .
"""

_SMALL = StackSpec(vocab=11, d_model=8, layers=2, attention=AttentionSpec(heads=2, head_dim=4), hidden=12, max_positions=16)
_BARE = AttentionSpec(heads=3, head_dim=5, bias=False, empty_rows="zeros")
_MODERN = replace(
    _SMALL,
    vocab=13,
    d_model=9,
    attention=AttentionSpec(heads=2, head_dim=7),
    activation="gelu",
    norm_order="pre",
    final_norm=True,
    positions="sinusoidal",
    embed_scale="none",
)
_ROTARY = replace(
    _SMALL,
    vocab=17,
    attention=AttentionSpec(heads=4, head_dim=4, bias=False, key_heads=2),
    activation="silu",
    gated=True,
    bias=False,
    norm_order="pre",
    norm="rms",
    final_norm=True,
    positions="rotary-pairs",
    embed_scale="none",
    rotary_base=50.0,
)

VARIANTS: dict[str, ModelSpec] = {
    "paper": ModelSpec(encoder=_SMALL, decoder=replace(_SMALL, vocab=10)),
    "modern, tied": ModelSpec(encoder=_MODERN, decoder=_MODERN, output=OutputSpec(tied=True, bias=False)),
    "two passes": ModelSpec(encoder=replace(_SMALL, passes=2), decoder=replace(_SMALL, passes=2, positions="none")),
    "uneven": ModelSpec(
        encoder=replace(_SMALL, d_model=12, layers=1, attention=_BARE, hidden=5, bias=False, positions="none", norm_order="pre"),
        decoder=replace(_SMALL, d_model=10, layers=3, attention=replace(_BARE, heads=1), activation="gelu", final_norm=True),
        output=OutputSpec(tied=True),
    ),
    "language model": ModelSpec(encoder=None, decoder=replace(_SMALL, vocab=17)),
    "rotary language model": ModelSpec(encoder=None, decoder=_ROTARY),
    "rotary": ModelSpec(encoder=replace(_ROTARY, positions="rotary"), decoder=replace(_ROTARY, vocab=11, bias=True)),
    "modern language model": ModelSpec(encoder=None, decoder=replace(_MODERN, passes=2, layers=3), output=OutputSpec(tied=True)),
}
"""Specs by name: encoder-decoders and causal language models, small enough to be followed by loops."""

TRANSLATORS = tuple(name for name, spec in VARIANTS.items() if spec.encoder is not None)
LANGUAGE_MODELS = tuple(name for name, spec in VARIANTS.items() if spec.encoder is None)


def network(spec: ModelSpec, seed: int = 0) -> Network:
    """The network of `spec` ready to run; every parameter is random, biases and norms included, so that none can be forgotten."""
    built = build(spec)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in built.named_parameters():
            centre = 1.0 if "norm.weight" in name else 0.0
            parameter.copy_(centre + 0.4 * torch.randn(parameter.shape, generator=generator))
    return built.eval()


def translator(spec: ModelSpec, seed: int = 0) -> EncoderDecoder:
    """`network` of a spec with an encoder."""
    built = network(spec, seed)
    assert isinstance(built, EncoderDecoder)
    return built


def language_model(spec: ModelSpec, seed: int = 0) -> CausalLM:
    """`network` of a spec without an encoder."""
    built = network(spec, seed)
    assert isinstance(built, CausalLM)
    return built


def some_ids(count: int, vocab: int, seed: int = 0) -> list[int]:
    """A start token and random ids that are no special tokens."""
    generator = torch.Generator().manual_seed(seed)
    words: list[int] = torch.randint(END + 1, vocab, (count - 1,), generator=generator).tolist()
    return [START, *words]


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """[batch, position]: the rows, filled up with padding."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def assert_close(name: str, found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    """Fails with the name of the tensor where the two differ."""
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, msg=lambda text: f"{name}: {text}")


class Notes(dict[str, Tensor]):
    """What a network recorded, by name. Callable as `Run.record`; a name that is recorded twice is an error."""

    def __call__(self, name: str, value: Tensor) -> None:
        assert name not in self, f"{name} was recorded twice"
        self[name] = value.detach().clone()


def translate(
    built: EncoderDecoder, source: Tensor, target: Tensor, valid: Tensor | None = None, cache: Cache = NO_CACHE, start: int = 0
) -> Notes:
    """Everything that one run of an encoder-decoder records."""
    notes = Notes()
    mask, run = built.source_mask(source, valid), Run(record=notes, cache=cache)
    with torch.inference_mode():
        built.decode(target, built.encode(source, mask, run), mask, run, start)
    return notes


def continue_(built: CausalLM, ids: Tensor, cache: Cache = NO_CACHE, start: int = 0) -> Notes:
    """Everything that one run of a language model records."""
    notes = Notes()
    with torch.inference_mode():
        built(ids, Run(record=notes, cache=cache), start)
    return notes


def write_corpus(folder: Path) -> Path:
    """A corpus of 20 sentence pairs to train on and 10 to validate with, in the files that `tiny_recipe` names."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, times in (("train", 2), ("val", 1)):
        for language, text in (("de", GERMAN), ("en", ENGLISH)):
            (folder / f"{split}.{language}").write_text(text.lstrip("\n") * times, encoding="utf-8")
    return folder


def tiny_recipe(epochs: int = 2, dropout: float = 0.1, rate: float = 5e-4) -> Recipe:
    """The bundled recipe, made small: one narrow layer on each side, float32."""
    whole = recipes.load("multi30k-de-en")
    stack = {"d_model": 8, "layers": 1, "hidden": 12, "max_positions": 16, "attention": {"heads": 2, "head_dim": 4}}
    phases = (replace(whole.optimisation.phases[0], epochs=epochs, learning_rates=(rate, 0.0), dropout=dropout),)
    how = replace(
        whole.optimisation, precision="float32", sentences_per_batch=8, warmup_steps=2, phases=phases, shares=(), calibrate=False
    )
    return replace(whole, name="tiny", encoder=stack, decoder=stack, optimisation=how)


def save_checkpoint(folder: Path, spec: ModelSpec = VARIANTS["paper"], seed: int = 0, split: Split = "spacy-de") -> EncoderDecoder:
    """Writes a folder with the random network of `spec`, whose words are w4, w5, …; returns the network as it was before.

    Processes that start for a test begin a second sooner where texts are split by `words`: they import no spaCy.
    """
    built, strips = translator(spec, seed), ("source", "target")
    words = {
        strip: tuple(f"w{i}" for i in range(len(SPECIALS), spec.stacks[stack].vocab))
        for strip, stack in zip(strips, spec.stacks, strict=True)
    }
    info = native.Info(
        name="tiny",
        title="Tiny",
        summary="Random weights.",
        languages={"source": "German", "target": "English"},
        examples=("w4 w5.",),
        data={"source": "{split}.de", "target": "{split}.en"},
        spec=spec,
    )
    tokenizers = {strip: WordTokenizer(split, SPECIALS + words[strip]) for strip in strips}
    native.save(folder, info, built.state_dict(), tokenizers)
    return built


def save_film(folder: Path, steps: Sequence[int] = (0, 1, 2, 4, 8), spec: ModelSpec = VARIANTS["paper"]) -> dict[int, Network]:
    """A folder as of `save_checkpoint` with random snapshots and a curve.csv; returns each snapshot's network."""
    save_checkpoint(folder, spec, seed=steps[-1])
    kept = {step: network(spec, seed=step) for step in steps}
    (folder / "snapshots").mkdir()
    for step, built in kept.items():
        native.save_weights(folder / "snapshots" / f"{step:06}.safetensors", built.state_dict())
    rows = [f"{epoch},{2 * epoch},{5 - epoch},{4.5 - epoch},1,1,1,1" for epoch in (1, 2, 3)]
    head = "epoch,step,train_loss,validation_loss,validation_ppl,learning_rate,tokens_per_second,seconds"
    (folder / "curve.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    return kept
