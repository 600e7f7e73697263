"""Writes a page with another library, in its own environment: `python peer_page.py PEER LAYERS HEADS TOKENS VALID OUT`.

Prints the seconds from the weights in memory to the page's text. Importing modules and generating weights do not count.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from made_up import weights


def bertviz_model_view(attention: np.ndarray, tokens: list[str]) -> Callable[[], str]:
    """BertViz model view: every head of every layer, as lines."""
    import torch
    from bertviz import model_view

    layers = [torch.from_numpy(layer)[None] for layer in attention]
    return lambda: str(model_view(layers, tokens, html_action="return").data)


def bertviz_head_view(attention: np.ndarray, tokens: list[str]) -> Callable[[], str]:
    """BertViz head view: the heads of one layer on top of each other, as lines, with the data of all layers."""
    import torch
    from bertviz import head_view

    layers = [torch.from_numpy(layer)[None] for layer in attention]
    return lambda: str(head_view(layers, tokens, html_action="return").data)


def circuitsvis_patterns(attention: np.ndarray, tokens: list[str]) -> Callable[[], str]:
    """CircuitsVis: every head of every layer, as small pictures."""
    import torch
    from circuitsvis.attention import attention_patterns

    heads = torch.from_numpy(attention.reshape(-1, *attention.shape[2:]))
    return lambda: str(attention_patterns(tokens, heads).local_src)


def inspectus_attention(attention: np.ndarray, tokens: list[str]) -> Callable[[], str]:
    """Inspectus: one map averaged over all heads, and lists to choose from. Its output for a notebook's cell is captured."""
    import inspectus
    import IPython.display as notebook

    def make() -> str:
        parts: list[str] = []
        notebook.display = lambda html: parts.append(html.data)
        inspectus.attention(attention, tokens)
        return "\n".join(parts)

    return make


PEERS = {
    "bertviz-model-view": bertviz_model_view,
    "bertviz-head-view": bertviz_head_view,
    "circuitsvis": circuitsvis_patterns,
    "inspectus": inspectus_attention,
}


def page(peer: str, layers: int, heads: int, tokens: int, valid: int) -> Callable[[], str]:
    """A function that makes the text of a library's page from weights in memory."""
    attention = weights(layers, heads, tokens, valid).reshape(layers, heads, tokens, tokens)
    return PEERS[peer](attention, [f"t{i}" for i in range(tokens)])


def main(peer: str, case: list[int], out: Path) -> None:
    """Writes the page and prints the seconds it took to make."""
    page(peer, 1, 1, 2, 2)()  # loads files into memory, so that loading does not count
    make = page(peer, *case)
    began = time.perf_counter()
    html = make()
    seconds = time.perf_counter() - began
    out.write_text(f'<!doctype html><meta charset="utf-8"><body>{html}', encoding="utf-8")
    print(seconds)


if __name__ == "__main__":
    main(sys.argv[1], list(map(int, sys.argv[2:-1])), Path(sys.argv[-1]))
