"""A network of ours under names that nobody here knows, and the layout file that says what is what."""

from torch import Tensor

from model.requests.layout_file import LayoutFile, pattern_of
from model.transformer.stacks import CausalLM
from tests.networks import VARIANTS, network

OURS = {
    "embedding.token": ("words", "embedding"),
    "embedding.positions": ("places", "positions"),
    "layers.{layer}.attention.query": ("block.{layer}.att.q", "query"),
    "layers.{layer}.attention.key": ("block.{layer}.att.k", "key"),
    "layers.{layer}.attention.value": ("block.{layer}.att.v", "value"),
    "layers.{layer}.attention.output": ("block.{layer}.att.mix", "output"),
    "layers.{layer}.attention_residual.norm": ("block.{layer}.n1", "attention norm"),
    "layers.{layer}.feed_forward_residual.norm": ("block.{layer}.n2", "feed-forward norm"),
    "layers.{layer}.feed_forward.expand": ("block.{layer}.up", "feed-forward in"),
    "layers.{layer}.feed_forward.gate": ("block.{layer}.gate", "feed-forward gate"),
    "layers.{layer}.feed_forward.contract": ("block.{layer}.down", "feed-forward out"),
    "final_norm": ("last", "final norm"),
    "output": ("head", "vocabulary"),
}
"""Names of a language model of ours: what a foreign program calls each, and its role."""

PLAIN, ROTARY = "language model", "rotary language model"


def foreign(variant: str) -> tuple[dict[str, Tensor], LayoutFile, CausalLM]:
    """A network of ours under other names, the layout that says what is what, and the network."""
    built = network(VARIANTS[variant])
    assert isinstance(built, CausalLM)
    state, told = dict[str, Tensor](), dict[str, str]()
    for name, tensor in built.state_dict().items():
        stem, _, kind = name.rpartition(".")
        theirs, role = OURS[pattern_of(stem + ".")[:-1]]
        told[f"{theirs}.{kind[0]}"] = role if kind == "weight" else f"{role} bias"
        number = next((part for part in stem.split(".") if part.isdigit()), "")
        state[f"{theirs}.{kind[0]}".replace("{layer}", number)] = tensor
    return state, LayoutFile("our lab", "language model", told), built
