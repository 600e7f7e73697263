"""Compare on a network that runs: the probabilities on the page are those of a network without the silenced heads."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.requests.edits import Silence
from model.requests.request import RunRequest
from tests.app.visiting import Visitor
from tests.viz.test_views_explore import decoded
from viz.canvas.wire.transport import PART_CACHE, WHOLE, unpack

LAYER = "decoder.0.1.cross"
SIDES = 2


def probabilities(engine: LocalEngine, model: str, ids: tuple[int, ...]) -> list[float]:
    """The probability of each fed token after the first, from the logits."""
    logits = engine.ask(Run(RunRequest(model, "w4 w5 w6", target=ids))).logits
    assert logits is not None
    rows = np.exp(logits.astype(np.float64))
    return [float(row[token] / row.sum()) for row, token in zip(rows, ids[1:], strict=False)]


def test_a_silenced_last_layer_shows_its_effect_on_the_tokens_of_the_first_side(stocked: Path) -> None:
    heads = 2
    visitor = Visitor("compare", text="w4 w5 w6", max="8", feed="first", against=f"silence={LAYER}:0 {LAYER}:1")
    assert visitor.problems == []
    assert any("no map changed" in caption.value for caption in visitor.app.caption)
    atlases = [part.proto.component_name for part in visitor.app.get("bidi_component")].count("headlight.atlas")
    assert atlases == SIDES, "maps without a change are not drawn"
    assert not [frame for frame in visitor.app.dataframe if "heads-by-change" in frame.proto.id], "nor is a table of zeros"
    shutil.copytree(stocked / "tiny", stocked / "without")  # the same network, whose last cross-attention adds its bias alone
    weights = load_file(stocked / "without" / "model.safetensors")
    name = "decoder.layers.1.cross_attention.output.weight"
    assert weights[name].shape[1] % heads == 0
    save_file(weights | {name: torch.zeros_like(weights[name])}, stocked / "without" / "model.safetensors")
    engine = LocalEngine(stocked, torch.device("cpu"))
    ids = engine.ask(Run(RunRequest("tiny", "w4 w5 w6", decoding=visitor.view.decoding()))).tokens["target"].ids
    sides = [probabilities(engine, model, ids) for model in ("tiny", "without")]
    assert sides[0] != pytest.approx(sides[1], abs=1e-4), "the last layer has an effect"
    charts = [json.loads(chart.proto.spec)["data"] for chart in visitor.app.get("plotly_chart")]
    (drawn,) = [data for data in charts if len(data) == 3]
    order = sorted(range(len(ids) - 1), key=lambda place: -abs(sides[1][place] - sides[0][place]))
    assert decoded(drawn[1]["x"]) == pytest.approx([sides[0][place] for place in order], abs=1e-5)
    assert decoded(drawn[2]["x"]) == pytest.approx([sides[1][place] for place in order], abs=1e-5)


def test_edits_are_told_in_words_and_kinds_of_attention_without_a_change_are_not_drawn(stocked: Path) -> None:
    edit = f"forbid site={LAYER} head=1 query=0 key=2"
    visitor = Visitor("compare", text="w4 w5 w6", max="8", feed="first", against=f"edit={edit}")
    assert visitor.problems == []
    captions = [caption.value.replace("\\", "") for caption in visitor.app.caption]
    (told,) = [caption for caption in captions if caption.startswith("Differences on side B")]
    assert "Cross-attention, layer 2, head 2: hidden from “<sos>”: “w5”" in told
    assert edit not in visitor.words + told
    titles = [each.value for each in visitor.app.markdown]
    assert {"**Side A: edits: none**", "**Side B: edits: 1**"} <= {title.replace("\\", "") for title in titles}
    drawn = [part.proto.bytes for part in visitor.app.get("bidi_component") if part.proto.component_name == "headlight.atlas"]
    groups = [[site["site"] for group in _groups(data) for site in group["sites"]] for data in drawn]
    assert groups[-1] == ["decoder.0.0.cross", "decoder.0.1.cross"], "only what changed"
    assert len(groups[0]) == len(groups[1]) > len(groups[-1]), "both sides have all heads"
    assert any("No weight changed by more than the rounding error in: Encoder self-attention" in each for each in captions)


def _groups(scene: bytes) -> list[dict[str, Any]]:
    """What the overview of an atlas has in each of its cards."""
    header, blobs = unpack(scene)
    piece = PART_CACHE.piece(header["parts"]["overview"]["name"], WHOLE)
    data = blobs["overview"].tobytes() if "overview" in blobs else piece
    assert data is not None
    found: list[dict[str, Any]] = unpack(data)[0]["groups"]
    return found


def test_the_head_that_changed_most_is_selected_until_another_one_is_chosen(stocked: Path) -> None:
    asked = {"text": "w4 w5 w6", "max": "8", "feed": "first", "against": "silence=decoder.0.0.self:0 decoder.0.0.self:1"}
    visitor = Visitor("compare", **asked)
    engine = LocalEngine(stocked, torch.device("cpu"))
    ids = engine.ask(Run(RunRequest("tiny", "w4 w5 w6", decoding=visitor.view.decoding()))).tokens["target"].ids
    edit = Silence(site="decoder.0.0.self", head=(0, 1))
    one, other = (engine.ask(Run(RunRequest("tiny", "w4 w5 w6", target=ids, edits=edits))) for edits in ((), (edit,)))
    moved = dict[tuple[str, int], float]()
    for site, attention in one.attention.items():
        apart = np.abs(other.at(site).weights.astype(np.float64) - attention.weights).sum(axis=-1) / 2
        free = attention.mask.sum(axis=-1) > 1
        moved |= {(str(site), head): apart[head, free].mean() for head in range(attention.heads)}
    for atlas in visitor.scenes("atlas"):
        assert (atlas["selection"]["site"], atlas["selection"]["head"]) == max(moved, key=moved.__getitem__)
    least = min(moved, key=moved.__getitem__)
    chosen = Visitor("compare", **asked, site=least[0], head=str(least[1])).scene("atlas")["selection"]
    assert (chosen["site"], chosen["head"]) == least
