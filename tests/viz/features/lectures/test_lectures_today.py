"""What lectures show and claim of attention as it is built today, against computations of their own; and the recorded runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.engine.api import Engine, Models, Run
from model.engine.local import LocalEngine
from model.engine.trace_engine import OF_LECTURES, with_traces
from model.requests.request import Decoding, RunRequest
from model.trace.trace_files import read_path
from model.trace.types import Trace
from viz.canvas.wire.transport import unpack
from viz.claims.runs import StepRuns
from viz.features.lectures.presenter.panels import Picture
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.script import parser
from viz.features.lectures.script.claim_values import number_of
from viz.features.lectures.script.claims import claim
from viz.panels import NotDrawable

TEXT = "a little girl in a pink dress is holding a"
LINK = f"model=captions-lm&text={TEXT.replace(' ', '+')}&decode=greedy&max=6&site=decoder.0.2.self&head=3"
WINDOW = "; ".join(f"forbid stack=decoder kind=self query={','.join(map(str, range(key + 3, 12)))} key={key}" for key in range(9))


@pytest.fixture(scope="module")
def trace(engine: Engine) -> Trace:
    decoding = Decoding(max_length=6)
    return engine.ask(Run(RunRequest("captions-lm", TEXT, decoding=decoding, keep=("scores", "qkv", "context"))))


def shown(engine: Engine, link: str) -> Picture:
    page, view, problems = parser.parse_link(link)
    assert problems == []
    return picture(engine, page, view)


def scene(found: Picture, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return unpack(found.scenes[name])


def value(engine: Engine, subject: str, link: str = f"/explore?{LINK}") -> float:
    text = f"---\ntitle: T\nlanguage: en\nminutes: 5\nmodels: captions-lm\n---\nview: {link}\n"
    read = claim(f"{subject} > 0", 1)
    return number_of(StepRuns(engine, parser.read(text, "t.en").steps[0]), read.subject, read.scope)


LAYERS, HEADS, KEY_HEADS, WIDTH, MODEL, HIDDEN, VOCAB = 3, 6, 2, 16, 96, 256, 3000
"""The sizes of captions-lm, as its card gives them."""


def test_the_cache_holds_two_vectors_of_each_key_head_in_four_bytes_a_number(engine: Engine) -> None:
    of_one = 4 * LAYERS * 2 * KEY_HEADS * WIDTH
    assert value(engine, "kept 13") == 13 * of_one
    assert value(engine, "kept 13 heads") == 13 * of_one * HEADS // KEY_HEADS
    assert value(engine, "kept 13 multi-query") == 13 * of_one // KEY_HEADS
    assert value(engine, "kept 13 latent") == 13 * 4 * LAYERS * (4 * WIDTH + WIDTH // 2)
    chart = scene(shown(engine, f"/step?{LINK}&open=cache"), "cache")[0]
    assert chart["across"] == list(range(1, 15)), "what the next token adds is seen"
    assert chart["mark"] == [12, 9216]
    assert [line["values"] for line in chart["lines"]] == [
        [of_one * n for n in range(1, 15)],
        [3 * of_one * n for n in range(1, 15)],
    ]
    ways = scene(shown(engine, f"/step?{LINK}&open=ways"), "ways")[0]
    assert [row[1:] for row in ways["rows"]] == [["64", "9,216"], ["192", "27,648"], ["32", "4,608"], ["72", "10,368"]]


MAPS = LAYERS * (2 * MODEL * HEADS * WIDTH + 2 * MODEL * KEY_HEADS * WIDTH + 3 * MODEL * HIDDEN)
"""Numbers of the matrices of captions-lm, without the output."""


def test_operations_are_those_of_the_matrices_and_of_the_cells(engine: Engine) -> None:
    def once(new: int, keys: int) -> int:
        return 2 * new * (MAPS + MODEL * VOCAB) + LAYERS * HEADS * 2 * 2 * new * keys * WIDTH

    whole = sum(once(n, n) for n in (10, 11, 12))
    assert value(engine, "operations whole") == pytest.approx(whole / 1e6)
    assert value(engine, "operations cached") == pytest.approx((once(10, 10) + once(1, 11) + once(1, 12)) / 1e6)
    drawn = scene(shown(engine, f"/step?{LINK}&open=operations"), "operations")[0]["lines"]
    assert sum(drawn[1]["values"]) == whole
    length = int(value(engine, "equal-at"))
    cells, others = [[number(n) for n in (length - 1, length)] for number in (_cells, _others)]
    assert [cells[0] < others[0], cells[1] >= others[1]] == [True, True]
    lines = scene(shown(engine, f"/step?{LINK}&open=length"), "operations")[0]["lines"]
    assert [line["values"][0] for line in lines[:2]] == [_cells(1000), _others(1000)]
    assert lines[2]["values"][0] == LAYERS * HEADS * 4 * 1000 * WIDTH * WIDTH
    kept, weights = scene(shown(engine, f"/step?{LINK}&open=bytes"), "bytes")[0]["lines"]
    assert (kept["values"][-1], weights["values"][-1]) == (768e6, LAYERS * HEADS * 4e12)


def _cells(count: int) -> float:
    return LAYERS * HEADS * (count * (count + 1) / 2) * 4 * WIDTH


def _others(count: int) -> float:
    return 2 * count * (MAPS + MODEL * VOCAB)


def test_latents_are_drawn_beside_what_all_heads_make_of_them(engine: Engine) -> None:
    trace = read_path(OF_LECTURES / "latents.trace.safetensors")
    own = trace.at("decoder.0.1.self")
    found = shown(engine, "/step?model=latents.trace.safetensors&open=latents&site=decoder.0.1.self")
    kept, made = (scene(found, name)[1]["exact"] for name in ("kept", "made"))
    assert own.k is not None
    assert own.v is not None
    latents = trace.stages["decoder.0.1.self/latents"]
    assert np.array_equal(kept, np.concatenate([latents, own.k[2, :, 8:]], axis=1)[:6])
    for head in range(4):
        assert np.array_equal(made[:, 16 * head : 16 * head + 16], np.concatenate([own.k[head, :, :8], own.v[head]], axis=1)[:6])
    with pytest.raises(NotDrawable):
        shown(engine, f"/step?{LINK}&open=latents")


def test_a_claim_about_a_map_is_what_numpy_makes_of_the_recorded_run(engine: Engine, trace: Trace) -> None:
    own = trace.at("decoder.0.2.self")
    assert own.q is not None
    assert own.k is not None
    assert own.v is not None
    q, k, weights = own.q[3].astype(float), own.k[3].astype(float), own.weights[3].astype(float)
    features = [np.where(x > 0, x + 1, np.exp(x)) for x in (q[9], k[:10])]
    products = features[1] @ features[0]
    assert value(engine, "linear decoder.0.2.self head 3 9 → 8") == pytest.approx(products[8] / products.sum())
    linear = scene(shown(engine, f"/step?{LINK}&open=linear"), "linear")[1]
    assert linear["exact"][9, :10] == pytest.approx(products / products.sum(), abs=1e-6)
    assert not linear["there"][9, 10:].any()
    assert value(engine, "sum decoder.0.2.self head 3 9") == pytest.approx(1, abs=1e-6)
    assert value(engine, "measure first decoder.0.2.self head 3") == pytest.approx(weights[1:, 0].mean())
    assert value(engine, "tiled decoder.0.2.self head 3") < 1e-5
    assert value(engine, "moved plain decoder.0.2.self head 3") == 2 * 12 * WIDTH * 2 + 4 * 12 * 12
    assert value(engine, "moved tiles decoder.0.2.self head 3") == 2 * 12 * WIDTH + 2 * 6 * 4 * WIDTH
    with_window = f"/explore?{LINK}&edit={WINDOW.replace(' ', '+').replace('=', '%3D').replace(';', '%3B')}"
    assert value(engine, "reach decoder.0.2.self 3", with_window) == 7  # 2 + 2 + 2 back, and itself
    assert value(engine, "reach decoder.0.2.self 1", with_window) == 3


def test_the_score_at_a_distance_is_that_of_a_key_turned_as_a_complex_number(engine: Engine, trace: Trace) -> None:
    own = trace.at("decoder.0.2.self")
    assert own.q is not None
    assert own.k is not None
    assert own.scores is not None
    angles = 10_000.0 ** (-np.arange(8) / 8)
    assert value(engine, "wavelength decoder.0.2.self 5") == pytest.approx(2 * np.pi / angles[5], rel=1e-5)
    q, k = (vectors[3].astype(float)[at, :8] + 1j * vectors[3].astype(float)[at, 8:] for vectors, at in ((own.q, 9), (own.k, 8)))
    for apart in (0, 1, 10):
        moved = (q * np.conj(k * np.exp(-1j * angles * (apart - 1)))).real.sum() / np.sqrt(WIDTH)
        assert value(engine, f"distance {apart} decoder.0.2.self head 3 9 → 8") == pytest.approx(moved, abs=1e-4)
    found = shown(engine, f"/positions?{LINK}&query=9&key=8")
    assert [panel.scene for panel in found.panels] == ["arrows", "distance", "waves", "alike"]
    header = scene(found, "distance")[0]
    assert header["mark"] == [1, pytest.approx(float(own.scores[3, 9, 8]), abs=1e-4)]
    arrows = scene(found, "arrows")[0]
    assert np.hypot(*np.array(arrows["after"]).T) == pytest.approx(np.ones(8))
    turned = np.angle([complex(*after) / complex(*before) for before, after in zip(arrows["before"], arrows["after"], strict=True)])
    assert np.exp(1j * turned) == pytest.approx(np.exp(9j * angles))
    for name, kinds in (("arrows", ["arrows"]), ("score", ["distance"]), ("waves", ["waves"]), ("similarity", ["alike"])):
        one = shown(engine, f"/positions?{LINK}&query=9&key=8&picture={name}")
        assert [panel.scene for panel in one.panels] == kinds


def test_tiles_show_what_was_met_and_the_sums_of_the_last_one(engine: Engine, trace: Trace) -> None:
    scores = trace.at("decoder.0.2.self").scores
    assert scores is not None
    found = shown(engine, f"/step?{LINK}&open=tiles&step=2")  # rows 5 to 8 have met keys 1 to 8
    header, blobs = scene(found, "tiles")
    assert header["frame"] == [4, 4, 8, 8]
    met = np.zeros((12, 12), bool)
    met[:4, :4] = met[4:8, :8] = True
    assert np.array_equal(blobs["there"].astype(bool), np.tril(met))
    rows = scene(found, "sums")[0]["rows"]
    whole = [scores[3, row, : row + 1].astype(float) for row in range(4, 8)]
    assert [float(row[1].replace("−", "-")) for row in rows] == pytest.approx([each.max() for each in whole], abs=1e-3)
    assert [float(row[3]) for row in rows] == pytest.approx([np.exp(each - each.max()).sum() for each in whole], abs=1e-3)
    assert "largest difference" in next(iter(shown(engine, f"/step?{LINK}&open=tiles&step=99").panels)).heading


def test_masks_and_sinks_of_a_recorded_run(engine: Engine) -> None:
    kinds = shown(engine, "/masks?model=sinks.trace.safetensors&open=mask-kinds&site=decoder.0.0.self")
    assert [row[1] for row in scene(kinds, "kinds")[0]["rows"]] == [
        "sliding window of width 4: itself and the 3 before it",
        "causal: itself and all before it",
    ]
    found = shown(engine, "/masks?model=sinks.trace.safetensors&open=sinks&site=decoder.0.1.self")
    header, blobs = scene(found, "learned")
    assert header["keys"][-1] == "sink"
    assert blobs["exact"].sum(axis=1) == pytest.approx(np.ones(11), abs=1e-5)
    assert blobs["exact"][:, -1] == pytest.approx([1 / (row + 2) for row in range(11)], abs=1e-4)
    shares = scene(shown(engine, f"/masks?{LINK}&open=sinks"), "first")[1]["exact"]
    assert shares.shape == (HEADS, LAYERS)
    assert shares[3, 2] == pytest.approx(value(engine, "measure first decoder.0.2.self head 3"), abs=1e-6)


def test_a_head_lies_over_the_image_that_was_read_and_the_overview_stands_beside_it(engine: Engine) -> None:
    found = shown(engine, "/explore?model=vision.trace.safetensors&site=encoder.0.0.self&head=0&query=0")
    assert [(panel.kind, panel.width, panel.follows) for panel in found.panels] == [
        ("Overlay", "half", True),
        ("Atlas", "half", True),
    ]
    assert not found.choice["large"], "the image is what the step is about"
    own = read_path(OF_LECTURES / "vision.trace.safetensors")
    assert own.image is not None
    header = scene(found, "overlay")[0]
    assert header["patches"] == {"rows": 8, "columns": 8, "added": 1}
    assert header["query"] == 0
    ink = own.image[..., 0].reshape(8, 4, 8, 4).max(axis=(1, 3)) > 120
    weights = own.at("encoder.0.0.self").weights[0][0][1:].reshape(8, 8)
    assert ink.sum() == 8
    assert weights[ink].sum() > 0.99, "the class token reads the digit"


def test_what_a_recorded_run_cannot_show_is_said(engine: Engine) -> None:
    with pytest.raises(NotDrawable, match="is not known here"):
        shown(engine, "/step?model=sinks.trace.safetensors&open=cache")


def test_the_slopes_of_alibi_are_those_of_the_paper() -> None:
    own = read_path(OF_LECTURES / "alibi.trace.safetensors").at("decoder.0.0.self")
    for head in range(4):
        slope = 2.0 ** (-2 * (head + 1))  # Press et al. 2021: 2^(-8/n), and its powers
        row = np.exp(-slope * np.arange(10, -1, -1))
        assert own.weights[head][10] == pytest.approx(row / row.sum(), abs=2e-3)


def test_the_recorded_runs_are_found_by_name_are_small_and_are_in_no_list(engine: Engine) -> None:
    names = [path.name for path in OF_LECTURES.glob("*.trace.safetensors")]
    assert sorted(names) == [f"{name}.trace.safetensors" for name in ("alibi", "latents", "sinks", "smollm2", "sound", "vision")]
    assert not set(names) & {info.name for info in engine.ask(Models()).models}
    assert sum(path.stat().st_size for path in OF_LECTURES.iterdir()) < 800_000
    readme = (OF_LECTURES / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name.partition('.')[0]}`" in readme for name in names)


def test_a_trace_in_the_folder_of_checkpoints_hides_one_of_the_lectures(tmp_path: Path) -> None:
    (tmp_path / "sinks.trace.safetensors").write_bytes((OF_LECTURES / "alibi.trace.safetensors").read_bytes())
    found = with_traces(LocalEngine(tmp_path, torch.device("cpu")), tmp_path).ask(Run(RunRequest("sinks.trace.safetensors", "")))
    assert len(found.attention) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("kept many > 0", "tokens: many is not a whole number"),
        ("moved slowly decoder.0.2.self head 0 > 0", "plain, tiles"),
        ("operations all > 0", "cached, whole"),
    ],
)
def test_a_claim_that_cannot_be_read_says_what_is_allowed(line: str, said: str) -> None:
    text = f"---\ntitle: T\nlanguage: en\nminutes: 5\nmodels: captions-lm\n---\nview: /explore?{LINK}\nexpect: {line}\n"
    [problem] = parser.read(text, "t.en").problems
    assert said in problem.sentence


def test_a_picture_carries_the_image_below_its_weights(engine: Engine) -> None:
    """Of a scene that follows a selection the browser keeps the header alone."""
    found = shown(engine, "/explore?model=vision.trace.safetensors&site=encoder.0.0.self&head=0&query=0")
    header, blobs = scene(found, "overlay")
    carried = unpack(found.packed())[1]
    own = carried[f"{header['parts']['image']['name']}/whole"]
    assert own.tobytes() == blobs["image"].tobytes()
