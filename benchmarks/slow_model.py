"""A language model of GPT-2's size with random weights, which takes long to write."""

from pathlib import Path

from model.checkpoints import native
from model.requests.network import AttentionSpec, ModelSpec, OutputSpec, StackSpec
from model.tokenizers.words import SPECIALS, WordTokenizer
from model.transformer.build import build

MODEL = "slow"
END = 3

SPEC = ModelSpec(
    encoder=None,
    decoder=StackSpec(
        vocab=50_257,
        d_model=768,
        layers=12,
        attention=AttentionSpec(heads=12, head_dim=64),
        hidden=3072,
        max_positions=1024,
        activation="gelu",
        norm_order="pre",
        final_norm=True,
    ),
    output=OutputSpec(tied=True),
    suppressed=(END,),
)


def save_slow_model(folder: Path) -> None:
    """Writes the checkpoint folder; its words are w4, w5, …, and it never writes the end token."""
    save_model(folder, MODEL, SPEC)


def save_model(folder: Path, name: str, spec: ModelSpec) -> None:
    """Writes the checkpoint folder of a language model with random weights and the words w4, w5, …"""
    vocabulary = SPECIALS + tuple(f"w{number}" for number in range(len(SPECIALS), spec.writer.vocab))
    info = native.Info(
        name=name,
        title=name.capitalize(),
        summary="Random weights.",
        languages={"source": "Words"},
        examples=("w4 w5",),
        data={},
        spec=spec,
    )
    native.save(folder, info, build(spec).state_dict(), {"source": WordTokenizer("words", vocabulary, framed=False)})
