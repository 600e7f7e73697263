"""Texts of the drawings in the chosen language: whole sentences. JavaScript only fills their {gaps}."""

import re

from model.trace.types import Trace
from viz.texts import _


def layer(index: int, pass_: int | None) -> str:
    """Short name of an atlas row: "L1", or "P2 L1" if the stack runs more than once."""
    if pass_ is None:
        return _("L{layer}", layer=index + 1)
    return _("P{pass_} L{layer}", pass_=pass_ + 1, layer=index + 1)


def strip_title(trace: Trace, name: str, generated: bool) -> str:
    """Title of a strip: "German, the source", "English, generated"."""
    language = trace.model.get("languages", {}).get(name, "")
    language = "" if language == name else language  # the model does not name it
    given = trace.request.get("target") is not None
    goes_on = generated and trace.request.get("decoding", {}).get("max_length", 1) > 0
    if name == "source" and "target" not in trace.tokens and goes_on:
        return _("{language}, read and continued", language=language) if language else _("Read and continued")
    if name == "source":
        return _("{language}, the source", language=language) if language else _("The source")
    if given or not generated:
        return _("{language}, as given", language=language) if language else _("The target, as given")
    return _("{language}, generated", language=language) if language else _("The target, generated")


def axes(query: str, key: str) -> str:
    """Axes of a heatmap in one line, which may break only after the dot, not before a sign."""
    return re.sub(" (?=[↓→·])", "\u00a0", _("{query} ↓ · {key} →", query=query, key=key))


def _cells() -> dict[str, str]:
    """Texts about one weight."""
    return {
        "query": _("query"),
        "key": _("key"),
        "weight": _("weight"),
        "about": _("≈ {weight}"),
        "most": _("at most ≈ {weight}"),
        "maskedWeight": _("{weight}, masked"),
        "masked": _("masked"),
        "cell": _("{head}: “{query}” looks at “{key}” with weight {weight}"),
    }


def _candidates() -> dict[str, str]:
    return {
        "probability": _("probability"),
        "others": _("all other tokens"),
        "special": _("A special token: it stands for no text."),
        "unknown": _("The vocabulary does not know this word: the network saw its unknown token instead."),
        "given": _("Given, not written by the model."),
        "written": _("“{token}” was written with probability {probability}"),
        "token": _("“{token}”"),
    }


def running() -> str:
    """Text of a page that waits for the engine."""
    return _("Running: {seconds} s")


def lost() -> dict[str, str]:
    """Texts of a drawing with a part that the server no longer has."""
    return {
        "sentence": _("The server no longer has the numbers of this picture, so a part of it is missing."),
        "button": _("Ask for them again"),
    }


def strips() -> dict[str, str]:
    """Texts of the token strips."""
    return {**_candidates(), "tokens": _("Tokens: arrow keys move, Enter selects the row that wrote the token")}


def atlas() -> dict[str, str]:
    """Texts of the atlas."""
    return {
        **_cells(),
        "headShort": _("H{head}"),
        "layer": _("Layer"),
        "mean": _("mean"),
        "meanHelp": _("Where cells are smaller than pixels, a pixel shows their largest weight; show their mean instead"),
        "label": _("{title}, all heads. Arrow keys move among heads, Enter selects, Space opens one large."),
        "openLabel": _("{head}, large. Arrow keys move among cells, Enter opens the arithmetic of one, Escape closes."),
        "head": _("{head}. Enter selects it, Space opens it large."),
        "enlarge": _("Open a head large"),
        "close": _("Close"),
        "closer": _("Closer"),
        "farther": _("Farther"),
        "scale": _("weight"),
        "hint": _("Point at a cell to read it; a click selects a head, a double click opens it large."),
    }


def atlas_alone() -> dict[str, str]:
    """Texts of an atlas on a standalone page, which cannot open calculations."""
    return {**atlas(), "openLabel": _("{head}, large. Arrow keys move among cells, Enter selects a row, Escape closes.")}


def changes() -> dict[str, str]:
    """Texts of an atlas of differences."""
    return {
        **atlas(),
        "weight": _("change"),
        "scale": _("change of the weight"),
        "cell": _("{head}: the weight of “{query}” on “{key}” changed by {weight}"),
        "hint": _("Point at a cell to read how much its weight changed; a click selects a head, a double click opens it."),
    }


def snapshot(step: int) -> str:
    """Training step of a snapshot, in words."""
    return _("After 1 step") if step == 1 else _("Before the first step") if step == 0 else _("After {step:,} steps", step=step)


def fed(trace: Trace) -> str:
    """Title of the strip that is fed to all snapshots."""
    if trace.request.get("target") is not None:
        return _("Fed to every snapshot: the target as typed, and how likely each token was to this one")
    return _("Fed to every snapshot: what the finished model writes, and how likely each token was to this one")


def own() -> str:
    """Title of the strip that a snapshot generates by itself."""
    return _("What this snapshot writes by itself, the likeliest token each time")


def film() -> dict[str, str]:
    """Texts of the film, in addition to those of the atlas."""
    return {
        "first": _("To the first snapshot"),
        "back": _("One snapshot back"),
        "play": _("Play"),
        "pause": _("Pause"),
        "forward": _("One snapshot forward"),
        "last": _("To the last snapshot"),
        "speed": _("Speed"),
        "times": _("{speed} ×"),
        "scrub": _("Snapshot"),
        "step": _("snapshot {step} of {steps}"),
        "loss": _("loss (nats a token)"),
        "perplexity": _("perplexity"),
        "onFed": _("On the tokens fed"),
        "nothing": _("It ends at once and writes nothing."),
        "moment": _("{moment}: loss {loss} nats a token; by itself it writes “{output}”."),
        "moved": _("{moment}."),
        "token": _("“{token}”"),
        "likely": _("“{token}”: probability {probability}"),
        "unknown": _("The vocabulary does not know this word: the network saw its unknown token instead."),
        "special": _("A special token: it stands for no text."),
    }


def lines() -> dict[str, str]:
    """Texts of the lines."""
    return {
        **_cells(),
        "label": _(
            "{head} as lines from query tokens to key tokens. "
            "Up and down move among tokens, left and right change the side. "
            "Enter selects a query, and opens the arithmetic of a key."
        ),
        "fromQuery": _("“{query}” looks most at “{key}”: {weight}"),
        "toKey": _("“{key}” is looked at most by “{query}”: {weight}"),
        "hint": _("Point at a token to see its lines alone; a click on a query selects it, one on a key then opens the cell."),
    }


def network() -> dict[str, str]:
    """Texts of the map of the network."""
    return {
        "first": _("To the first stage"),
        "back": _("One stage back"),
        "play": _("Play"),
        "pause": _("Pause"),
        "forward": _("One stage forward"),
        "last": _("To the last stage"),
        "speed": _("Speed"),
        "times": _("{speed} ×"),
        "scrub": _("Stage"),
        "step": _("{step} of {steps}"),
        "mapLabel": _("Map of the network, input below, output above. Left and right move among stages, Space plays."),
    }


def cells(stage: str) -> dict[str, str]:
    """Texts of the cells of one head at a stage, which is `scores`, `mask` or `weights`."""
    names = {"scores": _("score"), "mask": _("mask"), "weights": _("weight")}
    absent = {"scores": _("never computed: a later position"), "mask": _("{value}, masked"), "weights": _("{value}, masked")}
    return {
        "query": _("query"),
        "key": _("key"),
        "value": names[stage],
        "none": absent[stage],
        "cellValue": _("“{query}” looks at “{key}”: {value}"),
        "cellsHint": _("A click on a cell, or Enter, opens its arithmetic."),
        "cellsLabel": _("{head}. Arrow keys move among cells, Enter opens the arithmetic of one."),
    }


def tree() -> dict[str, str]:
    """Texts of the tree of a beam search."""
    return {
        "treeLabel": _(
            "The tree of the beam search. Left goes back to what a beginning continues, right to its likeliest continuation, "
            "up and down to others of the same step; Enter shows a numbered hypothesis."
        ),
        "treeHint": _("Point at a beginning to follow it back; a click on a numbered one, or Enter, shows its attention."),
        "pruned": _("Pruned"),
        "kept": _("“{token}”: log-probability {own}, with all tokens before it {total}; it went on."),
        "finished": _("“{token}”: log-probability {own}, with all tokens before it {total}; it ended."),
        "dropped": _("“{token}”: log-probability {own}, with all tokens before it {total}; pruned, others were likelier."),
        "hypothesis": _("Hypothesis {rank}, ended by “{token}”: log-probability {total} in all, {mean} a token. Enter shows it."),
    }


def player() -> dict[str, str]:
    """Texts of the step player."""
    return {
        **_cells(),
        **_candidates(),
        "headShort": _("H{head}"),
        "first": _("To the first step"),
        "back": _("One step back"),
        "play": _("Play"),
        "pause": _("Pause"),
        "forward": _("One step forward"),
        "last": _("To the last step"),
        "speed": _("Speed"),
        "times": _("{speed} ×"),
        "scrub": _("Step"),
        "step": _("step {step} of {steps}"),
        "readsWrites": _("Step {step} of {steps}: reads “{read}”, writes “{written}” with probability {probability}"),
        "candidates": _("What could come next"),
        "heads": _("All heads of this layer"),
        "whole": _("The encoder reads the whole source at once: there is no order of steps here, so the map is shown whole."),
        "notDecoded": _("This run recorded no decoding steps, so the map is shown whole."),
        "label": _(
            "{head}, revealed row by row. Left and right step, up and down move among keys, Enter opens the arithmetic of a cell."
        ),
        "headLabel": _("{head}: show it"),
    }
