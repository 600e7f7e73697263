"""The graph of a circuit in a real browser: its heads are those of the run, and pointer, keyboard and finger select them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.patience import expect
from tests.browser.visits import drawing, has_parameters, opened, rest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[4]
TEXT = "fox moon tea harry potter rain key fox moon tea harry"


def test_a_head_is_selected_in_the_graph_by_pointer_and_keyboard(
    within: Callable[[str], Page], serve: Callable[[Path], str]
) -> None:
    page = within(f"{serve(ROOT / 'app.py')}/circuit?model=induction&text={TEXT}&max=1&site=decoder.0.1.self&head=0")
    graph = drawing(page, "circuit")
    expect(graph.locator("canvas").first).to_be_visible()
    rest(page)
    page.wait_for_function("root => root.dataset.layout", arg=graph.element_handle())
    drawn = json.loads(graph.get_attribute("data-layout") or "[]")
    layers = {each["site"]: each for each in drawn if "head" not in each}
    places = {(each["site"], each["head"]): each for each in drawn if "head" in each}
    assert set(layers) == {"L1", "L2"}
    assert layers["L1"]["y"] == places["decoder.0.0.self", 0]["y"]
    assert layers["L1"]["x"] < places["decoder.0.0.self", 0]["x"] - 20, "a layer's name is at the left of its heads"
    assert set(places) == {(f"decoder.0.{layer}.self", head) for layer in (0, 1) for head in (0, 1)}
    assert places["decoder.0.0.self", 0]["y"] > places["decoder.0.1.self", 0]["y"], "later layers are above"
    box = graph.locator(".graph")
    around = box.bounding_box()
    assert around is not None
    there = places["decoder.0.0.self", 1]
    page.mouse.move(around["x"] + there["x"], around["y"] + there["y"])
    expect(graph.locator(".readout")).to_contain_text("Decoder self-attention, layer 1, head 2")
    expect(graph.locator(".readout")).to_contain_text("share 0.")
    page.mouse.click(around["x"] + there["x"], around["y"] + there["y"])
    has_parameters(page, site="decoder.0.0.self", head="1")
    rest(page)
    box.focus()
    page.keyboard.press("ArrowUp")
    expect(graph.locator(".readout")).to_have_attribute("data-site", "decoder.0.1.self")
    page.keyboard.press("Enter")
    has_parameters(page, site="decoder.0.1.self", head="1")


CROSSED = """(box) => {
  const { cy } = box._cyreg, [heads, rows] = [cy.nodes(".head"), new Map()];
  for (const node of heads) rows.set(node.position().y, [...(rows.get(node.position().y) ?? []), node]);
  const at = (one, two, three, t) => ({
    x: (1 - t) ** 2 * one.x + 2 * t * (1 - t) * two.x + t * t * three.x,
    y: (1 - t) ** 2 * one.y + 2 * t * (1 - t) * two.y + t * t * three.y,
  });
  const crossed = cy.edges().filter((edge) => {
    const [from, to] = [edge.source(), edge.target()], turns = edge.controlPoints();
    if (turns.length !== 2 || from.position().y === to.position().y) return true;
    const middle = { x: (turns[0].x + turns[1].x) / 2, y: (turns[0].y + turns[1].y) / 2 };
    const halves = [[edge.sourceEndpoint(), turns[0], middle], [middle, turns[1], edge.targetEndpoint()]];
    const points = halves.flatMap((half) => [...Array(51).keys()].map((step) => at(...half, step / 50)));
    const beside = [...rows.get(from.position().y), ...rows.get(to.position().y)].filter((node) => node !== from && node !== to);
    const far = (node, { x, y }) => Math.hypot(x - node.position().x, y - node.position().y);
    return beside.some((node) => points.some((point) => far(node, point) < node.width() / 2));
  });
  return { edges: cy.edges().length, crossed: crossed.map((edge) => edge.data("said")), high: box.clientHeight };
}"""
"""The edges that touch another head of the rows of their ends, and the height of the graph."""


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["tatoeba-en-zh", "multi30k-de-en"])
def test_edges_run_around_the_heads_beside_their_ends_and_the_graph_uses_half_of_the_screen(
    within: Callable[[str], Page], serve: Callable[[Path], str], model: str
) -> None:
    page = within(f"{serve(ROOT / 'app.py')}/circuit?model={model}")
    rest(page, drawn=".hl[data-drawing=circuit] canvas")
    drawn = drawing(page, "circuit").locator(".graph").evaluate(CROSSED)
    assert drawn["edges"] > 50
    assert drawn["crossed"] == []
    assert drawn["high"] > 0.5 * page.evaluate("innerHeight")


PAIR = f"{TEXT}\tfox moon tea harry rain potter key fox moon tea harry\n"
FILES = {
    "good.tsv": (PAIR * 2).encode(),
    "marked.tsv": PAIR.encode("utf-8-sig").replace(b"\n", b"\r\n"),
    "none.tsv": b"",
    "one.tsv": b"fox moon tea\n",
    "three.tsv": b"fox\tmoon\ttea\n",
    "wide.tsv": PAIR.encode("utf-16"),
    "old.txt": "für a\tfür b\n".encode("latin-1"),
    "large.tsv": b"a" * (2**20 + 1),
    "other.csv": PAIR.encode(),
}
SAID = {
    "good.tsv": "Measure all paths (24)",
    "marked.tsv": "Measure all paths (12)",
    "none.tsv": "at least one line with two texts and a tab between them",
    "one.tsv": "two texts with one tab between them, which line 1 does not have",
    "three.tsv": "two texts with one tab between them, which line 1 does not have",
    "wide.tsv": "a text file in UTF-8; byte 1 of this file is not UTF-8",
    "old.txt": "a text file in UTF-8; byte 2 of this file is not UTF-8",
    "large.tsv": "File must be 1.0MB or smaller.",
    "other.csv": "files are not allowed.",
}
"""What a file of pairs brings about on the page: how many paths can be measured, or why it is not taken."""


@pytest.mark.thorough
def test_a_file_of_pairs_is_taken_or_one_sentence_says_why_not(
    within: Callable[[str], Page], serve: Callable[[Path], str], tmp_path: Path
) -> None:
    link = f"{serve(ROOT / 'app.py')}/circuit?model=induction&text={TEXT}&max=1"
    page = within(link)
    panel, box = page.locator(".st-key-panel-paths"), page.locator(".st-key-paths-file input[type=file]")
    for name, said in SAID.items():
        (tmp_path / name).write_bytes(FILES[name])
        box.set_input_files(tmp_path / name)
        expect(panel).to_contain_text(said)
        for button in reversed(panel.get_by_test_id("stFileUploaderDeleteBtn").all()):
            button.get_by_role("button").click()
        expect(panel.get_by_test_id("stFileUploaderFileName")).to_have_count(0)
        rest(page)  # a file that is sent before the page has heard of this would be taken away with it
    page = opened(page, f"{link}&lang=de")
    for name, said in (("large.tsv", "Die Datei ist größer als 1.0MB"), ("other.csv", "Dateien dieser Art (text/csv)")):
        box.set_input_files(tmp_path / name)
        expect(panel).to_contain_text(said)
