"""The source lines that compute a stage. They are read from model/transformer itself, so what is shown cannot become outdated."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from model.requests.network import ROTARY
from model.trace.stages import Stage
from model.trace.types import Trace

MODEL = Path(__file__).parents[1]

_LINES = {
    "features": ("transformer/stacks.py", "Features.forward", "return"),
    "embedding": ("transformer/stacks.py", "Embedding.forward", "embedding ="),
    "scaled": ("transformer/stacks.py", "Embedding.forward", "scaled ="),
    "embedding, alone": ("transformer/stacks.py", "EmbeddingAlone.forward", "embedding ="),
    "scaled, alone": ("transformer/stacks.py", "EmbeddingAlone.forward", "scaled ="),
    "positioned": ("transformer/stacks.py", "Embedding.forward", "return"),
    "normed, post": ("transformer/layers.py", "PostNorm.forward", "return"),
    "normed, pre": ("transformer/layers.py", "PreNorm.forward", "normed ="),
    "residual, post": ("transformer/layers.py", "PostNorm.forward", "residual ="),
    "residual, pre": ("transformer/layers.py", "PreNorm.forward", "return"),
    "queries": ("transformer/attention.py", "MultiHeadAttention.forward", "q ="),
    "keys": ("transformer/attention.py", "MultiHeadAttention.forward", "keys ="),
    "values": ("transformer/attention.py", "MultiHeadAttention.forward", "weighted ="),
    "scores": ("transformer/attention.py", "attend", "scores ="),
    "mask": ("transformer/masks.py", "Mask.allowed", "return"),
    "weights, uniform": ("transformer/attention.py", "softmax_uniform", "return"),
    "weights, zeros": ("transformer/attention.py", "softmax_zeros", "return"),
    "context": ("transformer/attention.py", "attend", "context ="),
    "output": ("transformer/attention.py", "MultiHeadAttention.forward", 'return see("output"'),
    "hidden": ("transformer/layers.py", "FeedForward.forward", "inner ="),
    "hidden, gated": ("transformer/layers.py", "GatedFeedForward.forward", "gated ="),
    "contracted, gated": ("transformer/layers.py", "GatedFeedForward.forward", "return"),
    "contracted": ("transformer/layers.py", "FeedForward.forward", "return"),
    "final, encoder": ("transformer/stacks.py", "Encoder.forward", "return"),
    "final, decoder": ("transformer/stacks.py", "Decoder.forward", "return"),
    "final, alone": ("transformer/stacks.py", "CausalLM.forward", "last ="),
    "logits": ("transformer/stacks.py", "Output.forward", "return"),
    "probabilities, vocab": ("inference/decoding.py", "log_probabilities_of", "return"),
    "probabilities, batch": ("inference/decoding.py", "certain", "return"),
    "chosen, greedy": ("inference/decoding.py", "greedy", "return"),
    "chosen, sample": ("inference/decoding.py", "sampler", "def sample"),
    "chosen, beam": ("inference/decoding.py", "beam", "return"),
    "chosen, given": ("inference/decoding.py", "forced", "following ="),
}
"""For each stage (and, where a choice of the spec decides, each choice): the file, the function, and the beginning of the line."""


@dataclass(frozen=True)
class Code:
    """Lines of a file.

    Attributes:
        path: path of the file, relative to the project's folder.
        function: qualified name of the function that holds the line.
        line: number of the line that computes the stage; `statement` is the whole statement that begins there.
        first_line: number of the function's first line; `text` is the whole function.
    """

    path: str
    function: str
    line: int
    statement: str
    first_line: int
    text: str


def code(trace: Trace, stage: Stage) -> Code | None:
    """The lines that computed a stage of this run; None for tokens and ids, which no network computes, or if it is not known."""
    choice = _choice(trace, stage)
    return _read(*_LINES[choice]) if choice in _LINES else None


def _choice(trace: Trace, stage: Stage) -> str:
    spec = trace.model.get("spec") or {}
    stack = spec.get(stage.stack) or {}
    elsewhere = trace.recorded or spec.get("program")  # another program's lines computed it
    if elsewhere and stage.name not in ("probabilities", "chosen"):
        return ""
    match stage.name:
        case "normed" | "residual":
            return f"{stage.name}, {stack.get('norm_order')}"
        case "hidden" | "contracted" if stack.get("gated"):
            return f"{stage.name}, gated"
        case "embedding" | "scaled" if stack.get("positions") in ROTARY:
            return f"{stage.name}, alone"
        case "weights":
            return f"weights, {stack.get('attention', {}).get('empty_rows')}"
        case "final":
            return f"final, {stage.stack if spec.get('encoder') else 'alone'}"
        case "probabilities":
            return f"probabilities, {(spec.get('output') or {}).get('softmax')}"
        case "chosen":
            given = trace.request.get("target") is not None
            return f"chosen, {'given' if given else (trace.request.get('decoding') or {}).get('method')}"
    return stage.name


@cache
def _read(file: str, qualified: str, begins: str) -> Code:
    source = (MODEL / file).read_text(encoding="utf-8")
    lines = source.splitlines()
    node: ast.AST = ast.parse(source)
    # Down from the module to the function: a class, then its method.
    for part in qualified.split("."):
        node = next(child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part)
    assert isinstance(node, ast.FunctionDef)
    inside = (inner for inner in ast.walk(node) if isinstance(inner, ast.stmt) and inner is not node)
    # The line is found by how it begins, so that it may move within its function.
    statement = next(inner for inner in inside if lines[inner.lineno - 1].strip().startswith(begins))
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return Code(
        f"model/{file}", qualified, statement.lineno, _cut(lines, statement.lineno, statement), first, _cut(lines, first, node)
    )


def _cut(lines: list[str], first: int, node: ast.stmt) -> str:
    return "\n".join(line[node.col_offset :] for line in lines[first - 1 : node.end_lineno])
